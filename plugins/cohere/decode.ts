/** Answers of Cohere's chat wire, whole and streamed, as events (docs/contributing/wire-sources.md#cohere). */
import {
  type ChatRequest,
  checkBlocks,
  countIn,
  type Decoder,
  type Event,
  entriesIn,
  errors,
  type Frame,
  GatewayError,
  guessStatus,
  isObject,
  type Json,
  objectIn,
  parseCalls,
  readProviderError,
  type Target,
  textIn,
  type Usage,
  upstreamError,
} from '../../src/plugin.ts'
import { idSuffix } from '../shared/call-count.ts'
import { Choice } from '../shared/chat-completions/choice.ts'
import { Thinking } from '../shared/chat-completions/thinking.ts'
import { stopEnding } from '../shared/stops.ts'
import { named } from '../shared/tool-name.ts'

/** Marks reasoning details that only this wire can read. */
const FORMAT = 'cohere-thinking-v1'

/** The wire's finish reasons; others are a stop. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['MAX_TOKENS', 'length'],
  ['ERROR_LIMIT', 'length'],
  ['TOOL_CALL', 'tool_calls'],
  ['ERROR_TOXIC', 'content_filter'],
])
/** Finish reasons of failures, with their status. */
const FAILURES: ReadonlyMap<string, number> = new Map([
  ['ERROR', 502],
  ['TIMEOUT', 504],
])

/** Arguments are text on this wire. */
const nowhere = (): undefined => {}
/** Content type of citations in the text before calls. */
const PLAN = 'PLAN'
/** A list, or a single value as a list of one. */
const allIn = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? entriesIn(value) : value == null ? [] : [value]

/** A whole answer is decoded like a stream, so that both give the same events. */
export class CohereDecoder implements Decoder {
  done = false

  readonly #request: Readonly<ChatRequest> | undefined
  readonly #unary: boolean
  readonly #target: Target
  readonly #choice: Choice
  readonly #thinking: Thinking
  /** Start of the text of each content block, by its index, and of the plan. */
  readonly #starts = new Map<unknown, number>()
  /** Index of the answer's block, which follows thinking. */
  #lastBlock: unknown
  #started = false
  #answerId = ''

  /** `request`: its stop sequence may be the one that ends the answer. */
  constructor(mode: 'stream' | 'unary', target: Target, request?: Readonly<ChatRequest>) {
    this.#request = request
    this.#unary = mode === 'unary'
    this.#target = target
    this.#choice = new Choice(0, target)
    this.#thinking = new Thinking(target, FORMAT)
  }

  get kept(): number {
    return this.#choice.kept
  }

  frame({ data, name }: Frame): Event[] {
    const out: Event[] = []
    const text = data.trim()
    if (this.done || text === '' || text.startsWith('[DONE]')) return out
    let payload: unknown
    try {
      payload = parseCalls(text, nowhere)
    } catch (thrown) {
      if (thrown instanceof GatewayError) throw thrown
      payload = undefined
    }
    if (isObject(payload)) this.#event(textIn(payload.type) ?? name, payload, out)
    else if (name === 'error') this.#refuse(text, out)
    else this.#fail(errors.invalidAnswer(`${this.#unary ? 'it' : 'one of its events'} is not a JSON object`), out)
    if (this.#unary) this.done = true
    return this.#thinking.mark(named(out))
  }

  end(): Event[] {
    const out: Event[] = []
    if (this.done) return out
    this.#choice.flush(out)
    this.#fail(this.#unary ? errors.invalidAnswer('it is empty') : errors.truncated(), out)
    return this.#thinking.mark(named(out))
  }

  #event(kind: string | undefined, payload: Json, out: Event[]): void {
    const { message, ...delta } = objectIn(payload.delta)
    const { content, tool_plan: plan, tool_calls: call, citations } = objectIn(message)
    switch (kind) {
      case 'message-start':
        this.#begin(payload.id, out)
        break
      case 'content-start':
      case 'content-delta':
        this.#say(content, payload.index, out)
        break
      case 'tool-plan-delta':
        this.#say(plan, PLAN, out)
        break
      case 'tool-call-start':
      case 'tool-call-delta':
        for (const one of allIn(call)) this.#call(one, payload.index, out)
        break
      case 'citation-start':
        this.#cite(citations, out)
        break
      case 'message-end':
        this.#finish(delta, out)
        break
      default:
        this.#other(kind, payload, out)
    }
  }

  /** A whole answer, an error, or an event without content or of a later type. */
  #other(kind: string | undefined, payload: Json, out: Event[]): void {
    const { message } = payload
    if (isObject(message)) {
      this.#begin(payload.id, out)
      allIn(message.content).forEach((block, index) => {
        this.#say(block, index, out)
      })
      this.#say(message.tool_plan, PLAN, out)
      allIn(message.tool_calls).forEach((call, position) => {
        this.#call(call, position, out)
      })
      this.#cite(message.citations, out)
      this.#finish(payload, out)
      return
    }
    const reported = kind === undefined || kind === 'error' ? readProviderError(payload) : undefined
    if (reported) this.#fail(upstreamError(guessStatus(reported, this.#target), reported, this.#target), out)
    else if (kind === 'error') this.#refuse(JSON.stringify(payload), out)
    else if (this.#unary) this.#fail(errors.invalidAnswer('it has no message'), out)
  }

