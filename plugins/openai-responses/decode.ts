/** Answers of the Responses wire, whole and streamed, as events (docs/contributing/wire-sources.md#openai). */
import {
  checkBlocks,
  type Decoder,
  type Event,
  entriesIn,
  errors,
  type FinishReason,
  type Frame,
  GatewayError,
  isObject,
  type Json,
  MAX_CALLS,
  objectIn,
  parseCalls,
  type Target,
  textIn,
  textKey,
  tooManyCalls,
  upstreamError,
  valueKey,
} from '../../src/plugin.ts'
import { Answer } from './answer.ts'
import { CallItem } from './call.ts'
import { errorOf } from './error.ts'
import { type Item, MessageItem, openItem, ReasoningItem } from './items.ts'
import { usageOf } from './usage.ts'

/** The field in which servers send arguments as an object. */
const argumentsOf = ({ type }: Json) => (type === 'function_call' ? 'arguments' : undefined)

/** Events with a piece of an item, and the item's type: some servers never announce the item. */
const PIECES: ReadonlyMap<unknown, string> = new Map([
  ['response.output_text.delta', 'message'],
  ['response.output_text.annotation.added', 'message'],
  ['response.refusal.delta', 'message'],
  ['response.reasoning_summary_text.delta', 'reasoning'],
  ['response.reasoning_text.delta', 'reasoning'],
  ['response.function_call_arguments.delta', 'function_call'],
  ['response.custom_tool_call_input.delta', 'custom_tool_call'],
])

/** A whole answer is decoded like a stream, so that both give the same events. */
export class ResponsesDecoder implements Decoder {
  done = false

  readonly #unary: boolean
  readonly #target: Target
  readonly #answer: Answer
  /**
   * Items by the wire's output index, which has gaps. Item ids are unusable: some providers change them in every event.
   */
  readonly #items = new Map<unknown, Item>()
  readonly #calls: CallItem[] = []
  #started = false

  /** `isNative`: the client uses the same wire. */
  constructor(mode: 'stream' | 'unary', target: Target, isNative = false) {
    this.#unary = mode === 'unary'
    this.#target = target
    this.#answer = new Answer(target, isNative)
  }

  frame({ data, name }: Frame): Event[] {
    const out: Event[] = []
    if (this.done) return out
    let payload: unknown
    try {
      payload = parseCalls(data, argumentsOf)
    } catch (thrown) {
      if (thrown instanceof GatewayError) this.#fail(thrown, out)
      else this.#text(name, data.trim(), out)
      return out
    }
    if (isObject(payload)) this.#event(payload.type ?? name, payload, out)
    else this.#other(name, payload, out)
    return out
  }

  end(): Event[] {
    const out: Event[] = []
    if (this.done) return out
    this.#fail(this.#unary && !this.#started ? errors.invalidAnswer('it is empty') : errors.truncated(), out)
    return out
  }

  /** A frame that is not JSON. After a terminator, some servers send nothing of the answer. */
  #text(name: string | undefined, text: string, out: Event[]): void {
    if (text === '') return
    const error = name === 'error' ? errorOf({ message: text }, this.#target) : undefined
    if (text === '[DONE]') this.#fail(errors.truncated(), out)
    else this.#fail(error ?? errors.invalidAnswer('it is not JSON'), out)
  }

