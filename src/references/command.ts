/** Runs the commands that print secrets: `secrets.exec` of `gateway.yaml` (docs/secrets.md#commands). */
import { spawn } from 'node:child_process'
import { guarded } from '../lib/guarded.ts'

const TIMEOUT_MS = 10_000
const MAX_OUTPUT_BYTES = 64 * 1024
/** Variables of the gateway's own, such as its master key. */
const OWN = /^GATEWAY_/
const REASONS: Readonly<Record<string, string>> = { ENOENT: 'it was not found', EACCES: 'permission denied' }

/** Where a command runs, and its environment. */
interface CommandPlace {
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly timeoutMs?: number
}

/**
 * Returns what a command prints, without the newline at its end. No shell runs it. Rejects with an Error that says how it
 * ended, and shows nothing that it printed.
 */
export function outputOf([file, ...args]: readonly string[], place: CommandPlace): Promise<string> {
  const { folder, env, timeoutMs = TIMEOUT_MS } = place
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => !OWN.test(name)))
  return new Promise((resolve, reject) => {
    // A group of its own, so that what the command starts ends with it.
    const child = spawn(file!, args, {
      cwd: folder,
      env: own,
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
      windowsHide: true,
    })
    const chunks: Buffer[] = []
    let size = 0
    const fail = (thrown: unknown) => {
      clearTimeout(timer)
      child.stdout.destroy()
      if (child.pid !== undefined) kill(child.pid)
      reject(thrown as Error)
    }
    const timer = setTimeout(() => fail(new Error(`took longer than ${timeoutMs / 1000} s`)), timeoutMs)
    const take = (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size > MAX_OUTPUT_BYTES) throw new Error(`printed more than ${MAX_OUTPUT_BYTES} bytes`)
    }
    const refuse = ({ code = '' }: NodeJS.ErrnoException) =>
      fail(new Error(`cannot be started: ${REASONS[code] ?? code}`))
    const end = (status: number | null, signal: string | null) => {
      if (signal !== null) throw new Error(`was ended by ${signal}`)
      if (status !== 0) throw new Error(`ended with status ${status}`)
      resolve(textOf(Buffer.concat(chunks)))
      clearTimeout(timer)
    }
    child.stdout.on('data', guarded(take, fail))
    child.on('error', guarded(refuse, fail))
    child.on('close', guarded(end, fail))
  })
}

function textOf(bytes: Buffer): string {
  const text = utf8(bytes)
  if (text === undefined) throw new Error('printed something else than UTF-8 text')
  if (text.trim() === '') throw new Error('printed nothing')
  return text.replace(/\r?\n$/, '')
}

function utf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Ends a group of processes, which may have ended. */
function kill(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'ESRCH') throw thrown
  }
}
