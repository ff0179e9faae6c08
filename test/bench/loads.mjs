/** The kinds of request that are measured, and how much of each. */
import { checkStream, checkWhole, PACED, request } from './sample.mjs'
import * as aiSdk from './sample-ai-sdk.mjs'
import * as embeddings from './sample-embeddings.mjs'
import { checkToolCall, toolCall, unary } from './sample-mcp.mjs'
import { images, speech, transcriptions } from './sample-media.mjs'
import { checkMessages } from './sample-messages.mjs'

/**
 * @typedef {object} Load
 * @property {string} name
 * @property {string} group what `--only` takes
 * @property {'chat' | 'messages' | 'aiSdk' | 'embeddings' | 'images' | 'speech' | 'transcriptions' | 'mcp'} wire of the provider; clients speak OpenAI's or the AI SDK's, or call a tool
 * @property {number} slice requests of one slice under saturation
 * @property {number} concurrency requests at a time
 * @property {number} rate requests per second of a run's paced part
 * @property {number} seconds of a run's paced part; with 0 there is none
 * @property {boolean} [stream]
 * @property {number | string} [prompt] its size in bytes, or itself
 */

/**
 * Of slow providers a gateway has many at a time. The floor costs more then, too, so that what is compared with it and
 * with earlier figures has fewer.
 */
const MANY = 128

/** @type {Load[]} */
export const loads = [
  { name: 'unary', group: 'unary', wire: 'chat', slice: 400, concurrency: 32, rate: 500, seconds: 2 },
  {
    name: `unary, ${MANY} at a time`,
    group: 'unary',
    wire: 'chat',
    ...{ slice: 800, concurrency: MANY, rate: 500, seconds: 0 },
  },
  { name: 'unary, one at a time', group: 'unary', wire: 'chat', slice: 100, concurrency: 1, rate: 500, seconds: 0 },
  {
    name: 'stream of 64',
    group: 'stream',
    wire: 'chat',
    ...{ slice: 80, concurrency: 32, rate: 100, seconds: 2 },
    stream: true,
  },
  {
    name: 'stream of 64, one a millisecond',
    group: 'stream',
    wire: 'chat',
    ...{ slice: 80, concurrency: 32, rate: 100, seconds: 0 },
    stream: true,
    prompt: PACED,
  },
  {
    name: 'Anthropic stream',
    group: 'messages',
    wire: 'messages',
    ...{ slice: 80, concurrency: 32, rate: 100, seconds: 1 },
    stream: true,
  },
  {
    name: 'AI SDK stream of 64',
    group: 'ai-sdk',
    wire: 'aiSdk',
    ...{ slice: 80, concurrency: 32, rate: 100, seconds: 1 },
    stream: true,
  },
  {
    name: '100 kB prompt',
    group: 'large',
    wire: 'chat',
    ...{ slice: 40, concurrency: 8, rate: 50, seconds: 1 },
    prompt: 100_000,
  },
  {
    name: `100 kB prompt, ${MANY} at a time`,
    group: 'large',
    wire: 'chat',
    ...{ slice: MANY, concurrency: MANY, rate: 50, seconds: 0 },
    prompt: 100_000,
  },
  {
    name: '1 MB prompt',
    group: 'large',
    wire: 'chat',
    ...{ slice: 8, concurrency: 4, rate: 10, seconds: 1 },
    prompt: 1_000_000,
  },
  {
    name: 'embeddings, 3 MB',
    group: 'embeddings',
    wire: 'embeddings',
    ...{ slice: 8, concurrency: 4, rate: 10, seconds: 1 },
  },
  {
    name: 'image of 4 MB',
    group: 'media',
    wire: 'images',
    ...{ slice: 8, concurrency: 4, rate: 10, seconds: 0 },
  },
  {
    name: 'upload of 10 MB',
    group: 'media',
    wire: 'transcriptions',
    ...{ slice: 8, concurrency: 4, rate: 10, seconds: 0 },
  },
  {
    name: 'speech of 1 MB',
    group: 'media',
    wire: 'speech',
    ...{ slice: 32, concurrency: 8, rate: 10, seconds: 0 },
  },
  {
    name: 'MCP tools/call, beside a unary one',
    group: 'mcp',
    wire: 'mcp',
    slice: 400,
    concurrency: 32,
    rate: 500,
    seconds: 0,
  },
]

/** The floor pipes what the provider says, so it is asked where the provider says it, and its answers are in that wire. */
const shapes = {
  chat: { path: '/v1/chat/completions' },
  messages: { path: '/v1/chat/completions', piped: { path: '/v1/messages', check: checkMessages } },
  aiSdk: {
    path: '/v4/ai/language-model',
    ...{ check: aiSdk.checkParts, request: aiSdk.request, headers: aiSdk.headers },
    piped: {
      path: '/v1/chat/completions',
      check: checkStream,
      body: Buffer.from(request({ model: 'bench', stream: true })),
    },
  },
  embeddings: { path: '/v1/embeddings', check: embeddings.checkEmbeddings, request: embeddings.request },
  images: { path: '/v1/images/generations', ...images },
  speech: { path: '/v1/audio/speech', ...speech },
  transcriptions: { path: '/v1/audio/transcriptions', ...transcriptions },
  mcp: { path: '/mcp', check: checkToolCall, request: toolCall, piped: unary },
}

/** What a load sends to a target. @returns {import('./driver.mjs').Shot} */
export function shotOf({ wire, stream, prompt }, { models, pipes }) {
  const {
    path,
    check = stream ? checkStream : checkWhole,
    request: compose = request,
    contentType,
    headers,
    piped,
  } = shapes[wire]
  const body = Buffer.from(compose({ model: models[wire], stream, prompt }))
  return { path, body, check, contentType, headers, ...(pipes && piped) }
}
