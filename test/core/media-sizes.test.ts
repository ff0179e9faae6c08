/** What files and audio of a chat request come to before a provider has read them. */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Price } from '../../src/core/money.ts'
import { isUnmeasured } from '../../src/core/requests.ts'
import { ocr } from '../../src/endpoints/ocr.ts'
import { costWith, estimate } from '../../src/filters/billing/estimate.ts'
import { mediaOf } from '../../src/operations/chat/media.ts'
import { film } from '../../src/operations/videos/film.ts'
import { flac, flacFrame, times } from '../codecs/audio-pieces.ts'
import { cpuMs, leastOf } from '../helpers/cpu.ts'
import { target } from '../plugins/wire-kit.ts'
import { exchange } from './kit.ts'
import { latin, packed, packedPages, pages, pdf, zeros } from './pdf-kit.ts'
import { flat } from './prices.ts'

const asked = (...content: object[]) => [{ role: 'user', content }] as unknown as ChatRequest['messages']
const dataUrl = (type: string, bytes: Buffer) => `data:${type};base64,${bytes.toString('base64')}`
const file = (bytes: Buffer, type = 'application/pdf') => ({ type: 'file', file: { file_data: dataUrl(type, bytes) } })
const tokensOf = (...content: object[]) => mediaOf(asked(...content)).fileTokens

/** Four deflated blocks with a code of their own and no data (RFC 1951 section 3.2.7). */
const EMPTY_BLOCKS = Buffer.from(
  '04c081000000000090ff6b100007020000000040feaf41001c080000000000f9bf060170200000000000e4ff1a',
  'hex',
)

/** A video with one box that says its length. */
function video(name: string, version: 0 | 1, scale: number, length: number): Buffer {
  const box = Buffer.alloc(48)
  box.write(name, 0, 'latin1')
  box.writeUInt8(version, 4)
  box.writeUInt32BE(scale, version === 1 ? 24 : 16)
  if (version === 1) box.writeBigUInt64BE(BigInt(length), 28)
  else box.writeUInt32BE(length, 20)
  return Buffer.concat([latin('\0\0\0\x18ftypisom\0\0\0\0'), Buffer.alloc(8), box])
}

/** The head of a WAV file of plain samples. */
function wav(rate: number, bits: number): Buffer {
  const head = Buffer.alloc(44)
  head.write('RIFF', 0, 'latin1')
  head.write('WAVEfmt ', 8, 'latin1')
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(rate, 24)
  head.writeUInt16LE(bits, 34)
  head.write('data', 36, 'latin1')
  return head
}

/** AIFF, or AIFF-C where its samples have a compression. */
function aiff(rate: number, bits: number, bytes: number, compression = ''): Buffer {
  const common = Buffer.alloc(18)
  common.writeUInt16BE(1, 0)
  common.writeUInt16BE(bits, 6)
  const exponent = Math.floor(Math.log2(rate))
  common.writeUInt16BE(16_383 + exponent, 8)
  common.writeUInt32BE(rate * 2 ** (31 - exponent), 10)
  const chunk = (name: string, length: number) => {
    const head = Buffer.alloc(8)
    head.write(name, 0, 'latin1')
    head.writeUInt32BE(length, 4)
    return head
  }
  const form = latin(`FORM\0\0\0\0AIF${compression ? 'C' : 'F'}`)
  const described = Buffer.concat([common, latin(compression)])
  return Buffer.concat([form, chunk('COMM', described.length), described, chunk('SSND', bytes), Buffer.alloc(bytes)])
}

