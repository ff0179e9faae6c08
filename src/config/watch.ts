/** Reports possible changes of configuration files. The caller reads the files to find out what changed. */
import type { Stats } from 'node:fs'
import { readlink, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import { guarded } from '../lib/guarded.ts'

/** Paths to watch, and the callback for changes. */
interface WatchOptions {
  /** Absolute paths of files and folders; called again after every `onChange`. */
  readonly paths: () => readonly string[]
  /**
   * Never runs twice at once. A rejection goes to `onError`. Also called once when the watch begins, for changes since
   * the caller's last reading.
   */
  readonly onChange: () => unknown
  /** Receives errors of watching. */
  readonly onError: (thrown: unknown) => void
  /** Quiet time in milliseconds before `onChange`. */
  readonly debounceMs?: number
  /** Maximum delay of `onChange` while changes continue. */
  readonly maxWaitMs?: number
}

/** Resolves when the watch is active, with the function that ends it. */
export async function watchConfig(options: WatchOptions): Promise<() => Promise<void>> {
  const { paths, onChange, onError, debounceMs = 250, maxWaitMs = 500 } = options
  let timer: NodeJS.Timeout | undefined
  let busy: Promise<void> = Promise.resolve()
  let closed = false
  let touched = new Set<string>()
  /** Time of the first unreported change. */
  let since: number | undefined

  const wait = (then: () => Promise<void>) => {
    clearTimeout(timer)
    if (closed) return
    const now = performance.now()
    since ??= now
    timer = setTimeout(
      () => {
        since = undefined
        busy = busy.then(then).catch(onError)
      },
      Math.max(0, Math.min(debounceMs, since + maxWaitMs - now)),
    )
  }
  const note = (path: string) => {
    touched.add(path)
    wait(settle)
  }
  const settle = async () => {
    const changed = touched
    touched = new Set()
    // Wait once more for an editor that truncates before it writes.
    if (await someEmpty(changed)) wait(report)
    else await report()
  }
  const report = async () => {
    await onChange()
    const next = await Scope.of(paths())
    if (closed || next.equals(scope)) return
    // Before the next one begins: chokidar shares watchers per path, and would keep one for a folder that is gone.
    await watcher.close()
    watcher = await open(next, note, onError)
    scope = next
    wait(report)
  }

  let scope = await Scope.of(paths())
  let watcher = await open(scope, note, onError)
  wait(report)
  return async () => {
    closed = true
    clearTimeout(timer)
    await busy
    await watcher.close()
  }
}

/** Watches folders instead of files, so that files may be replaced by a rename, removed and created again. */
async function open(
  scope: Scope,
  note: (path: string) => void,
  onError: (thrown: unknown) => void,
): Promise<FSWatcher> {
  const watcher = watch([...scope.folders], {
    ignoreInitial: true,
    depth: 0,
    ignored: path => !scope.folders.has(path) && !scope.holds(path),
  })
  const seen = (path: string) => {
    if (scope.holds(path)) note(path)
  }
  watcher.on(
    'all',
    guarded((_event: string, path: string) => seen(path), onError),
  )
  // Raw events too: replacing a link to a folder changes no file that chokidar watches.
  const raw = (_event: string, name: string, facts: unknown) => {
    const { watchedPath } = facts as { watchedPath: string }
    seen(name && scope.folders.has(watchedPath) ? join(watchedPath, name) : watchedPath)
  }
  watcher.on('raw', guarded(raw, onError))
  watcher.on('error', onError)
  await new Promise<void>(resolve => watcher.once('ready', resolve))
  return watcher
}

const OURS = /\.(yaml|js|mjs|ts)$/

/** The watched folders, and the relevant names in them. */
class Scope {
  readonly folders: ReadonlySet<string>
  readonly #files: ReadonlySet<string>
  /** Identities of the folders: a new folder of the same name needs a new watch. */
  readonly #inodes: ReadonlySet<string>

  constructor(folders: ReadonlyMap<string, string>, files: ReadonlySet<string>) {
    this.folders = new Set(folders.keys())
    this.#files = files
    this.#inodes = new Set([...folders].map(facts => facts.join(' ')))
  }

  static async of(paths: readonly string[]): Promise<Scope> {
    const folders = new Map<string, string>()
    const files = new Set<string>()
    for (const link of await linksTo(paths)) {
      files.add(link)
      const facts = await stat(dirname(link)).catch(() => undefined)
      if (facts) folders.set(dirname(link), identityOf(facts))
    }
    for (const path of paths) {
      // For a missing path, watch the existing folders above it where it may appear.
      for (let at = path; ; at = dirname(at)) {
        const facts = await stat(at).catch(() => undefined)
        if (facts?.isDirectory()) {
          folders.set(at, identityOf(facts))
          break
        }
        files.add(at)
        if (at === dirname(at)) break
      }
    }
    return new Scope(folders, files)
  }

  /**
   * YAML files and modules, the named files, and names such as `..data`, which Kubernetes swaps to replace a folder.
   */
  holds(path: string): boolean {
    const name = basename(path)
    if (!this.folders.has(dirname(path))) return false
    return this.#files.has(path) || name.startsWith('..') || (OURS.test(name) && !name.startsWith('.'))
  }

  equals(other: Scope): boolean {
    const same = (a: ReadonlySet<string>, b: ReadonlySet<string>) => a.size === b.size && [...a].every(p => b.has(p))
    return same(this.#inodes, other.#inodes) && same(this.#files, other.#files)
  }
}

/** Identity of a folder. Inode numbers alone may be reused at once. */
const identityOf = ({ dev, ino, birthtimeMs }: Stats): string => `${dev}:${ino}:${birthtimeMs}`

/** Symbolic links on the way to `paths`, and to their targets: releases are switched by replacing a link. */
async function linksTo(paths: readonly string[]): Promise<Set<string>> {
  const links = new Set<string>()
  const seen = new Set<string>()
  const ways = [...paths]
  for (const way of ways) {
    for (let at = way; !seen.has(at); at = dirname(at)) {
      seen.add(at)
      const target = await readlink(at).catch(() => undefined)
      if (target === undefined) continue
      links.add(at)
      ways.push(resolve(dirname(at), target))
    }
  }
  return links
}

async function someEmpty(paths: Iterable<string>): Promise<boolean> {
  for (const path of paths) {
    const facts = await stat(path).catch(() => undefined)
    if (facts?.isFile() && facts.size === 0) return true
  }
  return false
}
