/** Images, documents, audio and video as blocks of bytes; the wire accepts no addresses. */
import { errors, isText, typeOfBase64 } from '../../src/plugin.ts'
import type { UniqueNames } from '../shared/claude/unique-names.ts'
import type { Block } from './block.ts'

type Kind = 'image' | 'document' | 'audio' | 'video'
interface Medium {
  readonly kind: Kind
  readonly format: string
}

const medium = (kind: Kind, format: string): Medium => ({ kind, format })

const OFFICE = 'application/vnd.openxmlformats-officedocument'
/** Media types whose subtype is not a format of the wire. */
const TYPES: ReadonlyMap<string, Medium> = new Map([
  ['application/pdf', medium('document', 'pdf')],
  ['application/msword', medium('document', 'doc')],
  [`${OFFICE}.wordprocessingml.document`, medium('document', 'docx')],
  ['application/vnd.ms-excel', medium('document', 'xls')],
  [`${OFFICE}.spreadsheetml.sheet`, medium('document', 'xlsx')],
  ['application/json', medium('document', 'txt')],
  ['application/xml', medium('document', 'txt')],
  ['text/csv', medium('document', 'csv')],
  ['text/html', medium('document', 'html')],
  ['text/markdown', medium('document', 'md')],
  ['audio/mpeg', medium('audio', 'mp3')],
  ['audio/x-wav', medium('audio', 'wav')],
  ['audio/wave', medium('audio', 'wav')],
  ['audio/x-m4a', medium('audio', 'm4a')],
  ['video/quicktime', medium('video', 'mov')],
  ['video/x-matroska', medium('video', 'mkv')],
  ['video/x-flv', medium('video', 'flv')],
  ['video/x-ms-wmv', medium('video', 'wmv')],
  ['video/3gpp', medium('video', 'three_gp')],
])
const FORMATS: Readonly<Record<Exclude<Kind, 'image'>, ReadonlySet<string>>> = {
  document: new Set(['pdf', 'csv', 'doc', 'docx', 'xls', 'xlsx', 'html', 'txt', 'md']),
  audio: new Set(['wav', 'mp3', 'aac', 'ogg', 'opus', 'flac', 'm4a', 'mpeg', 'mpga', 'mp4', 'pcm', 'webm', 'mkv']),
  video: new Set(['mp4', 'mov', 'mkv', 'webm', 'flv', 'mpeg', 'mpg', 'wmv', 'three_gp']),
}
/** File types that are sent under their own name. The file's name cannot turn it into another type. */
const TEXTS: ReadonlySet<string> = new Set(['csv', 'html', 'txt', 'md'])
const IMAGE_TYPES: ReadonlySet<string> = new Set(['png', 'jpeg', 'gif', 'webp'])
const IMAGES = 'a PNG, JPEG, GIF or WebP image'

const mediaBlock = ({ kind, format }: Medium, bytes: string): Block => ({ [kind]: { format, source: { bytes } } })

/** Throws 400 for anything but an image of the wire; `at` names the field. */
export function imageBlock(base64: string, at: string): Block {
  const found = mediumOf(typeOfBase64(base64, ''), undefined)
  if (found?.kind === 'image' && IMAGE_TYPES.has(found.format)) return mediaBlock(found, base64)
  throw errors.invalidParameters(`${at} does not hold ${IMAGES}.`, at)
}

/** The bytes take precedence over the caller's `format`. */
export function audioBlock(base64: string, format: string, at: string): Block {
  const found = mediumOf(typeOfBase64(base64, `audio/${format}`), undefined)
  if (found?.kind === 'audio') return mediaBlock(found, base64)
  if (FORMATS.audio.has(format)) return mediaBlock(medium('audio', format), base64)
  const formats = [...FORMATS.audio].join(', ')
  throw errors.unsupported(`${at} is "${format}"; this provider takes ${formats}.`, at)
}

/** A file of the type `mime`, whose name gives its format where that does not. */
export function fileBlock(
  base64: string,
  mime: string,
  filename: string | undefined,
  names: UniqueNames,
  at: string,
): Block {
  const found = mediumOf(mime, filename)
  if (!found) {
    const formats = [...FORMATS.document].join(', ')
    throw errors.unsupported(`${at} is "${mime}"; this provider takes ${formats}, images, audio and video.`, at)
  }
  if (found.kind !== 'document') return found.kind === 'image' ? imageBlock(base64, at) : mediaBlock(found, base64)
  return { document: { format: found.format, name: names.unique(filename ?? ''), source: { bytes: base64 } } }
}

function mediumOf(mime: string, filename: string | undefined): Medium | undefined {
  const known = TYPES.get(mime)
  if (known) return known
  const [type, subtype = ''] = mime.split('/')
  if (type === 'image') return medium('image', subtype)
  if ((type === 'audio' || type === 'video') && FORMATS[type].has(subtype)) return medium(type, subtype)
  const extension = /\.([a-z0-9]+)$/i.exec(filename ?? '')?.[1]?.toLowerCase() ?? ''
  if (isText(mime)) return medium('document', TEXTS.has(extension) ? extension : 'txt')
  for (const kind of ['document', 'video', 'audio'] as const) {
    if (FORMATS[kind].has(extension)) return medium(kind, extension)
  }
  return undefined
}
