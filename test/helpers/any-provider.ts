/** A provider of every wire: it answers whole requests by their path alone, and remembers which came. */
import { generateKeyPairSync } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Scope } from './child.ts'

const TEXT = 'I do.'
const message = { role: 'assistant', content: TEXT }
const tokens = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const claude = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: TEXT }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 3, output_tokens: 2 },
}
const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=',
  'base64',
)
/** A tenth of a second of silence. */
export const SILENCE = (() => {
  const samples = Buffer.alloc(1600)
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(36 + samples.length, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(8000, 24)
  head.writeUInt32LE(16000, 28)
  head.writeUInt16LE(2, 32)
  head.writeUInt16LE(16, 34)
  head.write('data', 36)
  head.writeUInt32LE(samples.length, 40)
  return Buffer.concat([head, samples])
})()
const reranked = { id: 'r', results: [{ index: 0, relevance_score: 0.9 }], meta: { billed_units: { search_units: 1 } } }
const vector = [0.1, 0.2]

/** Answers by the end of a path; the first that fits counts. */
const ANSWERS: readonly (readonly [RegExp, unknown])[] = [
  [/\/token$/, { access_token: 'ya29', token_type: 'Bearer', expires_in: 3600 }],
  [
    /\/chat\/completions$/,
    {
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage: tokens,
    },
  ],
  [
    /\/responses$/,
    {
      id: 'resp_1',
      object: 'response',
      created_at: 1,
      status: 'completed',
      model: 'm',
      output: [
        {
          type: 'message',
          id: 'm',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: TEXT, annotations: [] }],
        },
      ],
      usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
    },
  ],
  [/\/messages$|:rawPredict$/, claude],
  [
    /\/converse$/,
    {
      output: { message: { role: 'assistant', content: [{ text: TEXT }] } },
      stopReason: 'end_turn',
      usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 },
    },
  ],
  [
    /:generateContent$/,
    {
      candidates: [{ content: { role: 'model', parts: [{ text: TEXT }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
    },
  ],
  [/:batchEmbedContents$/, { embeddings: [{ values: vector }] }],
  [/:embedContent$/, { embedding: { values: vector } }],
  [/imagen[^/]*:predict$/, { predictions: [{ bytesBase64Encoded: pixel.toString('base64'), mimeType: 'image/png' }] }],
  [/:predict$/, { predictions: [{ embeddings: { values: vector, statistics: { token_count: 3 } } }] }],
  [/\/v2\/embed$/, { id: 'e', embeddings: { float: [vector] }, meta: { billed_units: { input_tokens: 3 } } }],
  [
    /\/embeddings$/,
    {
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding: vector }],
      model: 'm',
      usage: { prompt_tokens: 3, total_tokens: 3 },
    },
  ],
  [
    /\/v2\/chat$/,
    {
      id: 'c',
      message: { role: 'assistant', content: [{ type: 'text', text: TEXT }] },
      finish_reason: 'COMPLETE',
      usage: { tokens: { input_tokens: 3, output_tokens: 2 } },
    },
  ],
  [/\/images\/generations$/, { created: 1, data: [{ b64_json: pixel.toString('base64') }] }],
  [/\/audio\/transcriptions$/, { text: TEXT }],
  [/\/listen$/, { metadata: { duration: 0.1 }, results: { channels: [{ alternatives: [{ transcript: TEXT }] }] } }],
  [/\/audio\/speech$|\/text-to-speech\/|\/speak$/, SILENCE],
  [/\/rerank$/, { ...reranked, usage: { total_tokens: 3 } }],
  [/\/moderations$/, { id: 'm', model: 'm', results: [{ flagged: false, categories: {}, category_scores: {} }] }],
]

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  for await (const _ of request);
  const path = decodeURIComponent(request.url!.split('?')[0]!)
  const found = ANSWERS.find(([end]) => end.test(path))?.[1]
  if (Buffer.isBuffer(found)) response.writeHead(200, { 'content-type': 'audio/wav' }).end(found)
  else
    response
      .writeHead(found ? 200 : 404, { 'content-type': 'application/json' })
      .end(JSON.stringify(found ?? { error: { message: path } }))
}

/** Its origin, and the JSON of a service account that it gives tokens to. */
export async function startAnyProvider(t: Scope): Promise<{ readonly origin: string; readonly account: string }> {
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const account = JSON.stringify({
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    client_email: 'gateway@example.com',
    token_uri: `${origin}/token`,
  })
  return { origin, account }
}
