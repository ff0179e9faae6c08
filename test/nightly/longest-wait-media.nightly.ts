/**
 * The same as `longest-wait.nightly.ts` for large requests, to every client wire, and for large answers of the operations of
 * media.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { wavHead } from '../../src/lib/wav.ts'
import { figure } from '../helpers/figure.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { watchTurns } from './turns.ts'

type Tree = Record<string, unknown>

const TRIES = Number(process.env.WAIT_TRIES ?? 3)
const AT_MOST_MS = 100
const ONLY = new RegExp(process.env.WAIT_ONLY ?? '')
const FIRST = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
const MB = 1_000_000

/** Base64 of an image of so many bytes; a PNG by its first ones. */
const image = (bytes: number) => Buffer.concat([FIRST, Buffer.alloc(bytes - FIRST.length, 0x5a)]).toString('base64')
const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at))
const large = image(21 * MB)
const url = `data:image/png;base64,${large}`
const spaced = `data:image/png;base64,${large.slice(0, 64)}${'W '.repeat(14 * MB)}`
const words = 'Some words of a text. '.repeat(1_200_000)
const wav = Buffer.concat([wavHead(16_000, 20 * MB), Buffer.alloc(20 * MB, 1)])
const listen = wav.toString('base64')

/** What a provider answers, by the wire that its address names. */
const small: Record<string, object> = {
  chat: {
    choices: [{ message: { content: 'a' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1 },
  },
  claude: {
    type: 'message',
    content: [{ type: 'text', text: 'a' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 1 },
  },
  gemini: {
    candidates: [{ content: { parts: [{ text: 'a' }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 },
  },
  responses: {
    ...{ object: 'response', status: 'completed', usage: { input_tokens: 1, output_tokens: 1 } },
    output: [{ type: 'message', content: [{ type: 'output_text', text: 'a' }] }],
  },
  bedrock: {
    output: { message: { content: [{ text: 'a' }] } },
    stopReason: 'end_turn',
    usage: { inputTokens: 1, outputTokens: 1 },
  },
  embeddings: { data: [{ index: 0, embedding: [0.1] }], usage: { prompt_tokens: 1, total_tokens: 1 } },
  images: { data: [{ b64_json: image(64) }] },
  transcriptions: { text: 'a', duration: 600 },
  moderations: { results: [{ flagged: false, categories: {}, category_scores: {} }] },
  rerank: { results: [{ index: 0, relevance_score: 0.5 }], meta: { billed_units: { search_units: 1 } } },
  ocr: { pages: [{ index: 0, markdown: 'a', images: [] }], usage_info: { pages_processed: 1 } },
}
let answer: Buffer | undefined
let type = 'application/json'
const provider = createServer((req: IncomingMessage, res) => {
  req.resume().on('end', () => {
    const body = answer ?? Buffer.from(JSON.stringify(small[req.url!.split('/')[1]!] ?? {}))
    res.writeHead(200, { 'content-type': type, 'content-length': body.length }).end(body)
  })
}).listen(0, '127.0.0.1')
await once(provider, 'listening')
t.teardown(() => provider.close().closeAllConnections())
const origin = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`

const chat = { ...testMapping, supports: [...testMapping.supports, 'audio_input', 'file_input'] }
const rows: [id: string, base: string, wires: Tree, model: Tree, mapping: Tree][] = [
  ...(
    [
      ['chat', '/v1', 'openai.chat'],
      ['claude', '/v1', 'anthropic.messages'],
      ['gemini', '/v1beta', 'gemini.generate'],
      ['responses', '/v1', 'openai.responses'],
      ['bedrock', '', 'bedrock.converse'],
    ] as const
  ).map(([id, base, wire]): (typeof rows)[number] => [
    id,
    base,
    { chat: wire },
    { input: ['text', 'image', 'audio', 'file'], output: ['text'], context_length: 100 * MB, max_output: 64_000 },
    { ...chat, model: id },
  ]),
  [
    'embeddings',
    '/v1',
    { embeddings: 'openai.embeddings' },
    { input: ['text'], output: ['embedding'] },
    { pricing: { prompt: '1' } },
  ],
  [
    'images',
    '/v1',
    { images: 'openai.images', image_edits: 'openai.image-edits' },
    { input: ['text', 'image'], output: ['image'] },
    { pricing: { per_image: { default: '0.04' } }, supports: ['vision'] },
  ],
  ['speech', '/v1', { speech: 'openai.speech' }, { input: ['text'], output: ['audio'] }, { pricing: { prompt: '15' } }],
  [
    'transcriptions',
    '/v1',
    { transcriptions: 'openai.transcriptions' },
    { input: ['audio'], output: ['text'], operations: ['transcriptions'] },
    { pricing: { input_audio_hour: '0.36' }, supports: ['timestamps'] },
  ],
  [
    'moderations',
    '/v1',
    { moderations: 'openai.moderations' },
    { input: ['text', 'image'], output: ['moderation'] },
    { pricing: { request: '0.002' }, supports: ['vision'] },
  ],
  [
    'rerank',
    '/v1',
    { rerank: 'cohere.rerank' },
    { input: ['text'], output: ['rerank'] },
    { pricing: { request: '0.002' } },
  ],
  [
    'ocr',
    '/v1',
    { ocr: 'mistral.ocr' },
    { input: ['text', 'image', 'file'], output: ['text'], operations: ['ocr'] },
    { pricing: { ocr_page: '0.004', ocr_page_annotated: '0.005' } },
  ],
]
const turns = await watchTurns(t)
const gateway = await startGateway(t, {
  env: turns.env,
  providers: Object.fromEntries(
    rows.map(([id, base, wires, , mapping]) => [
      id,
      { base_url: `${origin}/${id}${base}`, wires, models: [{ id: 'x-1', supports: [], model: id, ...mapping }] },
    ]),
  ),
  models: rows.map(([id, , , model]) => ({ id, name: id, family: 'test', stability: 'stable', ...model })),
})

interface Asked {
  readonly path: string
  readonly body: Tree | FormData
  readonly headers?: Record<string, string>
}
const talks = ['chat', 'claude', 'gemini', 'responses', 'bedrock']
const spoken = {
  'ai-gateway-protocol-version': '0.0.1',
  'ai-language-model-specification-version': '3',
  'ai-language-model-streaming': 'false',
}
const form = (fields: Record<string, string | Blob>): FormData => {
  const made = new FormData()
  for (const [name, value] of Object.entries(fields)) made.append(name, value)
  return made
}
const user = (content: unknown) => [{ role: 'user', content }]
const ask = (path: string, body: Tree | FormData, headers?: Record<string, string>): Asked =>
  headers ? { path, body, headers } : { path, body }

/** Of a body that holds what tools are called with, and what they gave, as JSON. */
const held = (wire: 'messages' | 'gemini' | 'AI SDK', args: Tree, given: Tree) => (model: string) => {
  if (wire === 'messages') {
    const used = { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: args }] }
    const results = user([{ type: 'tool_result', tool_use_id: 'c', content: 'a' }])
    return ask('/v1/messages', { model, max_tokens: 9, messages: [...user('Hi'), used, ...results] })
  }
  if (wire === 'gemini') {
    const contents = [
      { role: 'user', parts: [{ text: 'Hi' }] },
      { role: 'model', parts: [{ functionCall: { name: 'f', args } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'f', response: given } }] },
    ]
    return ask(`/v1beta/models/${model}:generateContent`, { contents })
  }
  const called = { type: 'tool-call', toolCallId: 'c', toolName: 'f', input: args }
  const result = { type: 'tool-result', toolCallId: 'c', toolName: 'f', output: { type: 'json', value: given } }
  const prompt = [
    ...user([{ type: 'text', text: 'Hi' }]),
    { role: 'assistant', content: [called] },
    { role: 'tool', content: [result] },
  ]
  return ask('/v3/ai/language-model', { prompt }, { ...spoken, 'ai-language-model-id': model })
}
const ofSize = (size: number): Tree => ({ a: words.slice(0, size), b: 1 })

/** Large requests: of each client wire, to each wire of a provider. */
const requests: Record<string, (model: string) => Asked> = {
  'an image, chat': model =>
    ask('/v1/chat/completions', { model, messages: user([{ type: 'image_url', image_url: { url } }]) }),
  'an image with a space after each character, chat': model =>
    ask('/v1/chat/completions', { model, messages: user([{ type: 'image_url', image_url: { url: spaced } }]) }),
  'words, chat': model => ask('/v1/chat/completions', { model, messages: user(words) }),
  'a file, chat': model =>
    ask('/v1/chat/completions', {
      model,
      messages: user([
        { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${large}` } },
      ]),
    }),
  'an image, messages': model =>
    ask('/v1/messages', {
      model,
      max_tokens: 9,
      messages: user([{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: large } }]),
    }),
  'an image, responses': model =>
    ask('/v1/responses', { model, input: user([{ type: 'input_image', image_url: url }]) }),
  'an image, gemini': model =>
    ask(`/v1beta/models/${model}:generateContent`, {
      contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: large } }] }],
    }),
  'an image in the alphabet of addresses, gemini': model =>
    ask(`/v1beta/models/${model}:generateContent`, {
      contents: [
        { role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: large.replaceAll('l', '-') } }] },
      ],
    }),
  'an image, AI SDK': model =>
    ask(
      '/v3/ai/language-model',
      { prompt: user([{ type: 'file', mediaType: 'image/png', data: large }]) },
      { ...spoken, 'ai-language-model-id': model },
    ),
  'arguments with a space after each character, chat': model => {
    const called = { name: 'f', arguments: JSON.stringify({ a: 'x '.repeat(2_090_000) }) }
    const messages = [
      ...user('Hi'),
      { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: called }] },
      { role: 'tool', tool_call_id: 'c', content: 'a' },
    ]
    const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }]
    return ask('/v1/chat/completions', { model, messages, tools })
  },
  'arguments with 195,000 values, chat': model => {
    const called = {
      id: 'c',
      type: 'function',
      function: { name: 'f', arguments: JSON.stringify({ a: many(190_000, () => 0) }) },
    }
    const messages = [
      ...user('Hi'),
      { role: 'assistant', tool_calls: [called] },
      { role: 'tool', tool_call_id: 'c', content: 'a' },
    ]
    return ask('/v1/chat/completions', { model, messages })
  },
  '1,000 images of 20 kB, chat': model =>
    ask('/v1/chat/completions', {
      model,
      messages: user(
        many(1000, () => ({ type: 'image_url', image_url: { url: `data:image/png;base64,${image(15_000)}` } })),
      ),
    }),
}
const sizes = { '20 MB': 20 * MB, 'as much as may be': 4_100_000 }
for (const [says, size] of Object.entries(sizes)) {
  for (const wire of ['messages', 'gemini', 'AI SDK'] as const)
    requests[`arguments in an object, ${says}, ${wire}`] = held(wire, ofSize(size), {})
  for (const wire of ['gemini', 'AI SDK'] as const)
    requests[`results in an object, ${says}, ${wire}`] = held(wire, {}, ofSize(size === 20 * MB ? size : 2 * size))
}
const others: Record<string, () => Asked> = {
  'audio, chat': () =>
    ask('/v1/chat/completions', {
      model: 'gemini',
      messages: user([{ type: 'input_audio', input_audio: { data: listen, format: 'wav' } }]),
    }),
  'words, embeddings': () => ask('/v1/embeddings', { model: 'embeddings', input: words }),
  '2,000 texts, embeddings': () =>
    ask('/v1/embeddings', { model: 'embeddings', input: many(2000, () => words.slice(0, 12_000)) }),
  'words, moderations': () => ask('/v1/moderations', { model: 'moderations', input: words }),
  'documents, rerank': () =>
    ask('/v1/rerank', { model: 'rerank', query: 'a', documents: many(1000, () => words.slice(0, 24_000)) }),
  'a document, OCR': () =>
    ask('/v1/ocr', {
      model: 'ocr',
      document: { type: 'document_url', document_url: `data:application/pdf;base64,${large}` },
    }),
  'an image, edits as JSON': () =>
    ask('/v1/images/edits', { model: 'images', prompt: 'a', images: [{ image_url: url }] }),
  'an image, edits as a form': () =>
    ask('/v1/images/edits', form({ model: 'images', prompt: 'a', image: new Blob([Buffer.from(large, 'base64')]) })),
  'audio, transcriptions': () =>
    ask('/v1/audio/transcriptions', form({ model: 'transcriptions', file: new Blob([wav]) })),
  'an image, MCP': () =>
    ask(
      '/mcp',
      {
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: { name: 'chat', arguments: { model: 'chat', messages: user(words.slice(0, 4 * MB)) } },
      },
      { accept: 'application/json, text/event-stream' },
    ),
}

