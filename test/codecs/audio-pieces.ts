/** Pieces of files of audio: frames, and tags. */
import { audioLength } from '../../src/lib/audio-seconds.ts'

export const lengthOf = (...pieces: Buffer[]) => audioLength({ pieces, size: Buffer.concat(pieces).length })
export const near = (seconds: number) => Math.round(seconds * 1e6) / 1e6

/** A frame of MPEG audio: the four bytes of its head, and zeros. */
export const mpeg = (head: number, bytes: number) => {
  const frame = Buffer.alloc(bytes)
  frame.writeUInt32BE(head, 0)
  return frame
}
/** Of 26 ms, the slowest there is, of 72 ms, and the largest, of 144 ms. */
export const usual = mpeg(0xfffb_9000, 417)
export const slow = mpeg(0xffe3_18c0, 72)
export const largest = mpeg(0xffe5_ea00, 2881)
export const times = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one)
/** AAC in ADTS of `blocks` and 44,100 samples a second. */
export const adts = (bytes: number, blocks = 1, said = bytes) => {
  const frame = Buffer.alloc(bytes)
  frame.writeUInt32BE(0xfff1_5080 + (said >>> 11), 0)
  frame.writeUIntBE((said & 0x7ff) * 0x2000 + blocks - 1, 4, 3)
  return frame
}
/** The head of FLAC, of so many samples a second, and samples. */
export const flac = (rate: number, samples: number) => {
  const head = Buffer.alloc(42)
  head.write('fLaC')
  head.writeUInt32BE(0x8000_0022, 4)
  head.writeUInt16BE(4096, 8)
  head.writeUInt16BE(65_535, 10)
  head.writeUIntBE(rate << 4, 18, 3)
  head.writeUInt32BE(samples, 22)
  return head
}
/** The head of a frame of FLAC by the codes of its block and its rate, and four zeros in the place of its samples. */
export const flacFrame = (
  block: number,
  rate: number,
  more: { samples?: number; rate?: number; number?: number } = {},
) => {
  const { samples = 1, rate: said = 0, number = 0 } = more
  const bytes = [0xff, 0xf8, (block << 4) | rate, 0x18, ...flacNumber(number)]
  if (block === 6) bytes.push(samples - 1)
  else if (block === 7) bytes.push((samples - 1) >> 8, (samples - 1) & 255)
  const unit = [1000, 1, 10][rate - 12]
  if (unit === 1000) bytes.push(said / unit)
  else if (unit !== undefined) bytes.push((said / unit) >> 8, (said / unit) & 255)
  let check = 0
  for (const byte of bytes) {
    check ^= byte
    for (let bit = 0; bit < 8; bit++) check = check & 0x80 ? ((check << 1) & 255) ^ 7 : check << 1
  }
  return Buffer.from([...bytes, check, 0, 0, 0, 0])
}
/** As UTF-8 goes on for larger ones: six bits a byte behind the first. */
function flacNumber(number: number): number[] {
  if (number < 128) return [number]
  const bytes: number[] = []
  let left = number
  for (; left >= 2 ** (6 - bytes.length); left = Math.floor(left / 64)) bytes.unshift(0x80 + (left % 64))
  return [((0xff00 >> (bytes.length + 1)) & 255) | left, ...bytes]
}
/** ID3v2.4 around `bytes`. */
export const tag = (bytes: number, flags = 0) => {
  const head = Buffer.from([
    0x49,
    0x44,
    0x33,
    4,
    0,
    flags,
    (bytes >> 21) & 127,
    (bytes >> 14) & 127,
    (bytes >> 7) & 127,
    bytes & 127,
  ])
  return Buffer.concat([head, Buffer.alloc(bytes, 'OggS'), Buffer.alloc(flags ? 10 : 0)])
}
export const tagOf = (...pieces: Buffer[]) => {
  const body = Buffer.concat(pieces)
  return Buffer.concat([tag(body.length).subarray(0, 10), body])
}
/** ID3v1, whose last byte is a genre. */
export const oldTag = (genre = 0, body = Buffer.alloc(0)) => {
  const bytes = Buffer.alloc(128)
  bytes.write('TAG')
  body.copy(bytes, 3)
  bytes[127] = genre
  return bytes
}
/** APEv2 with a head and a foot. */
export const apeTag = (bytes: number, body = Buffer.alloc(bytes, 'gain')) => {
  const head = Buffer.alloc(32)
  head.write('APETAGEX')
  head.writeUInt32LE(2000, 8)
  head.writeUInt32LE(body.length + 32, 12)
  head.writeUInt32LE(0xa000_0000, 20)
  const foot = Buffer.from(head)
  foot.writeUInt32LE(0x8000_0000, 20)
  return Buffer.concat([head, body, foot])
}
/** As of pictures in JPEG: no byte of 255 stands before one of 224 or more. */
export const noise = (length: number) => {
  const random = numbers()
  return Buffer.from(Array.from({ length }, (_, at) => (at % 2 ? random() * 224 : random() * 256)))
}
/** From 0 to 1, the same ones each time (Numerical Recipes, section 7.1). */
export function numbers(): () => number {
  let last = 1
  return () => {
    last = (Math.imul(last, 1_664_525) + 1_013_904_223) >>> 0
    return last / 2 ** 32
  }
}
