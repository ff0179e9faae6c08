/** Runs the official Python clients of `test/python`, one call at a time, in one process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Scope } from './child.ts'

/** One call of a client: a method of its class in `clients.py`, at a gateway. */
export interface Job {
  readonly client: string
  readonly run: string
  readonly origin: string
  readonly key: string
  readonly model: string
}

const program = fileURLToPath(new URL('../python/clients.py', import.meta.url))

/** Starts the interpreter. A call resolves with the client's result; errors of the client are a result too. */
export function startPython(t: Scope, python: string): (job: Job) => Promise<Record<string, unknown>> {
  const env = { PATH: process.env.PATH ?? '', LITELLM_LOCAL_MODEL_COST_MAP: 'True' }
  const child = spawn(python, [program], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  const ended = once(child, 'close')
  t.teardown(() => {
    child.stdin.end()
    return ended
  })
  return async job => {
    child.stdin.write(`${JSON.stringify(job)}\n`)
    const [line] = (await Promise.race([once(lines, 'line'), ended.then(() => [])])) as [string?]
    if (line === undefined) throw new Error(`${program} has ended`)
    return JSON.parse(line)
  }
}
