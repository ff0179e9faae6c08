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
