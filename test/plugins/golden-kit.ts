/** What the tests of a wire share whose tables stand in `test/golden/<wire>`: rows, events as lines, and replays. */

import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Event, ReasoningEvent, SourceEvent } from '../../src/core/event.ts'
import type { Target, Translator } from '../../src/core/translator.ts'
import { applyReport, type Usage } from '../../src/core/usage.ts'
import type { Decoder, WireRequest } from '../../src/core/wire.ts'
import type { Json } from '../../src/json/json.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { framingFor } from '../../src/upstream/framing/index.ts'
import { SseFraming } from '../../src/upstream/framing/sse.ts'
import { Fold } from '../../src/wire/fold.ts'
import { decodeAll, deepFreeze, type RawFrame, target } from './wire-kit.ts'

export type { Json } from '../../src/json/json.ts'

export type Mode = 'stream' | 'unary'
/** A row of `requests`: what becomes of a request. */
export interface RequestRow {
  mapping?: Json
  request: Json
  body: Json
}
/** A row of `answers`: what frames show, one event a line. */
export interface AnswerRow {
  mode?: Mode
  frames: unknown[]
  shows: string[]
}

export const hi: Json = { role: 'user', content: 'Hi' }
export const call = (id: string, args = '{}'): Json => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: args },
})
export const result = (id: string, content: unknown = 'ok'): Json => ({ role: 'tool', tool_call_id: id, content })

/** Reads the files of one folder of `test/golden`. */
export function golden(folder: string) {
  const at = new URL(`../golden/${folder}/`, import.meta.url)
  const read = (name: string) => readFileSync(new URL(name, at), 'utf8')
  /** The files with this ending, without it. */
  const names = (ending: string) =>
    readdirSync(at).flatMap(name => (name.endsWith(ending) ? [name.slice(0, -ending.length)] : []))
  /** Rows are written by hand, in the shape that their test names. */
  const table = <Row extends object>(name: string): (Row & { name: string })[] => JSON.parse(read(`${name}.table.json`))
  return { read, names, table }
}

/** What the scripted upstream refuses of a body, as the real provider does: throws for one that it does not take. */
export async function rulesOf(wire: string): Promise<(body: Json) => void> {
  const rules = new URL(`../helpers/upstream/${wire}-rules.mjs`, import.meta.url)
  const { check }: { check(headers: Json, body: unknown, keys: string[]): void } = await import(rules.href)
  return body => check({ 'content-type': 'application/json' }, JSON.parse(JSON.stringify(body)), [])
}

/** A target whose mapping and provider are written as JSON. */
export function offer(given: Json = {}, provider: Json = {}): Target {
  const { supports, parameters, ...mapping } = given as { supports?: never[]; parameters?: string[] }
  return target({
    provider,
    mapping: { ...mapping, supports: new Set(supports), parameters: parameters && new Set(parameters) },
  })
}

/** Encodes with a frozen input. */
export function encodeWith(wire: Translator<'chat'>, request: Json, to: Target, stream = false): WireRequest {
  const input = deepFreeze({ model: 'acme-large', messages: [hi], ...request })
  return wire.encode(input as unknown as ChatRequest, to, stream)
}

/** The data of a frame: JSON, or text that stands for itself. */
export const textOf = (frame: unknown): string => (typeof frame === 'string' ? frame : JSON.stringify(frame))

/** Frames are JSON, or text that stands for itself, or an event with a name and its data as JSON. */
export function decodeWith(decoder: Decoder, frames: readonly unknown[]): Event[] {
  const raw = frames.map((frame): RawFrame => {
    if (typeof frame === 'string') return frame
    const { event, data } = frame as { event?: string; data?: unknown }
    return event === undefined ? textOf(frame) : { name: event, data: JSON.stringify(data) }
  })
  return decodeAll(decoder, raw)
}

/** A wire with its folder of `test/golden`, as its tests speak to it. */
export function subject(wire: Translator<'chat'>, folder: string) {
  const encode = (request: Json, to = target(), stream = false) => encodeWith(wire, request, to, stream)
  const decode = (mode: Mode, frames: readonly unknown[], to = target()) => decodeWith(wire.decoder(mode, to), frames)
  return { ...golden(folder), wire, encode, decode }
}