const json = (value: unknown, slash = '/') => Buffer.from(JSON.stringify(value).replaceAll('/', slash))
const segments = many(20_000, id => ({
  id,
  start: id,
  end: id + 1,
  text: ' Some words that were said',
  tokens: [1, 2],
}))
/** Large answers of a provider. */
const answers: Record<string, [made: () => Buffer, asked: Asked, type?: string]> = {
  'an image': [
    () => json({ data: [{ b64_json: large }] }),
    ask('/v1/images/generations', { model: 'images', prompt: 'a' }),
  ],
  'an image with line breaks': [
    () => json({ data: [{ b64_json: large.replace(/.{76}/g, '$&\n') }] }),
    ask('/v1/images/generations', { model: 'images', prompt: 'a' }),
  ],
  'an image with escaped slashes': [
    () => json({ data: [{ b64_json: large.slice(0, 20 * MB).replaceAll('lp', 'l/') }] }, '\\/'),
    ask('/v1/images/generations', { model: 'images', prompt: 'a' }),
  ],
  'an image in escapes': [
    () => Buffer.from(`{"data":[{"b64_json":"${large.slice(0, 20)}${'\\u0041'.repeat(4 * MB)}"}]}`),
    ask('/v1/images/generations', { model: 'images', prompt: 'a' }),
  ],
  'an image as a data URL': [
    () => json({ data: [{ b64_json: url }] }),
    ask('/v1/images/generations', { model: 'images', prompt: 'a' }),
  ],
  'an image with line breaks, streamed': [
    () => {
      const event = { type: 'image_generation.completed', b64_json: large.replace(/.{76}/g, '$&\n') }
      return Buffer.from(`data: ${JSON.stringify(event)}\n\n`)
    },
    ask('/v1/images/generations', { model: 'images', prompt: 'a', stream: true }),
    'text/event-stream',
  ],
  'an image that is named two million times': [
    () => Buffer.from(`{"data":[${'"b64_json",'.repeat(2_500_000)}{"b64_json":"${large.slice(0, MB)}"}]}`),
    ask('/v1/images/generations', { model: 'images', prompt: 'a' }),
  ],
  'an image, streamed': [
    () =>
      Buffer.from(
        `event: image_generation.completed\ndata: ${JSON.stringify({ type: 'image_generation.completed', b64_json: large })}\n\n`,
      ),
    ask('/v1/images/generations', { model: 'images', prompt: 'a', stream: true }),
    'text/event-stream',
  ],
  'an image to a tool': [
    () => json({ data: [{ b64_json: large }] }),
    ask(
      '/mcp',
      {
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: { name: 'generate-image', arguments: { model: 'images', prompt: 'a' } },
      },
      { accept: 'application/json, text/event-stream' },
    ),
  ],
  audio: [
    () => wav,
    ask('/v1/audio/speech', { model: 'speech', input: 'a', voice: 'alloy', response_format: 'wav' }),
    'audio/wav',
  ],
  'audio as events': [
    () => wav,
    ask('/v1/audio/speech', { model: 'speech', input: 'a', voice: 'alloy', stream_format: 'sse' }),
    'audio/wav',
  ],
  ...Object.fromEntries(
    ['json', 'verbose_json', 'srt'].map(format => [
      `a transcript as ${format}`,
      [
        () => json({ text: words.slice(0, 4 * MB), duration: 20_000, language: 'english', segments }),
        ask(
          '/v1/audio/transcriptions',
          form({ model: 'transcriptions', response_format: format, file: new Blob([wav.subarray(0, 100_000)]) }),
        ),
      ],
    ]),
  ),
  'moderation of 2,000 inputs': [
    () =>
      json({
        results: many(2000, () => ({
          flagged: true,
          categories: Object.fromEntries(many(13, at => [`c${at}`, true])),
          category_scores: Object.fromEntries(many(13, at => [`c${at}`, 0.123456789])),
        })),
      }),
    ask('/v1/moderations', { model: 'moderations', input: many(2000, () => 'a') }),
  ],
  'ranks of 1,000 documents': [
    () =>
      json({
        results: many(1000, index => ({ index, relevance_score: 0.5 })),
        meta: { billed_units: { search_units: 10 } },
      }),
    ask('/v1/rerank', {
      model: 'rerank',
      query: 'a',
      documents: many(1000, () => 'a'.repeat(4000)),
      return_documents: true,
    }),
  ],
  'an image of a page': [
    () =>
      json({
        pages: [{ index: 0, markdown: 'a', images: [{ id: 'a', image_base64: url }] }],
        usage_info: { pages_processed: 1 },
      }),
    ask('/v1/ocr', {
      model: 'ocr',
      include_image_base64: true,
      document: { type: 'document_url', document_url: 'https://a.example/a.pdf' },
    }),
  ],
  'words of 1,000 pages': [
    () =>
      json({
        pages: many(1000, index => ({ index, markdown: words.slice(0, 20_000), images: [] })),
        usage_info: { pages_processed: 1000 },
      }),
    ask('/v1/ocr', { model: 'ocr', document: { type: 'document_url', document_url: 'https://a.example/a.pdf' } }),
  ],
  '2,000 embeddings': [
    () =>
      json({
        data: many(2000, index => ({ index, embedding: many(600, () => 0.0123456789) })),
        usage: { prompt_tokens: 1, total_tokens: 1 },
      }),
    ask('/v1/embeddings', { model: 'embeddings', input: many(2000, () => 'a') }),
  ],
  '2,000 embeddings as base64': [
    () =>
      json({
        object: 'list',
        data: many(2000, index => ({ object: 'embedding', index, embedding: many(1200, () => 0.0123456789) })),
        usage: { prompt_tokens: 1, total_tokens: 1 },
      }),
    ask('/v1/embeddings', { model: 'embeddings', encoding_format: 'base64', input: many(2000, () => 'a') }),
  ],
  '2,000 embeddings from base64': [
    () =>
      json({
        object: 'list',
        data: many(2000, index => ({ object: 'embedding', index, embedding: 'AACAPw'.repeat(2_000) })),
        usage: { prompt_tokens: 1, total_tokens: 1 },
      }),
    ask('/v1/embeddings', { model: 'embeddings', input: many(2000, () => 'a') }),
  ],
  '2,000 embeddings of 7,500 digits': [
    () =>
      json({
        data: many(2000, index => ({ index, embedding: many(7500, () => 0) })),
        usage: { prompt_tokens: 1, total_tokens: 1 },
      }),
    ask('/v1/embeddings', { model: 'embeddings', input: many(2000, () => 'a') }),
  ],
  'embeddings of 15,000,000 digits': [
    () => Buffer.from(`{"data":[{"index":0,"embedding":[0${',0'.repeat(15 * MB)}]}]}`),
    ask('/v1/embeddings', { model: 'embeddings', input: many(2000, () => 'a') }),
  ],
  '10,000,000 objects as embeddings': [
    () => Buffer.from(`{"data":[{}${',{}'.repeat(10 * MB)}]}`),
    ask('/v1/embeddings', { model: 'embeddings', input: many(2000, () => 'a') }),
  ],
  '500,000 short embeddings': [
    () =>
      Buffer.from(`{"data":[${many(500_000, index => `{"object":"embedding","index":${index},"embedding":[1]}`)}]}`),
    ask('/v1/embeddings', { model: 'embeddings', input: many(2000, () => 'a') }),
  ],
  '2,000 embeddings, a tool’s form': [
    () =>
      json({
        embeddings: [],
        data: many(2000, index => ({ index, embedding: many(600, () => 0.0123456789) })),
        usage: { prompt_tokens: 1, total_tokens: 1 },
      }),
    ask('/v1beta/models/embeddings:batchEmbedContents', {
      requests: many(2000, () => ({ model: 'models/embeddings', content: { parts: [{ text: 'a' }] } })),
    }),
  ],
}

