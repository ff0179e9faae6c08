/** Files that are made to take long: what is looked at of one request takes 100 ms of CPU at most. */
import t from 'tap'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import { CALL_BOUNDS } from '../../src/json/shape.ts'
import { wavHead } from '../../src/lib/wav.ts'
import { measureMedia, mediaOf } from '../../src/operations/chat/media.ts'
import { cpuMeter } from '../helpers/cpu.ts'
import { box, flac, latin, opus, page, times, usual } from './files.ts'
import { pages, pdf } from './pdf-kit.ts'

const MiB = 1024 * 1024
const MOST_MS = 100
const asked = (content: object[]) => [{ role: 'user', content }] as unknown as ChatRequest['messages']
const file = (bytes: Buffer, type: string) => ({
  type: 'file',
  file: { file_data: `data:${type};base64,${bytes.toString('base64')}` },
})
const sound = (bytes: Buffer) => ({
  type: 'input_audio',
  input_audio: { data: bytes.toString('base64'), format: 'wav' },
})
const image = (bytes: Buffer) => ({
  type: 'image_url',
  image_url: { url: `data:image/png;base64,${bytes.toString('base64')}` },
})
const filled = (bytes: Buffer, size = MiB) => Buffer.concat([bytes, Buffer.alloc(size)]).subarray(0, size)
const repeated = (head: Buffer, one: Buffer, size = MiB) =>
  filled(Buffer.concat([head, times(size / one.length, one)]), size)
const many = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one)
/** As many parts as a body can hold: each is four JSON values. */
const MOST_PARTS = CALL_BOUNDS.values / 4

/** Boxes within boxes. */
function nested(name: string, count: number): Buffer {
  const bytes = Buffer.alloc(8 * count)
  for (let at = 0; at < count; at++) {
    bytes.writeUInt32BE(8 * (count - at), 8 * at)
    bytes.write(name, 8 * at + 4)
  }
  return bytes
}

/** A block of comments in FLAC, each of two letters. */
function comments(count: number): Buffer {
  const block = Buffer.alloc(12 + 6 * count)
  block.writeUInt32BE(block.length - 4)
  block[0] = 0x84
  block.writeUInt32LE(count, 8)
  for (let at = 0; at < count; at++) {
    block.writeUInt32LE(2, 12 + 6 * at)
    block.write('a=', 16 + 6 * at)
  }
  return block
}
const openFlac = flac(44_100, 0)
openFlac[4] = 0

const jpeg = latin('\xff\xd8\xff\xe0')
const exif = latin('\xff\xe1\xff\xfeExif\0\0MM\0\x2a\0\0\0\x08\xff\xff')
const ftyp = box('ftyp', latin('M4A \0\0\0\0'))
const webm = Buffer.from('1a45dfa38018538067ff', 'hex')
/** A run of samples that says to have as many as stand there. */
const run = (count: number) => {
  const body = Buffer.alloc(8 + 4 * count)
  body.writeUInt32BE(0x100, 0)
  body.writeUInt32BE(count, 4)
  return box('moof', box('traf', box('tfhd', Buffer.alloc(8)), box('trun', body)))
}

const rows: [says: string, content: object[]][] = [
  ['bytes of synchronization', [sound(Buffer.alloc(MiB, 0xff))]],
  ['heads of frames without a rate', [sound(Buffer.alloc(MiB, Buffer.from([0xff, 0xfb, 0, 0])))]],
  ['frames of changing rates', [sound(repeated(usual, Buffer.from('fffb90c0fffb50c0', 'hex')))]],
  ['boxes without a body', [sound(repeated(ftyp, box('free')))]],
  ['nested boxes', [sound(Buffer.concat([ftyp, nested('moov', 100_000)]))]],
  [
    'tags of MP4',
    [sound(repeated(ftyp, box('moov', box('udta', box('ilst', times(50, box('x', box('data', Buffer.alloc(8)))))))))],
  ],
  [
    'tables of samples',
    [
      sound(
        Buffer.concat([
          ftyp,
          box('moov', box('stbl', box('stsz', filled(Buffer.from('000000000000000000040000', 'hex'), MiB - 100)))),
        ]),
      ),
    ],
  ],
  ['fragments', many(8, sound(Buffer.concat([ftyp, run(100_000)])))],
  ['chunks of WAV', [sound(repeated(wavHead(24_000).subarray(0, 36), latin('junk\0\0\0\0')))]],
  ['blocks of FLAC', [sound(repeated(openFlac, Buffer.from([1, 0, 0, 0])))]],
  ['comments of FLAC', many(200, sound(Buffer.concat([openFlac, comments(10_000)])))],
  ['short comments of FLAC', many(256, sound(Buffer.concat([openFlac, comments(600)])))],
  ['elements of EBML', [sound(repeated(webm, Buffer.from([0xec, 0x80])))]],
  [
    'long elements of EBML',
    [sound(repeated(webm, Buffer.concat([Buffer.from('1549a9664fa07ba94f9c', 'hex'), Buffer.alloc(4000, 'x')])))],
  ],
  ['pages of Ogg', many(24, sound(repeated(opus(1), page(1))))],
  ['a JPEG without a frame', [image(filled(jpeg))]],
  ['JPEGs without a frame', many(250, image(filled(jpeg, 90_000)))],
  ['segments of JPEG', many(250, image(repeated(jpeg, Buffer.from([0xff, 0xe0, 0, 2]), 90_000)))],
  ['orientations of JPEG', many(250, image(repeated(jpeg, Buffer.concat([exif, Buffer.alloc(2000)]), 90_000)))],
  ...['GIF8xx', '\x89PNGx'].map((sign): [string, object[]] => [
    `tags of SVG behind ${JSON.stringify(sign)}`,
    many(1024, image(filled(Buffer.concat([latin(sign), times(200, latin('<svg '))]), 1000))),
  ]),
  ['pages of PDF', many(20, file(repeated(pdf(''), latin('/Count 9 ')), 'application/pdf'))],
  ['spaces of PDF', many(20, file(pdf('/Count', ' '.repeat(MiB)), 'application/pdf'))],
  ['many small PDFs', many(MOST_PARTS, file(pdf(pages(1)), 'application/pdf'))],
  ['many heads of WAV', many(MOST_PARTS, sound(Buffer.concat([wavHead(8000), Buffer.alloc(480)])))],
  ['many small images', many(MOST_PARTS, image(filled(jpeg, 64)))],
]

t.test('the media of one request take 100 ms of CPU at most', async t => {
  for (const [says, content] of rows) {
    const times: number[] = []
    for (let tries = 0; tries < 3 || (tries < 8 && Math.min(...times) > MOST_MS); tries++) {
      // Parts of their own: what is found of them is kept.
      const messages = asked(content.map(part => ({ ...part })))
      const used = cpuMeter()
      await measureMedia(messages)
      times.push(used())
      t.ok(mediaOf(messages), says)
    }
    t.ok(Math.min(...times) <= MOST_MS, `${says}: ${Math.min(...times)} ms of CPU`)
  }
})
