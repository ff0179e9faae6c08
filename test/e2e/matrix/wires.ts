/** Every chat wire as a provider of its own: where its upstream listens and what of earlier reasoning it takes back. */
import { createHash } from 'node:crypto'
import { testMapping, upstreamSecret } from '../../helpers/gateway.ts'
import type { Upstream } from '../../helpers/upstream.ts'

type Tree = Record<string, unknown>

export interface ChatWire {
  readonly wire: string
  /** A name without dots: of its provider, of its model, and of its prefix at the upstream. */
  readonly id: string
  /** The provider's address below its prefix. */
  readonly base: string
  readonly auth: Tree
  readonly headers?: Tree
  /** A model that does all that the wire can carry. */
  readonly model: string
  /** Empty for models that think by a budget. */
  readonly efforts: readonly string[]
  /** Whether a schema is asked for as the input of a tool, because the wire has no other form. */
  readonly answersByTool?: boolean
  /** What of earlier reasoning goes back: the signature of a thought or of a turn's first call, text, or nothing. */
  readonly replays: 'thought' | 'call' | 'text' | 'nothing'
  /** Where the conversation stands in a request's body. */
  readonly turns: 'messages' | 'input' | 'contents'
}

const bearer = { scheme: 'bearer', secret: upstreamSecret }
const header = (name: string) => ({ scheme: 'header', header: name, secret: upstreamSecret })
const efforts = ['minimal', 'low', 'medium', 'high']
/** Claude can be told not to think, which a forced tool needs. */
const adaptive = ['none', 'low', 'medium', 'high']
const google = '/v1/projects/p/locations/global'

export const wires: readonly ChatWire[] = [
  {
    wire: 'openai.chat',
    id: 'chat',
    base: '/v1',
    auth: bearer,
    model: 'gpt-1',
    efforts,
    replays: 'nothing',
    turns: 'messages',
  },
  {
    wire: 'openai.responses',
    id: 'responses',
    base: '/v1',
    auth: bearer,
    model: 'gpt-5.4',
    efforts,
    replays: 'thought',
    turns: 'input',
  },
  {
    wire: 'anthropic.messages',
    id: 'claude',
    base: '/v1',
    auth: header('x-api-key'),
    headers: { 'anthropic-version': '2023-06-01' },
    model: 'claude-sonnet-5',
    efforts: adaptive,
    replays: 'thought',
    turns: 'messages',
  },
  {
    wire: 'anthropic.vertex',
    id: 'vertexclaude',
    base: google,
    auth: bearer,
    model: 'claude-sonnet-5@default',
    efforts: adaptive,
    answersByTool: true,
    replays: 'thought',
    turns: 'messages',
  },
  {
    wire: 'gemini.generate',
    id: 'gemini',
    base: '/v1beta',
    auth: header('x-goog-api-key'),
    model: 'gemini-3.5-flash',
    efforts,
    replays: 'call',
    turns: 'contents',
  },
  {
    wire: 'gemini.vertex',
    id: 'vertexgemini',
    base: google,
    auth: bearer,
    model: 'gemini-3.5-flash',
    efforts,
    replays: 'call',
    turns: 'contents',
  },
  {
    wire: 'bedrock.converse',
    id: 'bedrock',
    base: '',
    auth: bearer,
    model: 'anthropic.claude-sonnet-4-6',
    efforts: adaptive,
    replays: 'thought',
    turns: 'messages',
  },
  {
    wire: 'mistral.chat',
    id: 'mistral',
    base: '/v1m',
    auth: bearer,
    model: 'mistral-medium-2604',
    efforts: ['none', 'high'],
    replays: 'thought',
    turns: 'messages',
  },
  {
    wire: 'cohere.chat',
    id: 'cohere',
    base: '/v2',
    auth: bearer,
    model: 'command-a-plus-05-2026',
    efforts: [],
    replays: 'text',
    turns: 'messages',
  },
]

/** USD per million tokens, of primes, so that no two parts of a cost can be mistaken for each other. */
export const pricing = {
  prompt: '2.3',
  completion: '7.0001',
  input_cache_read: '0.31',
  input_cache_write: '2.9',
  input_cache_write_1h: '4.7',
}

/** The manifest of a provider that speaks `wire` at the upstream's `prefix`, with an offer for each of `models`. */
export function manifestOf(
  wire: ChatWire,
  upstream: Upstream,
  prefix: string,
  models: string[],
  over: Tree = {},
): Tree {
  return {
    base_url: `${upstream.url(prefix).replace(/\/v1$/, '')}${wire.base}`,
    auth: wire.auth,
    headers: wire.headers ?? {},
    wires: { chat: wire.wire },
    models: models.map(model => ({
      ...testMapping,
      supports: [...testMapping.supports, 'prompt_cache'],
      model,
      id: wire.model,
      pricing,
      reasoning_efforts: wire.efforts,
    })),
    ...over,
  }
}

/** What the upstream signs a thought or a call with; the same as its own `signatureOf`. */
const signatureOf = (text: string): string => createHash('sha256').update(`signed:${text}`).digest('base64')

/** Reasoning of one turn, and the arguments of the first call of `weather` that came of it. */
export interface Thought {
  readonly text: string
  readonly args: object
}

/** What stands for a thought in a request: its text, its signature, and the signature of its first call. */
const marksOf = ({ text, args }: Thought): Record<'text' | 'thought' | 'call', string> => ({
  text,
  thought: signatureOf(text),
  call: signatureOf(`weather:${JSON.stringify(args)}`),
})
const stands = (body: unknown, mark: string) => JSON.stringify(body).includes(JSON.stringify(mark).slice(1, -1))

/** Whether a request's body brings a thought back as its own wire wants it. */
export const returns = ({ replays }: ChatWire, body: unknown, thought: Thought): boolean =>
  replays !== 'nothing' && stands(body, marksOf(thought)[replays])

/** Whether a request's body betrays a thought, in whatever form. */
export const betrays = (body: unknown, thought: Thought): boolean =>
  Object.values(marksOf(thought)).some(mark => stands(body, mark))