t.test('a file has as many tokens as its pages, or as its size says', async t => {
  const rows: [says: string, content: object, tokens: number][] = [
    ['pages that are told', file(pdf(pages(600))), 1_200_000],
    ['pages in a stream of objects', file(pdf(...packedPages(600))), 1_200_000],
    ['a PDF that says to be something else', file(pdf(pages(5)), 'application/octet-stream'), 10_000],
    ['large pages', file(pdf(pages(1), 'x'.repeat(160_000))), 10_009],
    ['no pages that can be found', file(pdf('x')), 24_000],
    ['a stream that is too large to look into', file(pdf(pages(1), ...zeros)), 24_000],
    ['text', file(latin('x'.repeat(40_000)), 'text/plain'), 10_000],
    ['an hour of a video', file(video('mvhd', 0, 1000, 3_600_000), 'video/mp4'), 1_080_000],
    ['the same of a track', file(video('mdhd', 1, 90_000, 324_000_000), 'video/quicktime'), 1_080_000],
    ['a video of unknown length', file(video('mvhd', 0, 1000, 2 ** 32 - 1), 'video/mp4'), 5],
    ['JSON', file(latin('x'.repeat(40_000)), ' Application/JSON'), 10_000],
    ['what is unknown', file(Buffer.alloc(160_000), 'application/zip'), 10_000],
    ['an address', { type: 'file', file: { file_data: 'https://a.example/a.pdf' } }, 24_000],
    ['a video at an address', { type: 'file', file: { file_id: 'https://www.youtube.com/watch?v=a' } }, 270_000],
  ]
  for (const [says, content, tokens] of rows) t.equal(tokensOf(content), tokens, says)
})

t.test('the budget of PDFs is one of all of a request', t => {
  const large = file(pdf(...packedPages(40, 1, randomBytes(200_000).toString('latin1').replaceAll('/', ' '))))
  t.equal(mediaOf(asked(large)).pages, 40)
  const two = mediaOf(asked(large, large))
  t.strictSame([two.pages, two.unmeasuredTokens], [40, 1_048_576], 'what is packed in the second is too much')
  t.end()
})

t.test('base64 that decoders read in different ways has no known pages', t => {
  const whole = dataUrl('application/pdf', Buffer.concat([pdf(pages(7)), latin('  ')]))
  const found = (file_data: string) => mediaOf(asked({ type: 'file', file: { file_data } })).pages
  t.equal(found(whole), 7)
  t.equal(found(whole.replace(/.{76}/g, '$&\r\n')), 7, 'in lines')
  t.equal(found(`${whole.replace(/=*$/, '=')}${latin(pages(900)).toString('base64')}`), 0, 'behind padding')
  t.equal(found(`${whole.slice(0, 60)}*${whole.slice(60)}`), 0, 'with other characters')
  t.end()
})

t.test('an image is one, however its type is written', async t => {
  for (const type of ['image/png', 'Image/PNG', ' image/png']) {
    const { file_data } = file(Buffer.alloc(100), type).file
    for (const url of [file_data, file_data.replace('data:', 'DATA:')]) {
      t.strictSame(mediaOf(asked({ type: 'file', file: { file_data: url } })), {
        images: [undefined],
        audioSeconds: 0,
        fileTokens: 0,
        pages: 0,
        unmeasuredTokens: 0,
        unmeasuredAudio: 0,
        moreAudio: 0,
      })
    }
  }
})

