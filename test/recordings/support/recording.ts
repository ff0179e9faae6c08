/** Recordings: files whose head says what they are, and whose rest is the raw answer. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { ChatWire } from '../../e2e/matrix/wires.ts'
import { wires } from '../../e2e/matrix/wires.ts'
import { readAnthropicMessages } from '../readers/anthropic-messages.ts'
import { readBedrockConverse } from '../readers/bedrock-converse.ts'
import { readCohereChat } from '../readers/cohere-chat.ts'
import { readGeminiGenerate } from '../readers/gemini-generate.ts'
import { readMistralChat } from '../readers/mistral-chat.ts'
import { readOpenAiChat } from '../readers/openai-chat.ts'
import { readOpenAiResponses } from '../readers/openai-responses.ts'
import type { Answer } from './answer.ts'
import { answerOf } from './schema.ts'

export interface Recording {
  /** Unique, of letters, digits and hyphens: a provider and a model have this name. */
  readonly name: string
  readonly wire: ChatWire
  readonly status: number
  readonly type: string
  /** Whether clients ask for a stream. */
  readonly isStream: boolean
  /** How the connection ends: in order, before the last event's empty line, not at all, with comments, by a reset. */
  readonly ends: 'close' | 'bare' | 'silent' | 'pings' | 'reset'
  /** Whether clients ask for a search. */
  readonly searches: boolean
  /** The JSON Schema that clients ask for. */
  readonly schema: object | undefined
  /** The provider's name of the model, where that matters. */
  readonly model: string | undefined
  readonly remark: string
  readonly body: string
  readonly expected: Answer
}

const READERS: Record<string, (body: string, isStream: boolean) => Answer> = {
  'openai.chat': readOpenAiChat,
  'openai.responses': readOpenAiResponses,
  'anthropic.messages': readAnthropicMessages,
  'anthropic.vertex': readAnthropicMessages,
  'gemini.generate': readGeminiGenerate,
  'gemini.vertex': readGeminiGenerate,
  'bedrock.converse': readBedrockConverse,
  'mistral.chat': readMistralChat,
  'cohere.chat': readCohereChat,
}
const FAILED: Answer = { text: '', reasoning: '', calls: [], urls: [], finish: null, usage: null }
const FIELDS = new Set(['wire', 'status', 'type', 'asks', 'ends', 'searches', 'schema', 'model', 'remark'])
const folder = fileURLToPath(new URL('..', import.meta.url))

export const recordings = (): Recording[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.txt'))
    .sort()
    .map(path => parse(path, readFileSync(`${folder}/${path}`, 'utf8')))

function parse(path: string, file: string): Recording {
  const at = file.indexOf('\n\n')
  const head: Record<string, string> = {}
  for (const line of file.slice(0, at).split('\n')) {
    const [, name, value] = /^(\w+): (.+)$/.exec(line) ?? []
    if (name === undefined || !FIELDS.has(name)) throw new Error(`${path}: "${line}" is no field of a head`)
    head[name] = value!
  }
  const wire = wires.find(({ wire }) => wire === head.wire)
  const read = READERS[head.wire ?? '']
  if (!wire || !read) throw new Error(`${path}: "${head.wire}" is no chat wire`)
  const type = head.type ?? 'application/json'
  const ends = (head.ends ?? 'close') as Recording['ends']
  // Editors drop the empty line with which the last event ends.
  const body = file.slice(at + 2).trimEnd() + (type === 'text/event-stream' && ends !== 'bare' ? '\n\n' : '')
  const isStream = head.asks ? head.asks === 'stream' : type !== 'application/json'
  const status = Number(head.status ?? 200)
  const schema = head.schema === undefined ? undefined : (JSON.parse(head.schema) as object)
  const said = status === 200 ? read(body, type !== 'application/json') : FAILED
  return {
    name: path.replace(/\.txt$/, '').replace(/[^a-z0-9]+/g, '-'),
    wire,
    status,
    type,
    isStream,
    ends,
    searches: head.searches === 'yes',
    model: head.model,
    remark: head.remark ?? '',
    body,
    schema,
    expected: schema ? answerOf(said, schema) : said,
  }
}
