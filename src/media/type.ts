/** Decides the type of a file. The same answer decides the hold and the type that each wire sends. */
import { isUtf8 } from 'node:buffer'

/** Bytes of a file that say so: a PDF may begin behind 1,024 others. */
export const MEDIA_HEAD_BYTES = 1032

/** Type of a file that only its name describes further. */
const UNKNOWN = 'application/octet-stream'
const PDF = 'application/pdf'
const PDF_SIGN = '%PDF-'
/** Characters of a head that signs match. */
const SIGN_CHARACTERS = 32

/** A sign, the type that it proves, and others of the same form that a client may declare. */
type Sign = readonly [sign: RegExp, type: string, others?: RegExp]

const SOUND_OR_VIDEO = /^(?:audio|video)\//
const DOCUMENT = /^application\/(?!(?:octet-stream|pdf|json)$)/

const IMAGES = [
  [/^\x89PNG/, 'image/png'],
  [/^\xff\xd8\xff/, 'image/jpeg'],
  [/^GIF8/, 'image/gif'],
  [/^RIFF.{4}WEBP/s, 'image/webp'],
] as const
/** A media type of an image that every provider of images reads. */
export type ImageType = (typeof IMAGES)[number][1]
/** Bytes of a head that identify such an image. */
export const IMAGE_HEAD_BYTES = 12

/** The media type by magic bytes; undefined for anything that is not PNG, JPEG, GIF or WebP. */
export function imageType(head: Buffer): ImageType | undefined {
  const text = head.toString('latin1', 0, IMAGE_HEAD_BYTES)
  return IMAGES.find(([sign]) => sign.test(text))?.[1]
}

