/**
 * Saves images below the folder that `UPLOAD_DIR` names, in one folder for each organization: never over another file,
 * and never through a link.
 */
import { access, constants, lstat, mkdir, open, readdir, stat, unlink } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import type { FolderUse, UploadFolder } from '../../core/ports.ts'
import { FairShare } from '../../limits/share.ts'
import { imageType } from '../../media/type.ts'
import type { Block } from '../tool.ts'

const MODE = 0o640
const FOLDER_MODE = 0o750
const MAX_NAME_BYTES = 200
/** Room for `-4` and an extension. */
const SUFFIX_BYTES = 10
const EXTENSION = /\.(?:png|jpe?g|gif|webp)$/i
const extensions: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
}

/** A name without its extension, and that, where the caller has given one. */
export interface Names {
  readonly stem: string
  readonly extension: string | undefined
}

/** Share of the space left by others that one organization may take. */
const TENANT_SHARE = 1 / 2
/** Files of the whole folder. */
export const MAX_FILES = 10_000
/** How long the sum of all files is taken as it was read: the operator may remove some. */
const READ_EVERY_MS = 60_000

class Folder implements UploadFolder {
  readonly path: string
  readonly #now: () => number
  /** Files that this process has saved, by organization. */
  readonly #saved = new Map<string, FolderUse>()
  /** One write at a time; organizations take turns. */
  readonly #slot = new FairShare(1)
  #all: FolderUse = NOTHING
  #readAt = Number.NEGATIVE_INFINITY

  constructor(path: string, now: () => number) {
    this.path = path
    this.#now = now
  }

  async write(org: string, added: FolderUse, most: number, write: () => Promise<void>): Promise<boolean> {
    const bound = { bytes: most, files: MAX_FILES }
    return (await this.#slot.during(org, {}, () => this.#write(org, added, bound, write)))!
  }

  async #write(org: string, added: FolderUse, most: FolderUse, write: () => Promise<void>): Promise<boolean> {
    if (this.#now() - this.#readAt >= READ_EVERY_MS) {
      this.#readAt = this.#now()
      this.#all = await this.#read()
    }
    const all = this.#all
    const saved = this.#saved.get(org) ?? NOTHING
    // The operator may have removed files since.
    const own = { bytes: Math.min(all.bytes, saved.bytes), files: Math.min(all.files, saved.files) }
    const fits = (of: keyof FolderUse) =>
      all[of] + added[of] <= most[of] && own[of] + added[of] <= TENANT_SHARE * (most[of] - (all[of] - own[of]))
    if (!fits('bytes') || !fits('files')) return false
    await write()
    this.#all = sumOf(all, added)
    this.#saved.set(org, sumOf(own, added))
    return true
  }

  /** All files, those of the operator as well. */
  async #read(): Promise<FolderUse> {
    let all = NOTHING
    for (const name of await readdir(this.path, { recursive: true })) {
      const file = await lstat(join(this.path, name)).catch(() => undefined)
      if (file?.isFile()) all = sumOf(all, { bytes: file.size, files: 1 })
    }
    return all
  }
}

const NOTHING: FolderUse = { bytes: 0, files: 0 }
const sumOf = (a: FolderUse, b: FolderUse): FolderUse => ({ bytes: a.bytes + b.bytes, files: a.files + b.files })

/**
 * The folder that the environment names; undefined for none. Rejects with an Error that names the variable. `now` is a
 * monotonic clock in milliseconds.
 */
export async function uploadFolder(
  given: string | undefined,
  now: () => number = () => performance.now(),
): Promise<UploadFolder | undefined> {
  if (!given) return undefined
  const wrong = (why: string) => new Error(`the environment variable UPLOAD_DIR is "${given}"; ${why}`)
  if (!isAbsolute(given)) throw wrong('it must be an absolute path')
  const found = await stat(given).catch(() => undefined)
  if (!found?.isDirectory()) throw wrong('it must be a folder that exists')
  await access(given, constants.W_OK | constants.X_OK).catch(() => {
    throw wrong('it must be a folder that can be written')
  })
  return new Folder(given, now)
}

/** Joins the folder of an organization's images: its names cannot collide with those of another organization. */
export const folderOf = ({ path }: UploadFolder, org: string): string => join(path, org)

/** The name of an image's file, or what is wrong with it. Without a folder only the name itself is checked. */
export async function namesFor(
  folder: string | undefined,
  filename: string | undefined,
  now: number,
): Promise<Names | string> {
  const name = filename ?? `nano-banana-${now}.png`
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a name must not hold
  if (/[/\\:\u0000-\u001f]/.test(name)) return 'must be a name without path separators'
  if (name.startsWith('.')) return 'must not begin with a dot'
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return `must be at most ${MAX_NAME_BYTES} bytes`
  const extension = EXTENSION.exec(name)?.[0]
  const names = { stem: extension ? name.slice(0, -extension.length) : name, extension }
  if (names.stem === '') return 'must be more than an extension'
  const taken = extension ? [name] : [name, ...Object.values(extensions).map(type => `${name}.${type}`)]
  if (folder === undefined) return names
  for (const one of taken) if (await isThere(join(folder, one))) return 'is the name of a file that is there already'
  return names
}

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )

/**
 * Resolves with the names of the files; undefined where there is no room for them. Rejects where one cannot be made;
 * then nothing is left of it, and those before it stay.
 */
export async function save(
  folder: UploadFolder,
  { stem, extension }: Names,
  images: readonly Block[],
  org: string,
  most: number,
): Promise<string[] | undefined> {
  const files = images.flatMap(image => (image.type === 'image' ? [Buffer.from(image.data, 'base64')] : []))
  const saved: string[] = []
  const write = async () => {
    await mkdir(folderOf(folder, org), { recursive: true, mode: FOLDER_MODE })
    for (const [index, bytes] of files.entries()) {
      const own = extensions[imageType(bytes) ?? '']
      const end = extension ?? `.${own ?? 'png'}`
      const number = files.length > 1 ? `-${index + 1}` : ''
      const name = `${stem.slice(0, MAX_NAME_BYTES - SUFFIX_BYTES)}${number}${end}`
      await writeNew(join(folderOf(folder, org), name), bytes)
      saved.push(name)
    }
  }
  const bytes = files.reduce((sum, { length }) => sum + length, 0)
  return (await folder.write(org, { bytes, files: files.length }, most, write)) ? saved : undefined
}

async function writeNew(path: string, bytes: Buffer): Promise<void> {
  const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW } = constants
  const file = await open(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, MODE)
  try {
    await file.writeFile(bytes)
  } catch (thrown) {
    await unlink(path)
    throw thrown
  } finally {
    await file.close()
  }
}
