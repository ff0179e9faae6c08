/** Base64 of images in answers: cut out of a body without copies where it is plain, cleaned where it is not. */
import { Base64Slice, errors, type Frame, isObject, jsonIn, withoutSpace } from '../../../src/plugin.ts'
import { afterSpace, parsed } from '../answer.ts'

const QUOTE = 0x22
const COLON = 0x3a
/** Shorter ones are parsed with the rest. */
const MIN_CUT_CHARACTERS = 4096
/** Maximum size of a body without its images, in characters. */
const MAX_REST_CHARACTERS = 1024 * 1024
/** Stands for an image that was cut out; no base64 holds it. */
const MARK = '@'

/** Which bytes are of the alphabet (RFC 4648 section 4). */
const ALPHABET = new Uint8Array(256)
for (const char of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/') ALPHABET[char.charCodeAt(0)] = 1

/** Holds a parsed answer and the images cut out of it. */
interface ImageAnswer {
  readonly answer: unknown
  /** Long images that were cut out of it; in their places stand `@` and an index of these. */
  readonly slices: readonly Base64Slice[]
}

/** Reads a body; images are the values of `name` in it. Throws the error of an answer that is not JSON. */
export function imageAnswer(frame: Frame, name: string): ImageAnswer {
  const cut = frame.bytes && cutImages(frame.bytes, name)
  return cut ?? { answer: parsedImages(frame), slices: [] }
}

/** Parses a frame without cutting images out. */
export const parsedImages = (frame: Frame): unknown => parsed(frame)

/** Cuts the values of `name` out. Undefined for a body that is better parsed as a whole. */
function cutImages(body: Buffer, name: string): ImageAnswer | undefined {
  const key = `"${name}"`
  const slices: Base64Slice[] = []
  let rest = ''
  let done = 0
  for (let at = body.indexOf(key); at >= 0; at = body.indexOf(key, at)) {
    at = afterSpace(body, at + key.length)
    if (body[at] !== COLON) continue
    at = afterSpace(body, at + 1)
    const end = body[at] === QUOTE ? body.indexOf(QUOTE, at + 1) : -1
    if (end - at < MIN_CUT_CHARACTERS) continue
    const bytes = body.subarray(at + 1, end)
    if (rest.length + at - done > MAX_REST_CHARACTERS || !isPlain(bytes)) return undefined
    rest += `${body.toString('utf8', done, at + 1)}${MARK}${slices.length}`
    slices.push(new Base64Slice(bytes))
    done = end
    at = end
  }
  if (slices.length === 0 || body.length - done + rest.length > MAX_REST_CHARACTERS) return undefined
  const answer = jsonIn(rest + body.toString('utf8', done))
  return isObject(answer) ? { answer, slices } : undefined
}

function isPlain(bytes: Buffer): boolean {
  let end = bytes.length
  while (end > 0 && bytes[end - 1] === 0x3d) end--
  if (bytes.length - end > 2) return false
  for (let at = 0; at < end; at++) if (ALPHABET[bytes[at]!] === 0) return false
  return true
}

/**
 * The image that a value of an answer holds: a mark of `slices`, or base64 that may have line breaks or the
 * head of a data URL. Throws the error of an answer for what is none.
 */
export function imageIn(value: string, slices: readonly Base64Slice[] = []): string | Base64Slice {
  if (value.startsWith(MARK)) {
    const slice = slices[Number(value.slice(1))]
    if (slice) return slice
  }
  const head = HEAD.exec(value.slice(0, MAX_HEAD_CHARACTERS))?.[0].length ?? 0
  const base64 = withoutSpace(value.slice(head))
  if (!PLAIN.test(base64)) throw notBase64()
  return base64
}
const MAX_HEAD_CHARACTERS = 256
const HEAD = /^data:[^,]{0,250},/
const PLAIN = /^[A-Za-z0-9+/]+={0,2}$/
const notBase64 = () => errors.invalidAnswer('an image in it is not base64')
