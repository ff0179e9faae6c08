/** Converse answers, whole and streamed, as events (docs/contributing/wire-sources.md#bedrock). */
import {
  type ChatRequest,
  checkBlocks,
  type Decoder,
  type Event,
  entriesIn,
  errors,
  type Frame,
  GatewayError,
  isObject,
  type Json,
  objectIn,
  parseCalls,
  type ReasoningEvent,
  seal,
  type Target,
  textIn,
  type Usage,
  weigh,
} from '../../src/plugin.ts'
import { malformed } from '../shared/answer.ts'
import { CitedText } from '../shared/claude/cited-text.ts'
import type { OpenBlock } from '../shared/claude/open-block.ts'
import { ThinkTags } from '../shared/think-tags.ts'
import { BlockAccumulator, openTool, piecesOf } from './answer-blocks.ts'
import { endingOf, tierOf, usageReports } from './ending.ts'
import { errorOf } from './error.ts'
import { familyOf } from './family.ts'
import { formatOf, isClaude } from './reasoning.ts'
import { takesCalls } from './tools.ts'

/** The field with the arguments of a call. */
const inputOf = (_: Json, name: string) => (name === 'toolUse' ? 'input' : undefined)

const MAX_FORMAT_CHARACTERS = 32

/** A whole message is decoded like a stream, so that both give the same events. */
export class ConverseDecoder implements Decoder {
  done = false

  readonly #target: Target
  readonly #claude: boolean
  /** Set until no `<think>` block can follow; models without reasoning blocks write one. */
  #tags: ThinkTags | undefined
  #started = false
  #stopReason: string | undefined
  readonly #usage = usageReports()
  #metadata: Partial<Usage> | undefined
  /** Client tools seen so far; the index of a tool event counts these, not blocks. */
  #tools = 0
  #searches = 0
  readonly #request: Readonly<ChatRequest> | undefined
  /** True once the answer arrived by tool. */
  #answered = false
  /** Tool calls still gathering input, by the wire's block index. */
  readonly #open = new Map<number, OpenBlock>()
  /** Parts of blocks that are usable only as a whole. */
  readonly #gathered = new Map<number, BlockAccumulator>()
  readonly #cited = new CitedText()
  /** Characters of signatures and hidden reasoning so far. */
  kept = 0

  /** `request`: its history may declare tools that it does not offer; their calls are dropped. */
  constructor(target: Target, request?: Readonly<ChatRequest>) {
    this.#target = target
    this.#request = request
    this.#claude = isClaude(target.mapping)
    const { maker } = familyOf(target.mapping)
    this.#tags = maker === 'anthropic' || maker === 'amazon' ? undefined : new ThinkTags(0)
  }

  get complete(): boolean {
    return this.#stopReason !== undefined && !this.done
  }

