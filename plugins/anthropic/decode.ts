/** Messages answers, whole and streamed, as events (docs/contributing/wire-sources.md#anthropic). */
import {
  append,
  checkBlocks,
  type Decoder,
  type Event,
  entriesIn,
  errors,
  type Frame,
  GatewayError,
  isObject,
  type Json,
  parseCalls,
  type ReasoningEvent,
  seal,
  type Target,
  textSize,
} from '../../src/plugin.ts'
import type { Block } from '../shared/claude/blocks.ts'
import { CitedText } from '../shared/claude/cited-text.ts'
import { JsonAnswer, type OpenBlock, openBlock } from '../shared/claude/open-block.ts'
import { FORMAT } from '../shared/claude/thinking.ts'
import { EventTemplate } from '../shared/event-template.ts'
import { AnswerText } from './answer-text.ts'
import { bound } from './citations.ts'
import { errorOf } from './error.ts'
import { type Delta, endingOf, finishReasonOf, type Message, type Payload } from './payload.ts'
import { isOwnResult, tierOf, UsageMeter } from './usage.ts'

const textEvent = (text: string): Event => ({ type: 'text', choice: 0, text })
/** The field with the arguments of a call. */
const inputOf = ({ type }: Json) => (type === 'tool_use' ? 'input' : undefined)

/** A whole message is decoded like a stream, so that both give the same events. */
export class MessagesDecoder implements Decoder {
  done = false
  complete = false

  readonly #target: Target
  readonly #mode: 'stream' | 'unary'
  readonly #schema: Json | undefined
  #started = false
  #id: unknown = undefined
  /** True once a client could have seen a part of this message. */
  #emitted = false
  /** Client tools seen so far; the index of a tool event counts these, not blocks. */
  #tools = 0
  /** Blocks still gathering input, by the wire's block index. */
  readonly #open = new Map<number, OpenBlock>()
  readonly #cited = new CitedText()
  readonly #text: AnswerText
  readonly #repeated = new EventTemplate('text')
  #usage = new UsageMeter()

  /** `schema`: of an answer that may arrive as the input of a tool. */
  constructor(mode: 'stream' | 'unary', target: Target, schema?: Json) {
    this.#mode = mode
    this.#target = target
    this.#schema = schema
    this.#text = new AnswerText(schema !== undefined)
    if (schema) this.#cited.lose()
  }