/** Beside what an answer says: what takes long to read for its size. */
const odd: Record<string, () => string> = {
  'white space': () => `${' '.repeat(28 * MB)}1`,
  colons: () => `{"a"${':'.repeat(28 * MB)}1}`,
  quotes: () => `[${'"'.repeat(28 * MB)}]`,
  'escaped quotes': () => `"${'\\"'.repeat(14 * MB)}"`,
  'texts in escapes': () => `[${many(460, () => `"${'\\u0061'.repeat(10_000)}"`)}]`,
  'nested lists': () => `[${many(3900, () => '['.repeat(120) + ']'.repeat(120))}]`,
  digits: () => `1.${'1'.repeat(28 * MB)}`,
  'long numbers': () => `[${many(400_000, () => '0.123456789012345678901234567890e-1')}]`,
}
const said = user('Hi')
const asked: Record<string, Asked> = {
  chat: ask('/v1/chat/completions', { model: 'chat', messages: said }),
  claude: ask('/v1/messages', { model: 'claude', max_tokens: 9, messages: said }),
  gemini: ask('/v1beta/models/gemini:generateContent', { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }),
  responses: ask('/v1/responses', { model: 'responses', input: 'Hi' }),
  bedrock: ask('/v1/chat/completions', { model: 'bedrock', messages: said }),
  embeddings: ask('/v1/embeddings', { model: 'embeddings', input: 'Hi' }),
  images: ask('/v1/images/generations', { model: 'images', prompt: 'a' }),
  moderations: ask('/v1/moderations', { model: 'moderations', input: 'Hi' }),
  rerank: ask('/v1/rerank', { model: 'rerank', query: 'a', documents: ['a'] }),
  ocr: ask('/v1/ocr', { model: 'ocr', document: { type: 'document_url', document_url: 'https://a.example/a.pdf' } }),
  transcriptions: ask(
    '/v1/audio/transcriptions',
    form({ model: 'transcriptions', response_format: 'verbose_json', file: new Blob([wav.subarray(0, 100_000)]) }),
  ),
}
for (const [says, extra] of Object.entries(odd))
  for (const [kind, of] of Object.entries(asked))
    answers[`${says}, ${kind}`] = [
      () => Buffer.from(`${JSON.stringify(small[kind]).slice(0, -1)},"extra":${extra()}}`),
      of,
    ]