  frame({ name, data }: Frame): Event[] {
    if (this.done) return []
    let payload: unknown
    try {
      payload = parseCalls(data, inputOf)
    } catch (thrown) {
      if (thrown instanceof GatewayError) return this.#fail(thrown)
      if (data.trim() === '') return []
      return this.#fail(errors.invalidAnswer('it is not JSON'))
    }
    if (!isObject(payload)) return this.#fail(errors.invalidAnswer('it is not a JSON object'))
    const index = typeof payload.contentBlockIndex === 'number' ? payload.contentBlockIndex : 0
    switch (name) {
      case 'contentBlockDelta':
        return [...this.#begin(), ...this.#delta(index, payload.delta)]
      case 'contentBlockStart':
        return [...this.#begin(), ...this.#blockStart(index, payload.start)]
      case 'contentBlockStop':
        return this.#blockStop(index)
      case 'messageStart':
        return this.#begin()
      case 'messageStop':
        return this.#messageStop(payload.stopReason)
      case 'metadata':
        return this.#report(payload)
      case undefined:
        return this.#whole(payload)
      default:
        return this.#other(name, payload)
    }
  }

  /** Without a usage report, the stop reason alone marks the answer as complete. */
  end(): Event[] {
    if (this.done) return []
    return this.#stopReason === undefined ? this.#fail(errors.truncated()) : this.#finish()
  }

  /** An exception, or an event type added to the wire later. */
  #other(name: string, payload: Json): Event[] {
    if (name !== 'error' && !/exception$/i.test(name)) return []
    const named = name === 'error' ? undefined : name
    const error = errorOf(payload, this.#target, named === undefined ? {} : { named })
    return this.#fail(error ?? errors.invalidAnswer('it holds an error without a message'))
  }

  #whole(payload: Json): Event[] {
    const { output } = payload
    const message = objectIn(output).message
    if (!isObject(message) || !Array.isArray(message.content)) {
      const error = errorOf(payload, this.#target)
      return this.#fail(error ?? errors.invalidAnswer('it is neither a message nor a readable error'))
    }
    const events = this.#begin()
    for (const [index, block] of entriesIn(message.content).entries()) {
      if (!isObject(block)) continue
      const { start, deltas } = piecesOf(block)
      events.push(...this.#blockStart(index, start))
      for (const delta of deltas) events.push(...this.#delta(index, delta))
      events.push(...this.#blockStop(index))
    }
    events.push(...this.#messageStop(payload.stopReason))
    if (!this.done) events.push(...this.#report(payload))
    return events
  }

  #begin(): Event[] {
    if (this.#started) return []
    this.#started = true
    return [{ type: 'start' }]
  }

  #blockStart(index: number, start: unknown): Event[] {
    const { toolUse, image } = objectIn(start)
    if (isObject(image)) this.#gather(index).format = textIn(image.format)?.slice(0, MAX_FORMAT_CHARACTERS)
    if (!isObject(toolUse)) return []
    this.kept += weigh(toolUse)
    // The provider runs such a tool itself; the client has nothing to answer.
    if (toolUse.type === 'server_tool_use') return this.#search()
    const events: Event[] = []
    this.#separate(events)
    const open = openTool(toolUse, this.#tools, this.#target, this.#request)
    // One answer suffices: two in a row would not be JSON.
    if (open.isTool ? !takesCalls(this.#request) : this.#answered) return events
    this.#open.set(index, open)
    if (open.isTool) this.#tools += 1
    else {
      this.#answered = true
      this.#cited.lose()
    }
    events.push(...open.start())
    return events
  }

  #delta(index: number, delta: unknown): Event[] {
    if (!isObject(delta)) return []
    const { text, toolUse, reasoningContent: thought, citation, image } = delta
    if (typeof text === 'string') return this.#text(index, text)
    if (isObject(toolUse)) {
      const { input } = toolUse
      const piece = typeof input === 'string' ? input : isObject(input) ? JSON.stringify(input) : ''
      const events = piece === '' ? [] : (this.#open.get(index)?.json(piece) ?? [])
      if (events.length === 0) this.kept += piece.length
      return events
    }
    if (isObject(thought)) return this.#reasoning(index, thought)
    if (isObject(citation)) this.#cite(index, citation)
    if (isObject(image) && isObject(image.source)) this.#gather(index).addBytes(image.source.bytes)
    return []
  }

  #text(block: number, text: string): Event[] {
    if (text === '') return []
    const events: Event[] = []
    if (this.#tags) this.#tags.write(text, events)
    else events.push({ type: 'text', choice: 0, text })
    for (const event of events) if (event.type === 'text') this.#cited.say(block, event.text)
    if (this.#tags?.over) this.#tags = undefined
    return events
  }

  #reasoning(block: number, { text, signature, redactedContent }: Json): Event[] {
    const events: Event[] = []
    this.#separate(events)
    if (typeof text === 'string' && text !== '') events.push(this.#thought(block, text, this.#claude))
    if (typeof signature === 'string' && this.#claude) this.#gather(block).signature += signature
    this.#gather(block).addBytes(redactedContent)
    for (const part of [signature, redactedContent]) this.kept += textIn(part)?.length ?? 0
    return events
  }

  #thought(block: number, text: string, kept: boolean, sealed?: Pick<ReasoningEvent, 'signature' | 'data'>): Event {
    const format = kept ? { format: formatOf(this.#target.mapping), block } : {}
    return { type: 'reasoning', choice: 0, text, ...format, ...sealed }
  }

  /** A model with reasoning blocks writes no tags into the text. */
  #separate(events: Event[]): void {
    if (!this.#tags) return
    const held: Event[] = []
    this.#tags.flush(held)
    this.#tags = undefined
    for (const event of held) {
      if (event.type === 'text') this.#cited.go(event.text)
      events.push(event)
    }
  }

  #gather(index: number): BlockAccumulator {
    const gathered = this.#gathered.get(index) ?? new BlockAccumulator()
    this.#gathered.set(index, gathered)
    checkBlocks(this.#gathered.size)
    return gathered
  }

  #blockStop(index: number): Event[] {
    const events = this.#open.get(index)?.stop() ?? []
    this.#open.delete(index)
    events.push(...this.#cited.end())
    const { signature, format, bytes } = this.#gathered.get(index) ?? {}
    this.#gathered.delete(index)
    if (signature) events.push(this.#thought(index, '', true, { signature: seal(this.#target, signature) }))
    if (bytes && typeof format === 'string') {
      events.push({ type: 'image', choice: 0, url: `data:image/${format};base64,${bytes}` })
    } else if (bytes) events.push(this.#thought(index, '', true, { data: seal(this.#target, bytes) }))
    return events
  }

  #cite(block: number, { location, title }: Json): void {
    const web = objectIn(location).web
    const url = objectIn(web).url
    if (typeof url === 'string') this.#cited.cite(block, url, title)
  }

  #search(): Event[] {
    this.#searches += 1
    return [{ type: 'usage', usage: { web_search: this.#searches } }]
  }

  #messageStop(reason: unknown): Event[] {
    this.#stopReason = typeof reason === 'string' ? reason : ''
    return this.#metadata ? this.#finish() : []
  }

  /** Follows the stop reason, or sometimes precedes it; the later of the two ends the answer. */
  #report({ usage, serviceTier }: Json): Event[] {
    const events: Event[] = []
    const counts = this.#usage.add(objectIn(usage)) ?? {}
    this.#metadata = counts
    if (Object.keys(counts).length > 0) events.push({ type: 'usage', usage: counts })
    const tier = tierOf(serviceTier)
    if (tier) events.push({ type: 'tier', tier })
    if (this.#stopReason !== undefined) events.push(...this.#finish())
    return events
  }

  #finish(): Event[] {
    if (this.#stopReason?.startsWith('malformed_')) {
      const broken = errors.invalidAnswer(`the model's output is broken (${this.#stopReason})`)
      return this.#fail(malformed(broken, this.#metadata))
    }
    this.done = true
    const events = this.#begin()
    this.#separate(events)
    for (const index of new Set([...this.#open.keys(), ...this.#gathered.keys()])) {
      events.push(...this.#blockStop(index))
    }
    events.push(...this.#cited.end(), {
      type: 'finish',
      choice: 0,
      ...endingOf(this.#stopReason, this.#tools, this.#request),
    })
    return events
  }

  #fail(error: GatewayError): Event[] {
    this.done = true
    return [...this.#cited.end(), { type: 'error', error }]
  }
}