t.test('many files are looked at within bounds, and once a request', t => {
  const input = (bytes: Buffer) => ({
    type: 'input_audio',
    input_audio: { data: bytes.toString('base64'), format: 'wav' },
  })
  const blocks = Buffer.concat([Buffer.from('7801', 'hex'), Buffer.alloc(4_000_000, EMPTY_BLOCKS)])
  const bombs = times(100, file(pdf(pages(1), ...zeros)))
  const rows: [says: string, content: object[]][] = [
    ['streams', bombs],
    ['streams that hold nothing', times(1, file(pdf(packed([])[0]!, blocks, 'endstream')))],
    ['dictionaries', times(1, file(pdf('9 0 obj<<', '/Title 1 '.repeat(440_000), '>>')))],
    ['names with escapes', times(1, file(pdf('9 0 obj<<', '/#41 1 '.repeat(580_000), '>>')))],
    ['pages', times(1, file(pdf(pages(1).replace('[', `[${'3 0 R '.repeat(690_000)}`))))],
    ['objects', times(1, file(pdf('9 0 obj '.repeat(500_000))))],
    ['words', times(1, file(pdf('j'.repeat(4_000_000))))],
    ['streams without end', times(1, file(pdf('9 0 obj<</N 1/First 4>>stream\n'.repeat(130_000))))],
    ['small PDFs', times(40_000, file(pdf(pages(1))))],
    ['heads of WAV files', times(40_000, input(Buffer.concat([wav(8000, 8).subarray(0, 36), Buffer.alloc(480)])))],
  ]
  // Compiled code is what is measured.
  for (const [, content] of rows) for (let times = 0; times < 3; times++) mediaOf(asked(...content.slice(0, 10_000)))
  for (const [says, content] of rows) {
    const messages = asked(...content)
    // Each with messages of its own: what is found of them is kept.
    const [took = 0] = leastOf([() => cpuMs(() => void mediaOf([...messages]))], ms => ms < 300)
    t.ok(took < 300, `${says}: ${took} ms of CPU`)
    t.equal(mediaOf(messages), mediaOf(messages), says)
  }
  t.equal(tokensOf(...times(257, file(pdf(pages(1))))), 256 * 2000 + 24_000)
  t.end()
})

t.test('audio is as long as its samples say, whatever it is called', async t => {
  const audio = (bytes: Buffer, format: string) => ({
    type: 'input_audio',
    input_audio: { data: bytes.toString('base64'), format },
  })
  const hour = Buffer.concat([flac(16_000, 0), ...times(3600, flacFrame(7, 5, { samples: 16_000 }))])
  // What its head says is all that a file of a minute and 5 MB is known by.
  const movie = Buffer.concat([film(60), Buffer.alloc(5_000_000 - film(60).length)])
  // MP3 of 8 kbit/s, in frames of 72 ms.
  const slow = Buffer.from(`ffe318c0${'00'.repeat(68)}`.repeat(1000), 'hex')
  const rows: [says: string, content: object, seconds: number, unmeasured?: number, more?: number][] = [
    ['usual samples', audio(Buffer.concat([wav(16_000, 16), Buffer.alloc(320_000)]), 'wav'), 10],
    ['small samples', audio(Buffer.concat([wav(8000, 8), Buffer.alloc(80_000)]), 'wav'), 10],
    ['samples without a head', audio(Buffer.alloc(320_000), 'pcm'), 10],
    ['the same called a file', audio(Buffer.alloc(40_000), 'wav'), 10, 1590],
    ['samples of AIFF', audio(aiff(16_000, 16, 320_000), 'aiff'), 10],
    ['slow ones', audio(aiff(100, 8, 600_000), 'aiff'), 6000],
    ['AIFF-C', audio(aiff(8000, 16, 80_000, 'ulaw'), 'wav'), 10],
    ['AIFF-C that is compressed', audio(aiff(8000, 16, 39_950, 'ima4'), 'aiff'), 10, 1590],
    [
      'samples of RF64',
      audio(Buffer.concat([latin('RF64'), wav(100, 8).subarray(4), Buffer.alloc(60_000)]), 'wav'),
      600,
    ],
    ['AMR called WAV', audio(Buffer.concat([latin('#!AMR\n'), Buffer.alloc(39_994)]), 'wav'), 10, 1590],
    ['frames behind another byte', audio(Buffer.concat([latin('x'), slow]), 'wav'), 18, 2862],
    ['the same called samples', audio(Buffer.concat([latin('x'), slow]), 'pcm'), 18, 2862],
    ['a PDF called samples', audio(pdf('x'.repeat(39_991)), 'pcm'), 10, 1590],
    ['an hour of silence', audio(hour, 'flac'), 3600],
    ['the same called by another name', audio(hour, 'wav'), 3600],
    ['the same with more data', audio(Buffer.concat([hour, Buffer.alloc(20_000_000)]), 'flac'), 3600],
    ['its head alone', audio(Buffer.concat([flac(16_000, 160_000), Buffer.alloc(39_958)]), 'flac'), 10],
    ['compressed audio called plain', audio(Buffer.concat([latin('OggS'), Buffer.alloc(39_996)]), 'wav'), 10, 1590],
    ['MP3 of few bytes a second', audio(slow, 'mp3'), 72],
    ['the sound of a film', audio(film(30), 'm4a'), 30],
    ['with more data than is usual', audio(movie, 'm4a'), 60, 0, 1190],
    [
      'a head that says less than is possible',
      audio(Buffer.concat([film(1), Buffer.alloc(15_360_000)]), 'm4a'),
      10,
      0,
      3831,
    ],
    [
      'the same as a data URL',
      { type: 'input_audio', input_audio: { data: dataUrl('audio/flac', hour), format: 'flac' } },
      3600,
    ],
    ['an address', { type: 'input_audio', input_audio: { data: 'https://a.example/a', format: 'wav' } }, 900, 32_768],
  ]
  for (const [says, content, seconds, unmeasured = 0, more = 0] of rows) {
    const { audioSeconds, unmeasuredAudio = 0, moreAudio = 0 } = mediaOf(asked(content))
    t.strictSame([audioSeconds, unmeasuredAudio, moreAudio].map(Math.round), [seconds, unmeasured, more], says)
  }
})