async function send({ path, body, headers = {} }: Asked): Promise<number> {
  const isForm = body instanceof FormData
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.key}`,
      ...(!isForm && { 'content-type': 'application/json' }),
      ...headers,
    },
    body: isForm ? body : JSON.stringify(body),
  })
  const text = await response.text()
  if (process.env.WAIT_SAYS) t.comment(`${response.status} ${text.length} ${text.slice(0, 200)}`)
  return response.status
}

async function measure(says: string, asked: Asked): Promise<void> {
  if (!ONLY.test(says)) return
  await t.test(`MF-02 ${says}`, async t => {
    const waits: number[] = []
    let status = 0
    for (let tries = 0; tries < TRIES; tries++) {
      await turns.longestMs()
      status = await send(asked)
      waits.push(await turns.longestMs())
    }
    t.comment(`${says}: ${status}, ${waits.map(Math.round).join(' ')}`)
    figure(t, { id: 'MF-02', what: `${says} (${status})`, value: Math.max(...waits), unit: 'ms', atMost: AT_MOST_MS })
  })
}

for (const [says, made] of Object.entries(requests))
  for (const model of talks) await measure(`${says} to ${model}`, made(model))
for (const [says, made] of Object.entries(others)) await measure(`${says}`, made())
for (const [says, [made, asked, contentType = 'application/json']] of Object.entries(answers)) {
  if (!ONLY.test(`answer: ${says}`)) continue
  answer = made()
  type = contentType
  await measure(`answer: ${says}`, asked)
}
await t.test('the gateway is as it was', t => checkInvariants(t, gateway))
