/** Files that a configuration file names: read with it, at every reload. */
import { readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { sha256 } from '../lib/opaque.ts'
import { systemErrorText } from './reference.ts'
import type { Path, Source } from './source.ts'

const MAX_FILE_BYTES = 1024 * 1024

/** A key that names a file, and where it stands. */
export interface NamedFile {
  readonly key: string
  readonly path: Path
  /** Relative to the folder of the configuration file. */
  readonly file: string
}

/** The parts of a configuration file that its named files change. */
interface NamingFile {
  readonly source: Source
  readonly digest: string
  readonly references: readonly string[]
  readonly contents?: Readonly<Record<string, string>>
}

/**
 * Returns the configuration file with the contents of these. Its digest counts them, and its references name them, so that
 * a change of one is a change of the configuration. Adds their paths to `noted` before it reads. Throws a ConfigError.
 */
export async function withContents<F extends NamingFile>(
  file: F,
  named: readonly NamedFile[],
  folder: string,
  noted: Set<string>,
): Promise<F> {
  if (named.length === 0) return file
  const contents: Record<string, string> = {}
  const paths = named.map(({ file: written }) => resolve(folder, written))
  for (const path of paths) noted.add(path)
  for (const { key, path, file: written } of named) {
    const absolute = resolve(folder, written)
    const refuse = (why: string) => file.source.error(`the file "${absolute}" cannot be read: ${why}`, path)
    contents[key] = await read(absolute, refuse)
  }
  const digest = sha256(JSON.stringify([file.digest, contents]))
  return { ...file, contents, digest, references: [...file.references, ...paths] }
}

async function read(path: string, refuse: (why: string) => Error): Promise<string> {
  let text: string
  try {
    const facts = await stat(path)
    if (!facts.isFile()) throw refuse('it is not a file')
    if (facts.size > MAX_FILE_BYTES) throw refuse(`it is larger than ${MAX_FILE_BYTES} bytes`)
    text = await readFile(path, 'latin1')
  } catch (thrown) {
    throw (thrown as NodeJS.ErrnoException).code === undefined ? thrown : refuse(systemErrorText(thrown))
  }
  return text
}