  #begin(id: unknown, out: Event[]): void {
    if (this.#started) return
    this.#started = true
    const known = textIn(id)
    // Calls without an id get one from this, so it must differ between answers.
    this.#answerId = idSuffix(known ?? crypto.randomUUID())
    out.push({ type: 'start', ...(known === undefined ? {} : { id: known }) })
  }

  /**
   * Text, or a block of text or thinking, whose citations refer to `index`. The model's plan before its tool calls is
   * text before them.
   */
  #say(content: unknown, at: unknown, out: Event[]): void {
    this.#begin(undefined, out)
    const index = at === PLAN ? PLAN : countIn(at)
    if (!this.#starts.has(index)) {
      this.#starts.set(index, this.#choice.received)
      checkBlocks(this.#starts.size)
      if (index !== PLAN) this.#lastBlock = index
    }
    this.#choice.read({ content: typeof content === 'string' ? content : allIn(content) }, this.#answerId, out)
  }

  #call(call: unknown, index: unknown, out: Event[]): void {
    this.#begin(undefined, out)
    if (isObject(call)) this.#choice.read({ tool_calls: [{ ...call, index }] }, this.#answerId, out)
  }

  /** Sources with an address. Documents and tool results came from the caller and are not reported. */
  #cite(citations: unknown, out: Event[]): void {
    for (const citation of allIn(citations)) {
      const { sources, ...place } = objectIn(citation)
      for (const source of allIn(sources)) {
        const { document, tool_output: output } = objectIn(source)
        const { url, title } = objectIn(document ?? output)
        if (!/^https?:\/\//i.test(textIn(url) ?? '')) continue
        this.#choice.annotate({ url, title, ...this.#indexesOf(place) }, out)
      }
    }
  }

  /** The wire counts from the start of a block. */
  #indexesOf({ type, content_index: block, start, end }: Json): Json {
    const from = this.#starts.get(type === PLAN ? PLAN : (block ?? this.#lastBlock))
    if (from === undefined || type === 'THINKING_CONTENT') return {}
    return { start_index: from + (countIn(start) ?? Number.NaN), end_index: from + (countIn(end) ?? Number.NaN) }
  }

  #finish({ finish_reason: given, usage: report, error }: Json, out: Event[]): void {
    this.#begin(undefined, out)
    const used = usageOf(report)
    if (used) out.push({ type: 'usage', ...used })
    const reason = textIn(given)
    const status = reason === undefined ? undefined : FAILURES.get(reason)
    if (status !== undefined) {
      const message = textIn(error) ?? `the provider ended its answer with "${reason}"`
      this.#fail(upstreamError(status, { message }, this.#target), out)
      return
    }
    const ending = reason === 'STOP_SEQUENCE' ? stopEnding(this.#request) : undefined
    if (reason !== undefined) this.#choice.finish(REASONS.get(reason) ?? 'stop', ending)
    const reported = this.#choice.close(out)
    if (reported) this.#fail(reported, out)
    this.done = true
  }

  #refuse(message: string, out: Event[]): void {
    this.#fail(upstreamError(guessStatus({ message }, this.#target), { message }, this.#target), out)
  }

  /** Ends the answer; later events are ignored. */
  #fail(error: GatewayError, out: Event[]): void {
    this.done = true
    out.push({ type: 'error', error })
  }
}

/**
 * `usage.tokens` counts tokens read and written, for reports; `billed_units` exclude the provider's own instructions
 * and are charged. The cache covers the beginning, which contains those instructions: only cached tokens beyond them
 * are billed ones.
 */
function usageOf(report: unknown): { usage: Partial<Usage>; billed?: Partial<Usage> } | undefined {
  if (!isObject(report)) return undefined
  const billed = countsOf(report.billed_units)
  const counts = countsOf(report.tokens) ?? billed
  if (!counts) return undefined
  const cached = countIn(report.cached_tokens) ?? 0
  const usage: Partial<Usage> = { ...counts }
  // C37: more cached than read tokens means that the cache is counted separately.
  if (usage.prompt !== undefined && cached > usage.prompt) usage.prompt += cached
  if (cached > 0) usage.input_cache_read = cached
  if (!billed || billed === counts) return { usage }
  const unbilled = (usage.prompt ?? 0) - (billed.prompt ?? 0)
  return { usage, billed: { ...billed, input_cache_read: Math.max(0, cached - unbilled) } }
}

/** Undefined without a count; an unreported side is estimated (C4). */
function countsOf(units: unknown): Partial<Usage> | undefined {
  if (!isObject(units)) return undefined
  const prompt = countIn(units.input_tokens)
  const completion = countIn(units.output_tokens)
  if (!prompt && !completion) return undefined
  return { ...(prompt !== undefined && { prompt }), ...(completion !== undefined && { completion }) }
}
