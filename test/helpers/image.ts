/** The image of `deploy/Dockerfile` without a container engine: its files as the root of a process of another user. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { Scope } from './child.ts'
import { root } from './sources.ts'

/** An instruction of a Dockerfile: its name in upper case, and the rest with continued lines as one. */
export type Instruction = readonly [name: string, rest: string]

/** Reads instructions without comments. */
export const instructionsOf = (text: string): Instruction[] =>
  text
    .replaceAll(/^\s*#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .flatMap(line => {
      const [, name, rest] = /^(\w+)\s+(.*)$/.exec(line.trim()) ?? []
      return name && rest ? [[name.toUpperCase(), rest] as const] : []
    })

/** Variables that `ENV` sets. */
export const environmentOf = (instructions: readonly Instruction[]): Record<string, string> =>
  Object.fromEntries(
    instructions
      .filter(([name]) => name === 'ENV')
      .flatMap(([, rest]) => [...rest.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name!, value!])),
  )

const canUnshare = spawnSync('unshare', ['--mount', '--pid', '--fork', 'true']).status === 0
/** Value of tap's option `skip`. */
export const withoutNamespaces: string | false = !canUnshare && 'namespaces are not permitted'

/** Writes the files of the image and of its base: Node with its libraries, and no other program. */
export function makeRoot(t: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), 'image-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  execFileSync(process.execPath, [join(root, 'build/image.js'), folder])
  const put = (from: string, to: string) => {
    mkdirSync(dirname(join(folder, to)), { recursive: true })
    copyFileSync(realpathSync(from), join(folder, to))
    chmodSync(join(folder, to), 0o755)
  }
  put(process.execPath, 'nodejs/bin/node')
  const linked = execFileSync('ldd', [process.execPath], { encoding: 'utf8' })
  for (const [path] of linked.matchAll(/\/\S+\.so\S*/g)) put(path, path)
  for (const name of ['proc', 'dev', 'tmp']) mkdirSync(join(folder, name))
  chmodSync(folder, 0o755)
  return folder
}

/** A running container. */
export interface Container {
  /** Resolves with the first line that the process writes to the descriptor 3. */
  ready(): Promise<string>
  /** Runs another command in the container, as the same user. */
  run(...command: string[]): { readonly status: number | null; readonly stdout: string; readonly stderr: string }
  /** Sends SIGTERM to the first process; resolves with its exit code. */
  stop(): Promise<number | null>
}

/** Mounts a read-only root with `/proc`, and empty folders at `/data` and `/tmp`; then becomes the user in it. */
const ENTER = `set -e; r=$1; id=$2; shift 2
mount --make-rprivate / && mount --bind "$r" "$r"
for d in data tmp; do mount -t tmpfs -o mode=1777 tmpfs "$r/$d"; done
mount -t proc proc "$r/proc" && mount --bind /dev "$r/dev" && mount -o remount,ro,bind "$r"
exec setpriv --no-new-privs --inh-caps=-all unshare --root="$r" --wd=/etc/model-gateway --setgid="$id" --setuid="$id" "$@"`

/** Starts a command as a user without a name. The network is that of the machine. */
export function startContainer(
  t: Scope,
  folder: string,
  user: number,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
): Container {
  const child = spawn(
    'unshare',
    ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', ENTER, 'sh', folder, String(user), ...command],
    { env: { ...env, PATH: process.env.PATH }, stdio: ['ignore', 'ignore', 'pipe', 'pipe'] },
  )
  let said = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const ended = once(child, 'close') as Promise<[number | null]>
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const first = () => readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim()
  const line = once(createInterface({ input: child.stdio[3] as Readable }), 'line') as Promise<[string]>
  return {
    async ready() {
      const [text] = await Promise.race([line, ended.then(() => [])])
      if (text === undefined) throw new Error(`the container ended: ${said}`)
      return text
    },
    run(...words) {
      const id = String(user)
      const place = ['--target', first(), '--mount', '--pid', '--root', '--wd', '--setuid', id, '--setgid', id]
      return spawnSync('nsenter', [...place, ...words], { env, encoding: 'utf8' })
    },
    async stop() {
      process.kill(Number(first()), 'SIGTERM')
      const [code] = await ended
      return code
    },
  }
}