  #event(kind: unknown, payload: Json, out: Event[]): void {
    const piece = PIECES.get(kind)
    if (piece !== undefined) {
      this.#item(payload, { type: piece }, out).piece(String(kind), payload, out)
      return
    }
    const { item, response, error } = payload
    switch (kind) {
      case 'response.function_call_arguments.done':
      case 'response.custom_tool_call_input.done':
        // A repeated id of a known call must not begin another call.
        this.#items.get(keyOf(payload, {}))?.piece(kind, payload, out)
        break
      case 'response.output_item.added':
        if (isObject(item)) this.#open(payload, item, out)
        break
      case 'response.output_item.done':
        if (isObject(item)) this.#item(payload, item, out).done(item, out)
        break
      case 'response.created':
      case 'response.in_progress':
      case 'response.queued':
        if (isObject(response)) this.#start(response, out)
        break
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        this.#finish(endingOf(kind.slice('response.'.length), response), withError(objectIn(response), error), out)
        break
      default:
        this.#other(kind, payload, out)
    }
  }

  /** A whole answer, an error in any dialect, or an event type added to the wire later. */
  #other(kind: unknown, payload: unknown, out: Event[]): void {
    if (isObject(payload) && (payload.object === 'response' || (kind === undefined && Array.isArray(payload.output)))) {
      this.#finish(textIn(payload.status) ?? 'completed', payload, out)
      return
    }
    if (kind === undefined || kind === 'error' || (isObject(payload) && payload.error != null)) {
      const error = errorOf(payload, this.#target)
      if (error) {
        this.#fail(error, out)
        return
      }
    }
    const harmless = kind !== 'error' && !this.#unary && isObject(payload)
    if (!harmless) this.#fail(errors.invalidAnswer('it is neither a response nor a readable error'), out)
  }

  /** The item of an event; `item` describes one that was never announced. */
  #item(event: Json, item: Json, out: Event[]): Item {
    return this.#items.get(keyOf(event, item)) ?? this.#open(event, item, out)
  }

  #open(event: Json, item: Json, out: Event[]): Item {
    const opened = openItem(item, this.#answer, out)
    this.#items.set(keyOf(event, item), opened)
    checkBlocks(this.#items.size)
    if (opened instanceof CallItem) {
      if (this.#calls.length === MAX_CALLS) throw tooManyCalls()
      this.#calls.push(opened)
    }
    return opened
  }

  #start({ id, model }: Json, out: Event[]): void {
    if (this.#started) return
    this.#started = true
    out.push({ type: 'start', ...(textIn(id) && { id: String(id) }), ...(textIn(model) && { model: String(model) }) })
  }

  /** `response` has ended and contains all items; streamed ones are not emitted again. */
  #finish(status: string, response: Json, out: Event[]): void {
    this.#start(response, out)
    const failure = failureOf(status, response, this.#target)
    if (!failure) this.#complete(entriesIn(response.output), out)
    const usage = usageOf(response)
    if (usage) out.push({ type: 'usage', usage })
    const tier = textIn(response.service_tier)
    if (tier !== undefined && tier !== 'auto') out.push({ type: 'tier', tier })
    if (failure) this.#fail(failure, out)
    else if (this.#calls.some(call => call.isNameless)) this.#fail(errors.invalidAnswer('a tool call has no name'), out)
    else this.#succeed(status, response, out)
  }

  #succeed(status: string, response: Json, out: Event[]): void {
    this.done = true
    out.push({ type: 'finish', choice: 0, reason: reasonOf(status, response, this.#answer.calls) })
  }

  #complete(items: readonly unknown[], out: Event[]): void {
    if (this.#items.size > 0) this.#supplement(items, out)
    else {
      for (const [index, item] of items.entries()) {
        if (isObject(item)) this.#item({ output_index: index }, item, out).done(item, out)
      }
    }
    for (const call of this.#calls) call.close(out)
  }

  /**
   * Items missing from the stream. Output indexes have gaps: calls are matched by id and then, like other items, by
   * their order when as many arrived as exist at the end. Nothing is emitted that may have been emitted before.
   */
  #supplement(items: readonly unknown[], out: Event[]): void {
    const known = [...this.#items.values()]
    const spoke = known.some(item => item instanceof MessageItem && item.begun)
    const thoughts = known.filter(item => item instanceof ReasoningItem)
    const allThoughts = items.filter(item => isObject(item) && item.type === 'reasoning').length === thoughts.length
    const haveIds = this.#calls.every(({ callIds }) => callIds.size > 0)
    const calls = matched(items.filter(item => isObject(item)).filter(isCall), this.#calls)
    for (const [index, item] of items.entries()) {
      if (!isObject(item)) continue
      const add = () => this.#open({ output_index: `last ${index}` }, item, out).done(item, out)
      if (item.type === 'reasoning') {
        const thought = allThoughts ? thoughts.shift() : this.#items.get(index)
        // Some providers send encrypted content only here.
        if (thought instanceof ReasoningItem) thought.seal(item, out)
      } else if (isCall(item)) {
        const call = calls.get(item)
        if (call) call.done(item, out)
        else if (haveIds && textIn(item.call_id) !== undefined) add()
      } else if (item.type === 'message' && !spoke) add()
    }
  }

  /** Ends the answer; an `error` event is often followed by `response.failed` (E4), which is ignored. */
  #fail(error: GatewayError, out: Event[]): void {
    this.done = true
    out.push({ type: 'error', error })
  }
}

/** Some servers report the error beside the response. */
const withError = (response: Json, error: unknown): Json =>
  error == null ? response : Object.assign({}, response, { error })

/** The streamed call of each final one: of its id or, where as many were streamed, the next one. */
function matched(items: readonly Json[], streamed: readonly CallItem[]): ReadonlyMap<Json, CallItem> {
  const left = new Set(streamed)
  const queues = new Map<string, CallItem[]>()
  for (const call of streamed) {
    for (const id of call.callIds) {
      const key = textKey(id)
      const queue = queues.get(key)
      if (queue) queue.push(call)
      else queues.set(key, [call])
    }
  }
  const found = new Map<Json, CallItem>()
  for (const item of items) {
    const call = queues.get(textKey(textIn(item.call_id) ?? ''))?.shift()
    if (call && left.delete(call)) found.set(item, call)
  }
  if (items.length !== streamed.length) return found
  const rest = left.values()
  for (const item of items) if (!found.has(item)) found.set(item, rest.next().value!)
  return found
}

const isCall = ({ type, execution }: Json): boolean =>
  type === 'function_call' || type === 'custom_tool_call' || (type === 'tool_search_call' && execution === 'client')

const keyOf = (event: Json, item: Json): unknown => valueKey(event.output_index ?? event.item_id ?? item.id)

/** Some servers end every stream with `response.completed`; a worse status in the response itself is the true one. */
function endingOf(event: string, response: unknown): string {
  const status = objectIn(response).status
  return event === 'completed' && (status === 'incomplete' || status === 'failed') ? status : event
}

/** The error of an ended response that failed. */
function failureOf(status: string, { error }: Json, target: Target): GatewayError | undefined {
  if (status === 'failed' || error != null) {
    const silent = { message: 'the provider failed without saying why' }
    return errorOf({ error }, target) ?? upstreamError(500, silent)
  }
  if (status === 'completed' || status === 'incomplete') return undefined
  return errors.invalidAnswer(`its status is ${JSON.stringify(status)}`)
}

/** An incomplete answer never looks complete, whatever its reason. */
function reasonOf(status: string, { incomplete_details: details }: Json, calls: number): FinishReason {
  if (status === 'incomplete') {
    return isObject(details) && details.reason === 'content_filter' ? 'content_filter' : 'length'
  }
  return calls > 0 ? 'tool_calls' : 'stop'
}
