/** Creates folders. */
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Creates a folder with its parents; an existing one stays as it is. Throws the system's error. `mkdirSync` with
 * `recursive` never returns below `/proc`, which answers ENOENT for a parent that exists.
 */
export function makeFolder(folder: string, mode = 0o777): void {
  try {
    mkdirSync(folder, { mode })
  } catch (thrown) {
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return
    const parent = dirname(folder)
    if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT' || existsSync(parent)) throw thrown
    makeFolder(parent, mode)
    makeFolder(folder, mode)
  }
}