  frame(frame: Frame): Event[] {
    if (this.done) return []
    const repeated = this.#repeated.textOf(frame.data)
    if (repeated) {
      this.#cited.go(repeated)
      return [textEvent(repeated)]
    }
    let parsed: unknown
    try {
      parsed = parseCalls(frame.data, inputOf)
    } catch (thrown) {
      if (thrown instanceof GatewayError) return this.#fail(thrown)
      const text = frame.data.trim()
      if (text === '' || text === '[DONE]') return []
      return this.#fail(errors.invalidAnswer('it is not JSON'))
    }
    if (!isObject(parsed)) return this.#fail(errors.invalidAnswer('it is not a JSON object'))
    const payload = parsed as Payload
    const kind = payload.type ?? frame.name
    switch (kind) {
      case 'content_block_delta': {
        if (!isObject(payload.delta)) return []
        const events = this.#delta(payload.index ?? 0, payload.delta)
        // Without a `type` the event could not be distinguished from other kinds.
        if (events[0]?.type === 'text' && payload.type) this.#repeated.learn(frame.data, events[0].text)
        return events
      }
      case 'content_block_start':
        if (!isObject(payload.content_block)) return []
        return this.#blockStart(payload.index ?? 0, payload.content_block, frame.data)
      case 'content_block_stop':
        return this.#blockStop(payload.index ?? 0)
      case 'message_start':
        return this.#messageStart(payload.message ?? {})
      case 'message_delta':
        // Context edits are reported beside the delta.
        return this.#messageDelta(
          { context_management: payload.context_management, ...(isObject(payload.delta) && payload.delta) },
          payload.usage,
        )
      case 'message_stop':
        return this.#messageStop()
      case 'ping':
        return []
      default:
        return this.#other(kind, payload)
    }
  }

  end(): Event[] {
    if (this.done) return []
    if (!this.complete) return this.#fail(errors.truncated())
    this.done = true
    return []
  }

  /** A whole message, an error in any dialect, or an event type added to the wire later. */
  #other(kind: unknown, payload: Payload): Event[] {
    if (kind === undefined || kind === 'message' || kind === 'error' || 'error' in payload) {
      const error = errorOf(payload, this.#target)
      if (error) return this.#fail(error)
      if (kind !== 'error' && Array.isArray(payload.content)) return this.#whole(payload, payload.content)
    }
    const harmless = kind !== 'error' && this.#mode === 'stream'
    return harmless ? [] : this.#fail(errors.invalidAnswer('it is neither a message nor a readable error'))
  }

  #whole(message: Message, content: unknown[]): Event[] {
    const events = this.#messageStart(message)
    if (this.done) return events
    for (const [index, block] of entriesIn(content).entries()) {
      if (isObject(block)) events.push(...this.#blockStart(index, block as Block), ...this.#blockStop(index))
    }
    events.push(...this.#messageDelta(message, undefined), ...this.#messageStop())
    return events
  }

  /** Retrying proxies repeat it (C30): for the same message it is ignored; another message starts afresh. */
  #messageStart({ id, model, usage: report }: Message): Event[] {
    if (this.#started) {
      if (id === this.#id) return []
      if (this.#emitted) return this.#fail(errors.invalidAnswer('another message began before the first was complete'))
      this.#open.clear()
      this.#tools = 0
      this.#usage = new UsageMeter()
    }
    this.#started = true
    this.#id = id
    const events: Event[] = [
      { type: 'start', ...(typeof id === 'string' && { id }), ...(typeof model === 'string' && { model }) },
    ]
    this.#report(report, events)
    const tier = tierOf(report)
    if (tier) events.push({ type: 'tier', tier })
    return events
  }

  /** `event`: its text, in a stream: a whole message has its report. */
  #blockStart(index: number, block: Block, event?: string): Event[] {
    const events: Event[] = []
    if (block.type !== 'text') this.#text.interrupt()
    switch (block.type) {
      case 'text':
        if (block.text) events.push(...this.#delta(index, { type: 'text_delta', text: block.text }))
        for (const citation of entriesIn(block.citations)) this.#cite(index, citation)
        break
      case 'thinking':
        if (block.thinking) events.push(...this.#delta(index, { type: 'thinking_delta', thinking: block.thinking }))
        if (block.signature) events.push(...this.#delta(index, { type: 'signature_delta', signature: block.signature }))
        break
      case 'redacted_thinking':
        if (typeof block.data === 'string') events.push(this.#reasoning(index, '', { data: this.#seal(block.data) }))
        break
      default: {
        const open = openBlock(block, this.#tools, this.#target.provider.id, this.#schema)
        this.#open.set(index, open)
        checkBlocks(this.#open.size)
        if (open instanceof JsonAnswer) this.#text.drop()
        if (open.isTool) {
          this.#tools += 1
          append(events, this.#text.release())
        }
        events.push(...open.start())
        if (event !== undefined && isOwnResult(block))
          events.push({ type: 'usage', usage: this.#usage.addResult(block), read: textSize(event) })
      }
    }
    if (events.length > 0) this.#emitted = true
    return events
  }

  #delta(index: number, delta: Delta): Event[] {
    switch (delta.type) {
      case 'text_delta': {
        const { text } = delta
        if (typeof text !== 'string' || text === '') return []
        this.#emitted = true
        this.#cited.say(index, text)
        return this.#text.say(index, textEvent(text))
      }
      case 'input_json_delta': {
        const json = delta.partial_json
        if (typeof json !== 'string' || json === '') return []
        const events = this.#open.get(index)?.json(json) ?? []
        if (events.length > 0) this.#emitted = true
        return events
      }
      case 'thinking_delta': {
        const { thinking } = delta
        return typeof thinking === 'string' && thinking !== '' ? [this.#reasoning(index, thinking)] : []
      }
      case 'signature_delta': {
        const { signature } = delta
        if (typeof signature !== 'string' || signature === '') return []
        return [this.#reasoning(index, '', { signature: this.#seal(signature) })]
      }
      case 'citations_delta':
        this.#cite(index, delta.citation)
        return []
      default:
        this.#open.get(index)?.merge(delta as Record<string, unknown>)
        return []
    }
  }

  #blockStop(index: number): Event[] {
    const open = this.#open.get(index)
    if (!open) return [...this.#cited.end(), ...this.#text.end()]
    this.#open.delete(index)
    this.#emitted = true
    return open.stop()
  }

  #messageDelta(delta: Delta | Message, report: unknown): Event[] {
    const events: Event[] = []
    this.#report(report, events)
    const reason = delta.stop_reason
    if (typeof reason === 'string' && reason !== '') this.#finish(reason, delta, events)
    return events
  }

  #messageStop(): Event[] {
    if (!this.#started) return this.#fail(errors.truncated())
    const events: Event[] = []
    this.#finish('end_turn', {}, events)
    this.done = true
    return events
  }

  #finish(stopReason: string, said: Delta | Message, events: Event[]): void {
    if (this.complete) return
    this.complete = true
    for (const index of [...this.#open.keys()]) events.push(...this.#blockStop(index))
    append(events, this.#cited.end())
    append(events, this.#text.release())
    const explanation = said.stop_details?.explanation
    // A refusal before any output is free (docs/money.md#cost).
    const free = stopReason === 'refusal' && !this.#emitted
    if (stopReason === 'refusal' && typeof explanation === 'string' && explanation !== '') {
      events.push({ type: 'refusal', choice: 0, text: explanation, wire: 'anthropic.messages' })
    }
    this.#emitted = true
    const ending = endingOf(stopReason, said)
    const reason = finishReasonOf(stopReason, this.#tools)
    events.push({ type: 'finish', choice: 0, reason, ...(ending && { ending }), ...(free && { free }) })
  }

  #reasoning(block: number, text: string, sealed?: Pick<ReasoningEvent, 'signature' | 'data'>): ReasoningEvent {
    this.#emitted = true
    return { type: 'reasoning', choice: 0, text, format: FORMAT, block, ...sealed }
  }

  #seal(value: string): string {
    return seal(this.#target, value)
  }

  #cite(block: number, citation: unknown): void {
    if (citation != null) this.#text.cite(bound(citation, this.#target))
    const { type, url, title } = (citation ?? {}) as Record<string, unknown>
    if (type !== 'web_search_result_location' || typeof url !== 'string') return
    this.#emitted = true
    this.#cited.cite(block, url, title)
  }

  #report(report: unknown, events: Event[]): void {
    if (report == null) return
    const usage = this.#usage.add(report)
    if (Object.keys(usage).length > 0) events.push({ type: 'usage', usage })
  }

  #fail(error: GatewayError): Event[] {
    this.done = true
    return [...this.#cited.end(), { type: 'error', error }]
  }
}
