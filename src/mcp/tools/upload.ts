/** Saves images in the folder that `UPLOAD_DIR` names: never over another file, and never through a link. */
import { access, constants, lstat, open, stat } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { imageType } from '../../lib/image-type.ts'
import type { Block } from '../tool.ts'

const MODE = 0o640
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

/** The folder that the environment names; undefined for none. Rejects with an Error that names the variable. */
export async function uploadFolder(given: string | undefined): Promise<string | undefined> {
  if (!given) return undefined
  const wrong = (why: string) => new Error(`the environment variable UPLOAD_DIR is "${given}"; ${why}`)
  if (!isAbsolute(given)) throw wrong('it must be an absolute path')
  const found = await stat(given).catch(() => undefined)
  if (!found?.isDirectory()) throw wrong('it must be a folder that exists')
  await access(given, constants.W_OK | constants.X_OK).catch(() => {
    throw wrong('it must be a folder that can be written')
  })
  return given
}

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

/** Resolves with the paths of the files. Rejects where one cannot be made; those before it stay. */
export async function save(folder: string, { stem, extension }: Names, images: readonly Block[]): Promise<string[]> {
  const paths: string[] = []
  for (const [index, image] of images.entries()) {
    if (image.type !== 'image') continue
    const bytes = Buffer.from(image.data, 'base64')
    const own = extensions[imageType(bytes) ?? '']
    const end = extension ?? `.${own ?? 'png'}`
    const number = images.length > 1 ? `-${index + 1}` : ''
    const path = join(folder, `${stem.slice(0, MAX_NAME_BYTES - SUFFIX_BYTES)}${number}${end}`)
    const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW } = constants
    const file = await open(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, MODE)
    try {
      await file.writeFile(bytes)
    } finally {
      await file.close()
    }
    paths.push(path)
  }
  return paths
}