/** Tests of a head as Latin-1 text, in order. */
const SIGNS: readonly Sign[] = [
  ...IMAGES,
  [/^.{4}ftyphe(?:ic|ix|vc)/s, 'image/heic'],
  [/^.{4}ftyp(?:mif1|msf1|heif)/s, 'image/heif'],
  [/^.{4}ftypavi[fs]/s, 'image/avif'],
  [/^(?:RIFF|RIFX|RF64|BW64).{4}WAVE/s, 'audio/wav'],
  [/^ID3/, 'audio/mp3'],
  [/^OggS/, 'audio/ogg'],
  [/^fLaC/, 'audio/flac'],
  [/^FORM.{4}AIF[FC]/s, 'audio/aiff'],
  [/^#!AMR/, 'audio/amr'],
  [/^.{4}ftypM4A/s, 'audio/m4a'],
  [/^.{4}ftypqt/s, 'video/quicktime'],
  [/^.{4}ftyp3g/s, 'video/3gpp'],
  [/^.{4}ftyp/s, 'video/mp4', SOUND_OR_VIDEO],
  [/^.E\xdf\xa3/s, 'video/webm', SOUND_OR_VIDEO],
  [/^FLV/, 'video/x-flv'],
  [/^RIFF.{4}AVI /s, 'video/x-msvideo', SOUND_OR_VIDEO],
  [/^0&\xb2u/, 'video/x-ms-wmv', SOUND_OR_VIDEO],
  [/^\0\0.[\xb3\xba]/s, 'video/mpeg', SOUND_OR_VIDEO],
  [/^PK/, 'application/zip', DOCUMENT],
  [/^\xd0\xcf.\xe0/s, 'application/x-ole-storage', DOCUMENT],
]
/** Signs of frames without a head. They are too short to prove that a file is not text. */
const FRAMES: readonly Sign[] = [
  [/^\xff[\xe2\xe3\xf2-\xf5\xfa-\xfd]/, 'audio/mp3'],
  [/^\xff[\xf0\xf1\xf8\xf9]/, 'audio/aac'],
]
/** Type that clients declare for text tables, and the right type. */
const EXCEL = 'application/vnd.ms-excel'
const TABLE = 'text/csv'
/** Types without "text/" of files that are text, or may be: of no known type, of tables, of data and of programs. */
const MAYBE_TEXT =
  /^(?:|application\/(?:octet-stream|vnd\.ms-excel|(?:x-)?(?:xml|javascript|ecmascript|typescript|yaml|toml|sql|sh|python|ndjson)|[^;]+\+(?:json|xml)))$/
/** White space and ESC, which text may have of the characters below it. */
const IN_TEXT = new Set([8, 9, 10, 11, 12, 13, 27])
const SPACE = 32

const EXTENSIONS: ReadonlyMap<string, string> = new Map([
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['gif', 'image/gif'],
  ['webp', 'image/webp'],
  ['heic', 'image/heic'],
  ['heif', 'image/heif'],
  ['pdf', PDF],
  ['txt', 'text/plain'],
  ['md', 'text/markdown'],
  ['html', 'text/html'],
  ['csv', 'text/csv'],
  ['json', 'application/json'],
  ['wav', 'audio/wav'],
  ['mp3', 'audio/mp3'],
  ['mp4', 'video/mp4'],
  ['webm', 'video/webm'],
  ['mkv', 'video/x-matroska'],
])

/** The type that a file name, or the path of an address, suggests. */
export function typeOfName(name: string): string | undefined {
  const extension = /\.([a-z0-9]+)(?:[?#].*)?$/is.exec(name)?.[1]?.toLowerCase()
  return extension === undefined ? undefined : EXTENSIONS.get(extension)
}

/** True for types whose bytes are characters, which many wires send as text. */
export const isText = (type: string): boolean => type.startsWith('text/') || type === 'application/json'

/** Whether readers of PDFs find one that begins in `head`. */
export const holdsPdf = (head: Buffer): boolean => head.includes(PDF_SIGN, 0, 'latin1')

/**
 * The type of a file whose first `MEDIA_HEAD_BYTES` bytes are `head`: what these prove, else what is `declared`, else what its name
 * says. Text is what it is declared as unless it begins like a PDF, or like another file with characters that text lacks. What
 * is declared as a type of data, or as none, is text where these bytes are, and neither those of a PDF nor of an image.
 */
export function mediaTypeOf(head: Buffer, declared: string, name = ''): string {
  if (MAYBE_TEXT.test(declared) && isUtf8Text(head) && imageType(head) === undefined && !holdsPdf(head)) {
    const named = typeOfName(name)
    return named !== undefined && isText(named) ? named : declared === EXCEL ? TABLE : 'text/plain'
  }
  const proven = provenAs(head, declared, name)
  if (proven !== undefined) return proven
  return declared === '' || declared === UNKNOWN ? (typeOfName(name) ?? UNKNOWN) : declared
}

function provenAs(head: Buffer, declared: string, name: string): string | undefined {
  const begin = head.toString('latin1', 0, SIGN_CHARACTERS)
  const isPdf = holdsPdf(head)
  if (isPdf && (declared === PDF || begin.startsWith(PDF_SIGN))) return PDF
  if (isText(declared)) return isPlain(begin) ? undefined : typeBy(SIGNS, begin, declared, name)
  return typeBy(SIGNS, begin, declared, name) ?? typeBy(FRAMES, begin, declared, name) ?? (isPdf ? PDF : undefined)
}

function isPlain(begin: string): boolean {
  for (let at = 0; at < begin.length; at++) {
    const code = begin.charCodeAt(at)
    if (code < SPACE && !IN_TEXT.has(code)) return false
  }
  return true
}

/** Whether the bytes are characters; the last one of them may be cut. */
function isUtf8Text(head: Buffer): boolean {
  for (let at = 0; at < head.length; at++) if (head[at]! < SPACE && !IN_TEXT.has(head[at]!)) return false
  return head.length > 0 && isUtf8(head.length < MEDIA_HEAD_BYTES ? head : head.subarray(0, endOfCharacters(head)))
}

/** Where a character begins that goes on behind the bytes, else their end. */
function endOfCharacters(bytes: Buffer): number {
  const end = bytes.length
  for (let at = end - 1; at >= end - 3; at--) {
    const byte = bytes[at]!
    if (byte < 0x80) return end
    if (byte >= 0xc0) return at + (byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4) > end ? at : end
  }
  return end
}

/**
 * Finds the type by the first matching sign. Among types of one form, the declared one counts, or the one of the name.
 */
function typeBy(signs: readonly Sign[], begin: string, declared: string, name: string): string | undefined {
  const found = signs.find(([sign]) => sign.test(begin))
  if (!found) return undefined
  const [, type, others] = found
  if (!others) return type
  return [declared, typeOfName(name)].find(other => other !== undefined && others.test(other)) ?? type
}