/** Sends what a wire encodes, and reads the answer as the gateway does. */
export async function ask(wire: Translator<'chat'>, baseUrl: string, request: Json, to: Target): Promise<Event[]> {
  const streamed = request.stream === true
  const { path, body } = encodeWith(wire, request, to, streamed)
  const headers = { 'content-type': 'application/json', authorization: 'Bearer k' }
  const answer = await fetch(baseUrl + path, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!answer.ok) throw wire.error(answer.status, await answer.text(), to)
  const { framing, mode } = framingFor(answer.headers.get('content-type') ?? undefined, streamed)
  const frames = [...framing.push(Buffer.from(await answer.arrayBuffer())), ...framing.end()]
  return decodeAll(
    wire.decoder(mode, to),
    frames.map(({ data, name }) => (name === undefined ? data : { data, name })),
  )
}

/** The events of an SSE stream that comes in pieces. */
export function decodePieces(decoder: Decoder, pieces: readonly Buffer[]): Event[] {
  const framing = new SseFraming()
  const events: Event[] = []
  for (const piece of pieces) for (const frame of framing.push(piece)) events.push(...decoder.frame(frame))
  for (const frame of framing.end()) events.push(...decoder.frame(frame))
  return [...events, ...decoder.end()]
}

/** `bytes` cut at any places. */
export const cuts = (bytes: Buffer): fc.Arbitrary<Buffer[]> =>
  fc
    .uniqueArray(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 40 })
    .map(at => [0, ...at.sort((a, b) => a - b), bytes.length])
    .map(at => at.slice(1).map((end, i) => bytes.subarray(at[i], end)))

/** The events that say something, without what only accompanies them. */
export const contentOf = (events: readonly Event[]): Event[] =>
  events.filter(({ type }) => !['start', 'usage', 'tier'].includes(type))

export const usageOf = (events: readonly Event[]): Usage => {
  const usage: Usage = {}
  for (const event of events) if (event.type === 'usage') applyReport(usage, event.usage)
  return usage
}

export const errorsOf = (events: readonly Event[]): GatewayError[] =>
  events.flatMap(event => (event.type === 'error' ? [event.error] : []))

/** The turn that a client sends back of an answer's first choice; without `whole`, only its pieces as they came. */
export function turnOf(events: readonly Event[], whole = true): Json {
  const fold = new Fold()
  fold.add(events)
  const { text, reasoning, details, tools } = fold.choices[0]!
  const pieces = events.flatMap(event => {
    if (event.type !== 'reasoning' || event.format === undefined) return []
    const { text, format, block, signature } = event
    return [{ type: 'reasoning.text', text, format, block_index: block, ...(signature && { signature }) }]
  })
  return {
    role: 'assistant',
    content: text || null,
    reasoning,
    reasoning_details: whole ? details : pieces,
    tool_calls: tools.map(({ id, name, args }) => ({ id, type: 'function', function: { name, arguments: args } })),
  }
}

/** One event as a line. */
export function show(event: Event): string {
  switch (event.type) {
    case 'start':
      return `start ${event.id ?? '-'} ${event.model ?? '-'}`
    case 'text':
    case 'refusal':
      return `${event.type} ${event.choice} ${event.text}`
    case 'reasoning':
      return showReasoning(event)
    case 'tool': {
      const { choice, index, id, name, args, custom } = event
      const facts = Object.entries({ id, name, args, custom }).filter(([, value]) => value !== undefined)
      return `tool ${choice}.${index} ${facts.map(fact => fact.join('=')).join(' ')}`
    }
    case 'source':
      return `source ${event.choice} ${event.url} ${event.title ?? '-'}${placeOf(event)}`
    case 'finish':
      return `finish ${event.choice} ${event.reason}`
    case 'usage': {
      const facts = Object.entries(event.usage).map(fact => fact.join('='))
      return `usage ${facts.join(' ')}`
    }
    case 'tier':
      return `tier ${event.tier}`
    case 'error':
      return `error ${event.error.status} ${event.error.code}`
    default:
      return JSON.stringify(event)
  }
}

/** Where a source is cited. */
export const placeOf = ({ start, end }: SourceEvent): string => (start === undefined ? '' : ` at ${start}-${end}`)

const showReasoning = ({ choice, text, block, signature }: ReasoningEvent): string =>
  `reasoning ${choice}#${block} ${signature === undefined ? text : `sealed ${signature}`}`