t.test(
  'audio is charged by its head, in the tokens of its model, and held for by its size, as is charged where a client leaves early',
  async t => {
    const data = Buffer.concat([film(60), Buffer.alloc(5_000_000 - film(60).length)]).toString('base64')
    const messages = asked({ type: 'input_audio', input_audio: { data, format: 'm4a' } })
    const rows: [audioTokens: number | undefined, tokens: number][] = [
      [undefined, 32],
      [10, 10],
      [12.5, 12.5],
    ]
    for (const [audioTokens, tokens] of rows) {
      const ex = exchange({ request: { model: 'm', max_tokens: 1, messages } })
      const model = audioTokens === undefined ? {} : { audioTokens }
      ex.target = { ...target({ model }), price: flat({ prompt: '0', input_audio: '1', completion: '0' }) }
      t.equal(ex.promptUsage.input_audio, 60 * tokens)
      const { base, unmeasured } = estimate(ex)!
      t.strictSame([base, unmeasured], [BigInt(1250 * tokens) * 1000n, 0n])
      t.strictSame(isUnmeasured(ex), false, 'its answer may end anywhere')
      ex.isCut = true
      ex.completeUsage(true)
      t.equal(ex.usage.input_audio, 1250 * tokens, 'a head that says too little makes nothing cheaper')
    }
  },
)

t.test('OCR reads the pages that a PDF has, or that its size says', async t => {
  const price: Price = { rates: { ocr_page: 1000n }, tiers: [] }
  const held = (document: object, pages?: string) => {
    const request = { model: 'm', document, ...(pages !== undefined && { pages }) }
    const ex = exchange({ endpoint: ocr, request, target: { ...target(), price } })
    return Number(costWith(estimate(ex)!, 0))
  }
  const url = (bytes: Buffer, type = 'application/pdf') => dataUrl(type, bytes)
  const of = (bytes: Buffer) => ({ type: 'document_url', document_url: url(bytes) })
  const many = pdf(...packedPages(900))
  t.equal(held(of(many)), 900)
  t.equal(held(of(many), '0-4'), 5, 'those that are listed')
  t.equal(held({ type: 'image_url', image_url: url(many, 'image/png') }), 900, 'whatever it is called')
  t.equal(held({ type: 'image_url', image_url: { url: url(Buffer.alloc(200_000), 'image/png') } }), 1)
  t.equal(held(of(pdf(pages(2), 'x'.repeat(200_000)))), 5, 'by its size')
  t.equal(held(of(pdf('x'))), 1)
  t.equal(held(of(pdf(pages(1), ...zeros))), 2, 'that cannot be looked into')
})
