/** Tells when configuration files may have changed. What changed is for the caller to find out: by reading them. */
import type { Stats } from 'node:fs'
import { readlink, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'

export interface WatchOptions {
  /** Files and folders, absolute; asked again after every `onChange`. */
  readonly paths: () => readonly string[]
  /**
   * Never runs twice at once. A rejection goes to `onError`. Also called once after a watch has begun, for what changed
   * between the caller's last reading and then.
   */
  readonly onChange: () => unknown
  /** What could not be watched. */
  readonly onError: (thrown: unknown) => void
  /** Milliseconds without a change that must pass before `onChange`. */
  readonly debounceMs?: number
  /** After which `onChange` is called although changes go on. */
  readonly maxWaitMs?: number
}

/** Resolves when changes are seen, with the function that ends it. */
export async function watchConfig(options: WatchOptions): Promise<() => Promise<void>> {
  const { paths, onChange, onError, debounceMs = 250, maxWaitMs = 500 } = options
  let timer: NodeJS.Timeout | undefined
  let busy: Promise<void> = Promise.resolve()
  let closed = false
  let touched = new Set<string>()
  /** Of the first change that nobody has been told of. */
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
    // An editor that truncates before it writes gets as long again, once.
    if (await someEmpty(changed)) wait(report)
    else await report()
  }
  const report = async () => {
    await onChange()
    const next = await Scope.of(paths())
    if (closed || next.equals(scope)) return
    // Not after the next one has begun: chokidar shares what watches one path, and with it a folder that is gone.
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

/** Watches folders rather than files, so that a file may be renamed over, removed and made again. */
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
  watcher.on('all', (_event, path) => seen(path))
  // Also what the file system itself says: a swapped link to a folder changes no file that chokidar knows.
  watcher.on('raw', (_event, name, facts) => {
    const { watchedPath } = facts as { watchedPath: string }
    seen(name && scope.folders.has(watchedPath) ? join(watchedPath, name) : watchedPath)
  })
  watcher.on('error', onError)
  await new Promise<void>(resolve => watcher.once('ready', resolve))
  return watcher
}

const OURS = /\.(yaml|js|mjs|ts)$/

/** The folders that are watched, and what in them matters. */
class Scope {
  readonly folders: ReadonlySet<string>
  readonly #files: ReadonlySet<string>
  /** Which folders these are: another one of the same name has to be watched anew. */
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
      // What is not there yet is awaited where it will appear, and so is the folder that it will be in.
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
   * YAML files and modules, the files that are named, and names such as `..data`, which Kubernetes swaps to replace a
   * folder.
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

/** Tells a folder from another one of its name. A number alone may be given again at once. */
const identityOf = ({ dev, ino, birthtimeMs }: Stats): string => `${dev}:${ino}:${birthtimeMs}`

/** Links on the way to `paths`, and to where those lead: releases are switched by one. */
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
