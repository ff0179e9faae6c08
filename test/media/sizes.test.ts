/** What files and audio of a chat request come to before a provider has read them. */
import t from 'tap'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Price } from '../../src/core/money.ts'
import { ocr } from '../../src/endpoints/inference.ts'
import { wavHead } from '../../src/lib/wav.ts'
import { costWith, estimate } from '../../src/metering/estimate.ts'
import { isUnmeasured } from '../../src/metering/requests.ts'
import { measureMedia, mediaOf } from '../../src/operations/chat/media.ts'
import { exchange } from '../core/kit.ts'
import { flat } from '../core/prices.ts'
import { target } from '../plugins/wire-kit.ts'
import { aiff, flac, latin, m4a, slow, times, usual, webm } from './files.ts'
import { pages, pdf } from './pdf-kit.ts'

const asked = (...content: object[]) => [{ role: 'user', content }] as unknown as ChatRequest['messages']
const dataUrl = (type: string, bytes: Buffer) => `data:${type};base64,${bytes.toString('base64')}`
const file = (bytes: Buffer, type = 'application/pdf') => ({ type: 'file', file: { file_data: dataUrl(type, bytes) } })
const audio = (bytes: Buffer, format: string) => ({
  type: 'input_audio',
  input_audio: { data: bytes.toString('base64'), format },
})
async function measured(...content: object[]) {
  const messages = asked(...content)
  await measureMedia(messages)
  return mediaOf(messages)
}

t.test('a file has as many tokens as its pages, or as its size says', async t => {
  const rows: [says: string, content: object, tokens: number][] = [
    ['pages that are told', file(pdf(pages(600))), 1_200_000],
    ['a PDF that says to be something else', file(pdf(pages(5)), 'application/octet-stream'), 10_000],
    ['large pages', file(pdf(pages(1), 'x'.repeat(160_000))), 10_009],
    ['no pages that can be found', file(pdf('x')), 24_000],
    ['no pages in much', file(pdf('x'.repeat(800_000))), 50_001],
    ['text', file(latin('x'.repeat(40_000)), 'text/plain'), 10_000],
    ['an hour of a video', file(m4a(3600, 100_000, true, 'isom'), 'video/mp4'), 1_080_000],
    ['a WebM video', file(webm(100, 5000), 'video/webm'), 30_000],
    ['a video of unknown length', file(webm(undefined, 160_000), 'video/webm'), 10_004],
    ['JSON', file(latin('x'.repeat(40_000)), ' Application/JSON'), 10_000],
    ['what is unknown', file(Buffer.alloc(160_000), 'application/zip'), 10_000],
    ['an address', { type: 'file', file: { file_data: 'https://a.example/a.pdf' } }, 24_000],
    ['a video at an address', { type: 'file', file: { file_id: 'https://www.youtube.com/watch?v=a' } }, 270_000],
  ]
  for (const [says, content, tokens] of rows) t.equal((await measured(content)).fileTokens, Math.ceil(tokens), says)
})

