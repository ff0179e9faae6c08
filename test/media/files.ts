/** Small media files for tests. */

export const latin = (text: string): Buffer => Buffer.from(text, 'latin1')
export const times = (count: number, one: Buffer): Buffer => Buffer.concat(Array.from({ length: count }, () => one))

/** A frame of MPEG audio: the four bytes of its head, and zeros. */
const mpeg = (head: number, bytes: number): Buffer => {
  const frame = Buffer.alloc(bytes)
  frame.writeUInt32BE(head, 0)
  return frame
}
/** Frames of MP3 with 128 kbit/s and 26 ms, and with 8 kbit/s and 72 ms. */
export const usual = mpeg(0xfffb_9000, 417)
export const slow = mpeg(0xffe3_18c0, 72)

/** A frame of AAC in ADTS with 44,100 samples a second. */
export function adts(bytes: number): Buffer {
  const frame = Buffer.alloc(bytes)
  frame.writeUInt32BE(0xfff1_5080 + (bytes >>> 11), 0)
  frame.writeUIntBE((bytes & 0x7ff) * 0x2000, 4, 3)
  return frame
}

/** A tag of ID3v2 with so many bytes. */
export const tag = (bytes: number): Buffer =>
  Buffer.concat([latin('ID3\x04\0\0\0\0'), Buffer.from([bytes >> 7, bytes & 127]), Buffer.alloc(bytes)])

/** The head of FLAC with so many samples a second, and samples. */
export function flac(rate: number, samples: number): Buffer {
  const head = Buffer.alloc(42)
  head.write('fLaC')
  head.writeUInt32BE(0x8000_0022, 4)
  head.writeUIntBE(rate << 4, 18, 3)
  head.writeUInt32BE(samples, 22)
  return head
}

/** AIFF of samples with 16 bits. */
export function aiff(rate: number, bytes: number): Buffer {
  const common = Buffer.alloc(18)
  common.writeUInt16BE(1, 0)
  common.writeUInt32BE(bytes / 2, 2)
  common.writeUInt16BE(16, 6)
  const exponent = Math.floor(Math.log2(rate))
  common.writeUInt16BE(16_383 + exponent, 8)
  common.writeUInt32BE(rate * 2 ** (31 - exponent), 10)
  const chunk = (name: string, data: Buffer) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(data.length)
    return Buffer.concat([latin(name), length, data])
  }
  const body = Buffer.concat([latin('AIFF'), chunk('COMM', common), chunk('SSND', Buffer.alloc(bytes + 8))])
  return chunk('FORM', body)
}

/** A page of Ogg that ends at a position in samples. */
export function page(position: number, data: Buffer = Buffer.alloc(0), flags = 0): Buffer {
  const head = Buffer.alloc(28)
  head.write('OggS')
  head[5] = flags
  head.writeBigInt64LE(BigInt(position), 6)
  head[26] = 1
  head[27] = data.length
  return Buffer.concat([head, data])
}
const vorbisHead = Buffer.concat([latin('\x01vorbis\0\0\0\0\x01'), Buffer.from('44ac0000', 'hex'), Buffer.alloc(12)])
export const opus = (seconds: number): Buffer =>
  Buffer.concat([page(0, latin(`OpusHead\x01\x01${'\0'.repeat(9)}`), 2), Buffer.alloc(100_000), page(seconds * 48_000)])
export const vorbis = (seconds: number): Buffer =>
  Buffer.concat([page(0, vorbisHead, 2), Buffer.alloc(100_000), page(seconds * 44_100)])

/** An element of EBML, its id in hexadecimal. */
const element = (id: string, data: Buffer): Buffer => {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(0x1000_0000 + data.length)
  return Buffer.concat([Buffer.from(id, 'hex'), length, data])
}
/** WebM whose head says so many seconds, or none. */
export function webm(seconds: number | undefined, bytes = 1000): Buffer {
  const said = Buffer.alloc(8)
  said.writeDoubleBE((seconds ?? 0) * 1000)
  const info = element('1549a966', seconds === undefined ? element('4d80', latin('x')) : element('4489', said))
  const head = element('1a45dfa3', element('4282', latin('webm')))
  return Buffer.concat([head, element('18538067', Buffer.concat([info, element('1f43b675', Buffer.alloc(bytes))]))])
}

/** A box of MP4. */
export function box(name: string, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const head = Buffer.alloc(8)
  head.writeUInt32BE(body.length + 8, 0)
  head.write(name, 4, 'latin1')
  return Buffer.concat([head, body])
}
const fields = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex')

/** MP4 with sound of so many seconds, whose index stands behind `bytes` of media or before them. */
export function m4a(seconds: number, bytes = 1000, isIndexLast = true, brand = 'M4A '): Buffer {
  const duration = Buffer.alloc(4)
  duration.writeUInt32BE(seconds * 48_000)
  const header = Buffer.concat([fields('00000000 00000000 00000000 0000bb80'), duration, fields('55c4 0000')])
  const track = box(
    'trak',
    box('tkhd', fields('00000007 00000000 00000000 00000001 00000000'), duration, Buffer.alloc(60)),
    box(
      'mdia',
      box('mdhd', header),
      box('hdlr', fields('00000000 00000000'), latin('soun'), Buffer.alloc(13)),
      box(
        'minf',
        box(
          'stbl',
          box(
            'stsd',
            fields('00000000 00000001'),
            box('mp4a', fields('000000000000 0001 0000 0000 00000000 0002 0010 0000 0000 bb800000')),
          ),
          box('stsz', fields('00000000 00000000 00000001'), duration),
        ),
      ),
    ),
  )
  const index = box(
    'moov',
    box('mvhd', fields('00000000 00000000 00000000 0000bb80'), duration, Buffer.alloc(80)),
    track,
  )
  const media = box('mdat', Buffer.alloc(bytes))
  return Buffer.concat([box('ftyp', latin(`${brand}\0\0\0\0`)), ...(isIndexLast ? [media, index] : [index, media])])
}
