/** Results of jobs as files with random names, written completely or not at all. Several nodes may share the folder. */
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { BlobStore } from '../core/ports.ts'

const HEAD_BYTES = 64
const CHUNK_BYTES = 64 * 1024
/** Age after which a file that no row names is left from a crash. */
const ABANDONED_MS = 86_400_000
/** The subfolders of blobs. Others in the folder are not ours. */
const SUBFOLDER = /^[\da-f]{2}$/

/** Undefined where there is no such file or folder. Rejects with any other error, which does not mean that. */
const ifThere = <T>(found: Promise<T>): Promise<T | undefined> =>
  found.catch((thrown: unknown) => {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw thrown
  })

/** The blobs of jobs under `folder`, in subfolders by the first two digits of their names. */
export class FileBlobs implements BlobStore {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Rejects with `tooLarge()` beyond `maxBytes` and leaves no file. */
  async write(chunks: AsyncIterable<Buffer>, maxBytes: number, tooLarge: () => Error) {
    const blob = randomBytes(16).toString('hex')
    const path = this.#pathOf(blob)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const file = await open(`${path}.new`, 'wx', 0o600)
    const hash = createHash('sha256')
    let bytes = 0
    let head = Buffer.alloc(0)
    try {
      for await (const chunk of chunks) {
        bytes += chunk.length
        if (bytes > maxBytes) throw tooLarge()
        if (head.length < HEAD_BYTES) head = Buffer.concat([head, chunk.subarray(0, HEAD_BYTES)])
        hash.update(chunk)
        await file.write(chunk)
      }
      await file.sync()
      await file.close()
      await rename(`${path}.new`, path)
    } catch (thrown) {
      await file.close().catch(() => undefined)
      await rm(`${path}.new`, { force: true })
      throw thrown
    }
    return { blob, bytes, etag: `"${hash.digest('hex')}"`, head: head.subarray(0, HEAD_BYTES) }
  }

  /** Bytes from `start` to `end`, inclusive; undefined when the file is missing. */
  async read(blob: string, start: number, end: number): Promise<AsyncIterable<Buffer> | undefined> {
    const file = await ifThere(open(this.#pathOf(blob)))
    if (!file) return undefined
    return createReadStream('', { fd: file, start, end: Math.max(start, end), highWaterMark: CHUNK_BYTES })
  }

  async remove(blob: string): Promise<void> {
    await rm(this.#pathOf(blob), { force: true })
  }

  /** Removes files older than a day that no row names. `named` returns those of a list that rows name. */
  async sweep(named: (blobs: readonly string[]) => Promise<Set<string>>, now: number): Promise<void> {
    for (const part of (await ifThere(readdir(this.#folder))) ?? []) {
      if (!SUBFOLDER.test(part)) continue
      const names = (await ifThere(readdir(join(this.#folder, part)))) ?? []
      const old: string[] = []
      for (const name of names) {
        const found = await ifThere(stat(join(this.#folder, part, name)))
        if (found && found.mtimeMs < now - ABANDONED_MS) old.push(name)
      }
      if (old.length === 0) continue
      const kept = await named(old)
      for (const name of old) if (!kept.has(name)) await rm(join(this.#folder, part, name), { force: true })
    }
  }

  #pathOf(blob: string): string {
    return join(this.#folder, blob.slice(0, 2), blob)
  }
}