t.test('base64 is read in lines and in either alphabet', async t => {
  const whole = dataUrl('application/pdf', pdf(pages(7), '\xff\xfe\xfd'))
  const found = async (file_data: string) => (await measured({ type: 'file', file: { file_data } })).pages
  t.equal(await found(whole), 7)
  t.equal(await found(whole.replace(/.{76}/g, '$&\r\n')), 7, 'in lines')
  t.equal(await found(whole.replaceAll('+', '-').replaceAll(/(?<=,.*)\//g, '_')), 7)
})

t.test('an image is one, however its type is written', async t => {
  for (const type of ['image/png', 'Image/PNG', ' image/png']) {
    const { file_data } = file(Buffer.alloc(100), type).file
    for (const url of [file_data, file_data.replace('data:', 'DATA:')]) {
      t.strictSame(await measured({ type: 'file', file: { file_data: url } }), {
        images: [undefined],
        audioSeconds: 0,
        fileTokens: 0,
        pages: 0,
        unmeasuredTokens: 0,
        unmeasuredAudio: 0,
      })
    }
  }
})

t.test('what is found of a part is kept, whichever request holds it', async t => {
  const messages = asked(file(pdf(pages(7))), { type: 'text', text: 'a' })
  t.equal(mediaOf(messages).pages, 0, 'by its size')
  await measureMedia(messages)
  t.equal(mediaOf(messages).pages, 7)
  t.equal(mediaOf(messages), mediaOf(messages))
  t.equal(mediaOf([...messages]).pages, 7)
  t.equal(measureMedia([...messages]), undefined, 'nothing is left to look at')
  t.equal(measureMedia(asked({ type: 'text', text: 'a' })), undefined)
})

t.test('of many files some are looked into, and the others count by their sizes', async t => {
  const one = file(pdf(pages(1), 'x'.repeat(200_000)))
  const { pages: found = 0, fileTokens } = await measured(...Array.from({ length: 100 }, () => ({ ...one })))
  t.ok(found > 10 && found < 50, `${found}`)
  const each = (await measured({ ...one })).fileTokens
  t.equal(fileTokens, found * each + (100 - found) * 24_000)
  const many = Array.from({ length: 2000 }, () => file(Buffer.alloc(48), 'application/zip'))
  t.equal(
    (await measured(...many)).fileTokens,
    128 * 3 + 1872 * Math.ceil(`data:application/zip;base64,${'A'.repeat(64)}`.length / 4),
    'by their characters',
  )
})

t.test('audio is as long as it says, else as its size says', async t => {
  const wav = Buffer.concat([wavHead(16_000), Buffer.alloc(320_000)])
  const rows: [says: string, content: object, seconds: number, unmeasured?: number][] = [
    ['usual samples', audio(wav, 'wav'), 10],
    ['samples without a head', audio(Buffer.alloc(320_000), 'pcm'), 10],
    ['the same called a file', audio(Buffer.alloc(40_000), 'wav'), 10],
    ['samples of AIFF', audio(aiff(16_000, 320_000), 'aiff'), 10],
    ['RF64', audio(Buffer.concat([latin('RF64'), wav.subarray(4, 40_000)]), 'wav'), 10],
    ['AMR called WAV', audio(Buffer.concat([latin('#!AMR\n'), Buffer.alloc(39_994)]), 'wav'), 10],
    ['FLAC called by another name', audio(Buffer.concat([flac(16_000, 160_000), Buffer.alloc(39_958)]), 'wav'), 10],
    ['MP3 of few bytes a second', audio(times(1000, slow), 'mp3'), 72],
    ['MP3', audio(times(383, usual), 'mp3'), 10],
    ['the sound of a film', audio(m4a(30), 'm4a'), 30],
    ['a data URL', { type: 'input_audio', input_audio: { data: dataUrl('audio/wav', wav), format: 'wav' } }, 10],
    ['an address', { type: 'input_audio', input_audio: { data: 'https://a.example/a', format: 'wav' } }, 900, 32_768],
  ]
  for (const [says, content, seconds, unmeasured = 0] of rows) {
    const { audioSeconds, unmeasuredAudio = 0 } = await measured(content)
    t.strictSame([audioSeconds, unmeasuredAudio].map(Math.round), [seconds, unmeasured], says)
  }
})

t.test('audio is held for and charged in the tokens of its model, also where a client leaves early', async t => {
  const rows: [audioTokens: number | undefined, tokens: number][] = [
    [undefined, 32],
    [10, 10],
    [12.5, 12.5],
  ]
  for (const [audioTokens, tokens] of rows) {
    const messages = asked(audio(m4a(60, 500_000), 'm4a'))
    await measureMedia(messages)
    const ex = exchange({ request: { model: 'm', max_tokens: 1, messages } })
    const model = audioTokens === undefined ? {} : { audioTokens }
    ex.target = { ...target({ model }), price: flat({ prompt: '0', input_audio: '1', completion: '0' }) }
    t.equal(ex.prompt.usage.input_audio, 60 * tokens)
    const { base, unmeasured } = estimate(ex)!
    t.strictSame([base, unmeasured], [BigInt(60 * tokens) * 1000n, 0n])
    t.equal(isUnmeasured(ex), false)
    ex.answer.isCut = true
    ex.meter.complete(true)
    t.equal(ex.usage.input_audio, 60 * tokens)
  }
})

t.test('OCR reads the pages that a PDF has, or that its size says', async t => {
  const price: Price = { rates: { ocr_page: 1000n }, tiers: [] }
  const held = (document: object, pages?: string) => {
    const request = { model: 'm', document, ...(pages !== undefined && { pages }) }
    const ex = exchange({ endpoint: ocr, request, target: { ...target(), price } })
    return Number(costWith(estimate(ex)!, 0))
  }
  const url = (bytes: Buffer, type = 'application/pdf') => dataUrl(type, bytes)
  const of = (bytes: Buffer) => ({ type: 'document_url', document_url: url(bytes) })
  const many = pdf(pages(900))
  t.equal(held(of(many)), 900)
  t.equal(held(of(many), '0-4'), 5, 'those that are listed')
  t.equal(held({ type: 'image_url', image_url: url(many, 'image/png') }), 900, 'whatever it is called')
  t.equal(held({ type: 'image_url', image_url: { url: url(Buffer.alloc(200_000), 'image/png') } }), 1)
  t.equal(held(of(pdf(pages(2), 'x'.repeat(200_000)))), 5, 'by its size')
  t.equal(held(of(pdf('x'))), 1)
})

t.test('media of a model turn count as those of a user, and what is no media counts nothing', t => {
  const parts = [
    { type: 'image_url', image_url: { url: 'https://a.example/b.png' } },
    { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
    { type: 'file', file: { file_id: 'https://youtu.be/x' } },
    { type: 'file', file: { file_data: 'https://a.example/b.pdf' } },
  ]
  for (const part of parts) {
    const said = mediaOf([{ role: 'user', content: [part] }] as never)
    const shown = mediaOf([{ role: 'assistant', content: '', images: [part] }] as never)
    t.strictSame(shown, said, JSON.stringify(part))
  }
  const none = [
    null,
    1,
    'a',
    {},
    { type: 'image_url' },
    { type: 'image_url', image_url: { url: 1 } },
    { type: 'file', file: {} },
  ]
  for (const images of [none, 'a', { length: 1 }, null]) {
    t.strictSame(mediaOf([{ role: 'assistant', content: '', images }] as never), mediaOf([]), JSON.stringify(images))
  }
  t.end()
})
