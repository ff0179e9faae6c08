/** Tells when configuration files may have changed. What changed is for the caller to find out: by reading them. */
import { stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
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
}

/** Resolves when changes are seen, with the function that ends it. */
export async function watchConfig(options: WatchOptions): Promise<() => Promise<void>> {
  const { paths, onChange, onError, debounceMs = 250 } = options
  let timer: NodeJS.Timeout | undefined
  let busy: Promise<void> = Promise.resolve()
  let closed = false
  let touched = new Set<string>()

  const wait = (then: () => Promise<void>) => {
    clearTimeout(timer)
    if (closed) return
    timer = setTimeout(() => {
      busy = busy.then(then).catch(onError)
    }, debounceMs)
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
    const last = watcher
    watcher = await open(next, note, onError)
    scope = next
    await last.close()
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

  constructor(folders: ReadonlySet<string>, files: ReadonlySet<string>) {
    this.folders = folders
    this.#files = files
  }

  static async of(paths: readonly string[]): Promise<Scope> {
    const folders = new Set<string>()
    const files = new Set<string>()
    for (const path of paths) {
      const facts = await stat(path).catch(() => undefined)
      // What is not there yet is awaited where it will appear.
      if (!facts?.isDirectory()) files.add(path)
      folders.add(facts?.isDirectory() ? path : dirname(path))
    }
    return new Scope(folders, files)
  }

  /** YAML files and modules, the files that are named, and names such as `..data`, which Kubernetes swaps to replace a folder. */
  holds(path: string): boolean {
    const name = basename(path)
    if (!this.folders.has(dirname(path))) return false
    return this.#files.has(path) || name.startsWith('..') || (OURS.test(name) && !name.startsWith('.'))
  }

  equals(other: Scope): boolean {
    const same = (a: ReadonlySet<string>, b: ReadonlySet<string>) => a.size === b.size && [...a].every(p => b.has(p))
    return same(this.folders, other.folders) && same(this.#files, other.#files)
  }
}

async function someEmpty(paths: Iterable<string>): Promise<boolean> {
  for (const path of paths) {
    const facts = await stat(path).catch(() => undefined)
    if (facts?.isFile() && facts.size === 0) return true
  }
  return false
}
