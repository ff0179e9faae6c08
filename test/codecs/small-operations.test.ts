/** Bodies of moderations, OCR, typed decisions and videos: what reading costs (docs/contract.md#shares), and errors. */
import t from 'tap'
import { decisions } from '../../src/codecs/decisions.ts'
import { moderations } from '../../src/codecs/moderations.ts'
import { ocr } from '../../src/codecs/ocr.ts'
import { openAiChat } from '../../src/codecs/openai-chat.ts'
import { transcriptions } from '../../src/codecs/transcriptions.ts'
import { videos } from '../../src/codecs/videos.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { cpuMs, leastOf } from '../helpers/cpu.ts'

t.test('a long text, a document or many questions cost little beside parsing them', t => {
  const long = 'y'.repeat(4_000_000)
  const questions = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`q${n}`, { type: 'noul', instructions: 'x' }]))
  const pdf = { type: 'document_url', document_url: `data:application/pdf;base64,${'A'.repeat(16_000_000)}` }
  const rows: [says: string, codec: { decode(body: unknown): object; prepare(): void }, body: object][] = [
    ['instructions', decisions, { state: 'x', questions: { a: { type: 'noul', instructions: long } } }],
    ['questions', decisions, { state: 'x', questions: questions(50_000) }],
    ['input', moderations, { input: long }],
    ['document', ocr, { document: pdf }],
  ]
  for (const [says, codec, more] of rows) {
    codec.prepare()
    const text = JSON.stringify({ model: 'm', ...more })
    const decode = (body: unknown) => {
      try {
        codec.decode(body)
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error
      }
    }
    const body: unknown = JSON.parse(text)
    const timings = [() => cpuMs(() => JSON.parse(text)), () => cpuMs(() => decode(body))]
    const fine = (parsing: number, reading: number) => reading < 2 + parsing / 2
    const [parsing = 0, reading = 0] = leastOf(timings, fine)
    t.ok(fine(parsing, reading), `${says}: ${reading} ms to read, ${parsing} ms to parse`)
  }
  t.end()
})

t.test('the error of an address names its field, and the addresses that the field takes', async t => {
  const http = 'http://a.example/a'
  const data = 'data:text/plain;base64,AAAA'
  const inside = 'https://10.0.0.1/a'
  const withPicture = (url: string) => ({ input: [{ type: 'image_url', image_url: { url } }] })
  const withDocument = (url: string) => ({ model: 'm', document: { type: 'document_url', document_url: url } })
  const withVideo = (url: string) => ({ model: 'm', prompt: 'x', reference_videos: [{ video_url: url }] })
  const withImage = (url: string) => ({
    model: 'm',
    messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
  })
  const withAudio = (url: string) => ({
    model: 'm',
    messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: url, format: 'mp3' } }] }],
  })
  const ex = { caller: {} } as Exchange
  const rows: [codec: { decode(body: unknown, ex: Exchange): object }, body: object, message: string][] = [
    [moderations, withPicture(http), 'input[0].image_url.url: … a public https address or a data URL'],
    [moderations, withPicture(inside), 'input[0].image_url.url: … a public https address or a data URL'],
    [ocr, withDocument(http), 'document.document_url: … a public https address or a data URL'],
    [videos, withVideo(http), 'reference_videos[0]: … a public https address'],
    [videos, withVideo(data), 'reference_videos[0]: … a public https address'],
    [videos, withVideo(inside), 'reference_videos[0]: … a public https address'],
    [transcriptions, { model: 'm', url: data }, 'url: … a public https address'],
    [openAiChat, withImage(inside), 'messages[0].content[0].image_url.url: … a public http(s) address or a data URL'],
    [
      openAiChat,
      withAudio(inside),
      'messages[0].content[0].input_audio.data: … a public https address, a data URL or base64',
    ],
  ]
  for (const [codec, body, message] of rows) {
    const expected = { code: 'url_not_allowed', message: `${message.replace('…', 'this URL is not allowed: use')}.` }
    t.throws(() => codec.decode(body, ex), expected)
  }
})
