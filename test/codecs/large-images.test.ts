/** A large image of an answer is written in steps, and as any other: on every client wire that has images. */
import t from 'tap'
import { aiSdk } from '../../src/codecs/ai-sdk.ts'
import { generateContent, streamGenerateContent } from '../../src/codecs/gemini-generate.ts'
import { openAiChat } from '../../src/codecs/openai-chat.ts'
import { openAiResponses } from '../../src/codecs/openai-responses.ts'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Codec, Encoded } from '../../src/core/codec.ts'
import type { Endpoint } from '../../src/core/endpoint.ts'
import { errors } from '../../src/core/error.ts'
import type { Event } from '../../src/core/event.ts'
import { Exchange } from '../../src/core/exchange.ts'
import type { Snapshot } from '../../src/core/snapshot.ts'
import { aiSdkEndpoints } from '../../src/endpoints/ai-sdk.ts'
import { chat } from '../../src/endpoints/chat.ts'
import { gemini } from '../../src/endpoints/gemini.ts'
import { responses } from '../../src/endpoints/responses.ts'

/** With what a provider may write in place of base64. */
const LARGE = 'QUJD"\\\n\u0001😀'.repeat(30_000)
const SMALL = 'QUJD'
const messages = [{ role: 'user', content: 'Hi' }]
const prompt = [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }]
const contents = [{ parts: [{ text: 'Hi' }] }]
const spoken = (stream: boolean) => ({
  'ai-language-model-id': 'm',
  'ai-language-model-streaming': String(stream),
  'ai-language-model-specification-version': '3',
})
const ai = aiSdkEndpoints.find(({ path }) => path === '/v3/ai/language-model')!

const cases: [
  says: string,
  codec: Codec<'chat'>,
  body: object,
  endpoint: Endpoint,
  headers?: Record<string, string>,
][] = [
  ['chat', openAiChat, { model: 'm', messages }, chat],
  ['chat, streamed', openAiChat, { model: 'm', messages, stream: true }, chat],
  ['responses', openAiResponses, { model: 'm', input: 'Hi' }, responses],
  ['responses, streamed', openAiResponses, { model: 'm', input: 'Hi', stream: true }, responses],
  ['gemini', generateContent, { contents }, gemini.find(({ codec }) => codec === generateContent)!],
  [
    'gemini, streamed',
    streamGenerateContent,
    { contents },
    gemini.find(({ codec }) => codec === streamGenerateContent)!,
  ],
  ['AI SDK', aiSdk, { prompt }, ai, spoken(false)],
  ['AI SDK, streamed', aiSdk, { prompt }, ai, spoken(true)],
]

for (const [says, codec, body, endpoint, headers = {}] of cases) {
  t.test(`${says}: others go on while a large image is written`, async t => {
    const snapshot = {} as Snapshot
    const read = () => Promise.reject(new Error('is not read here'))
    const params = { model: 'm' }
    const ex = new Exchange({ snapshot, endpoint, headers, query: '', params, signal: new Cancellation(), body: read })
    ex.request = codec.decode(body, ex)
    let steps = 0
    const bytesOf = (out: Encoded | undefined): string => {
      if (out === undefined || typeof out === 'string' || !('next' in out)) return String(out ?? '')
      for (; ; steps++) {
        const { done, value } = out.next()
        if (done) return Buffer.concat(value).toString()
      }
    }
    const image = (data: string): Event => ({ type: 'image', choice: 0, url: `data:image/png;base64,${data}` })
    const text = (said: string): Event => ({ type: 'text', choice: 0, text: said })
    const written = (data: string, ends: boolean) => {
      const encoder = codec.encoder(ex)
      const batches: Event[][] = [[text('a'), image(data), image(data)], [text('b')]]
      const said = batches.map(batch => bytesOf(encoder.write(batch))).join('')
      const last = bytesOf(ends ? encoder.end() : encoder.fail(errors.truncated()))
      return (said + last)
        .replace(/"(created|completed)_at":\d+/g, '')
        .replaceAll(JSON.stringify(data).slice(1, -1), 'image')
    }
    for (const ends of [true, false]) {
      t.equal(written(LARGE, ends), written(SMALL, ends), ends ? 'an answer that is whole' : 'one that breaks')
    }
    t.match(written(SMALL, true), /image.*image/s)
    t.ok(steps > 2, `${steps} steps`)
  })
}
