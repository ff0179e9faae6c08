/** Reads answers of the chat completions wire (docs/contributing/edge-cases.md#chat-chunks, whose ids stand in comments). */
import {
  checkEvents,
  type Decoder,
  type Event,
  entriesIn,
  errors,
  type Frame,
  GatewayError,
  guessStatus,
  indexIn,
  isObject,
  type Json,
  MAX_CHOICES,
  type ProviderError,
  parseCalls,
  readProviderError,
  type Target,
  textIn,
  upstreamError,
  weigh,
} from '../../../src/plugin.ts'
import { CallCount } from '../call-count.ts'
import { EventTemplate } from '../event-template.ts'
import { Choice } from './choice.ts'
import { reportIn, usageReports } from './usage.ts'

/** Finish reasons of failures, with their status (C11). */
const FAILURES: ReadonlyMap<string, number> = new Map([
  ['error', 502],
  ['network_error', 502],
  ['insufficient_system_resource', 503],
])

/** Lists of sources beside the choices. Text refers to entries of the first list present. */
const SOURCES = ['citations', 'search_results', 'web_search'] as const

const isFilled = (list: readonly unknown[]): boolean => list.length > 0

const BRACE = 0x7b
/** The field in which providers send arguments as an object. */
const argumentsOf = (_: Json, name: string) => (name === 'function' ? 'arguments' : undefined)

/** The `Decoder` of the wires that speak OpenAI's chat completions, whole or streamed. */
export class ChatDecoder implements Decoder {
  readonly #unary: boolean
  readonly #target: Target
  readonly #expected: number
  /** Choices by the provider's index; sparse. */
  readonly #choices: (Choice | undefined)[] = []
  readonly #count = new CallCount()
  #done = false
  #failed = false
  #started = false
  #answerId = ''
  #tier = ''
  readonly #usage = usageReports()
  #searchesCounted = false
  /** Lists of sources by field; of several in one field, the longest. */
  #lists: Map<string, readonly unknown[]> | undefined = undefined
  /** Characters of the lists. */
  #listed = 0
  #expectsLists: boolean
  readonly #repeated = new EventTemplate('content')
  /** The choice of the event template. */
  #speaker: Choice | undefined

  /** `choices`: how many were requested. */
  constructor(mode: 'stream' | 'unary', target: Target, choices = 1) {
    this.#unary = mode === 'unary'
    this.#expected = choices
    this.#target = target
    this.#expectsLists = this.#unary || target.mapping.supports.has('web_search')
  }

  get done(): boolean {
    return this.#done
  }

  get complete(): boolean {
    if (this.#done || this.#unary) return false
    let settled = 0
    for (const choice of this.#choices) {
      if (choice?.settled) settled++
      else if (choice) return false
    }
    return settled >= this.#expected
  }

  get kept(): number {
    let kept = this.#listed
    for (const choice of this.#choices) if (choice) kept += choice.kept
    return kept
  }

  frame({ data, name }: Frame): Event[] {
    const out: Event[] = []
    if (this.#done) return out
    const repeated = name === 'error' ? undefined : this.#repeated.textOf(data)
    if (repeated !== undefined) {
      this.#speaker?.say(repeated, out)
      return out
    }
    let json = data
    if (json.charCodeAt(0) !== BRACE) {
      json = json.trim()
      if (json === '') return out
      if (json.startsWith('[DONE]')) {
        this.#done = true
        return out
      }
    }
    let chunk: unknown
    try {
      chunk = parseCalls(json, argumentsOf)
    } catch (thrown) {
      if (thrown instanceof GatewayError) this.#fail(thrown, out)
      else if (name === 'error') this.#refuse({ message: json }, out)
      else this.#fail(errors.invalidAnswer(this.#unary ? 'it is not JSON' : 'one of its events is not JSON'), out)
      return out
    }
    if (name === 'error') this.#refuse(readProviderError(chunk) ?? { message: json }, out)
    else if (isObject(chunk)) {
      this.#chunk(chunk, out)
      if (!this.#unary) this.#learn(data, chunk, out)
    } else {
      const reported = readProviderError(chunk)
      if (reported) this.#refuse(reported, out)
      else this.#fail(errors.invalidAnswer('it is not a JSON object'), out)
    }
    if (this.#unary) this.#done = true
    return out
  }

  end(): Event[] {
    const out: Event[] = []
    if (this.#failed) return out
    const choices = this.#choices.filter(choice => choice !== undefined)
    if (this.#lists) choices[0]?.list(SOURCES.flatMap(name => [this.#lists?.get(name) ?? []]).filter(isFilled))
    if (!this.#done && (choices.length === 0 || !choices.every(choice => choice.settled))) {
      for (const choice of choices) choice.flush(out)
      this.#fail(this.#unary ? errors.invalidAnswer('it is empty') : errors.truncated(), out)
      return out
    }
    for (const choice of choices) {
      const error = choice.close(out)
      if (error) {
        this.#fail(error, out)
        return out
      }
    }
    // Citations imply a search, even when searches are not reported.
    if (!this.#searchesCounted && choices.some(choice => choice.cited)) {
      out.push({ type: 'usage', usage: { web_search: 1 } })
    }
    return out
  }

  /** After an event with only text, similar events need only their text read. */
  #learn(data: string, chunk: Json, [event, more]: readonly Event[]): void {
    if (event?.type !== 'text' || more !== undefined || isObject(chunk.usage)) return
    const [choice, ...others] = chunk.choices as unknown[]
    if (others.length > 0 || !isObject(choice)) return
    const { delta, logprobs, finish_reason: reason } = choice
    if (logprobs != null || reason != null || !isObject(delta)) return
    const { content, role: _, ...rest } = delta
    if (content !== event.text || Object.values(rest).some(value => value != null)) return
    if (this.#repeated.learn(data, content)) this.#speaker = this.#choices[event.choice]
  }

  #chunk(chunk: Json, out: Event[]): void {
    const choices = Array.isArray(chunk.choices) ? entriesIn(chunk.choices, MAX_CHOICES) : undefined
    const report = reportIn(chunk, choices?.[0])
    const usage = report && this.#usage.add(report)
    if (usage) {
      if (usage.web_search !== undefined) this.#searchesCounted = true
      out.push({ type: 'usage', usage })
    }
    const reported = this.#reported(chunk, choices === undefined)
    if (reported) {
      this.#refuse(reported, out)
      return
    }
    this.#readLists(chunk)
    if (choices !== undefined && choices.length > 0) {
      this.#begin(chunk, out)
      for (let position = 0; position < choices.length && !this.#failed; position++) {
        this.#choice(choices[position], position, out)
        checkEvents(out.length)
      }
    } else if (this.#unary) this.#fail(errors.invalidAnswer('it has no choices'), out)
    if (!this.#failed) this.#extras(chunk, out)
  }

  /** An error in the middle of an answer (E1, E3). */
  #reported(chunk: Json, bare: boolean): ProviderError | undefined {
    if (bare || chunk.error != null || chunk.base_resp != null) {
      const reported = readProviderError(chunk)
      if (reported) return reported
    }
    const { x_groq: extra } = chunk
    return isObject(extra) && extra.error != null ? readProviderError({ error: extra.error }) : undefined
  }

  #begin(chunk: Json, out: Event[]): void {
    if (this.#started) return
    this.#started = true
    const id = textIn(chunk.id)
    const model = textIn(chunk.model)
    // Calls without an id get one from this, so it must differ between answers.
    this.#answerId = id ?? crypto.randomUUID()
    const fingerprint = textIn(chunk.system_fingerprint)
    out.push({
      type: 'start',
      ...(id !== undefined && { id }),
      ...(model !== undefined && { model }),
      ...(fingerprint !== undefined && { fingerprint }),
    })
  }

  #choice(value: unknown, position: number, out: Event[]): void {
    if (!isObject(value)) return
    const index = indexIn(value.index) ?? position
    let choice = this.#choices[index]
    if (choice === undefined) {
      choice = new Choice(index, this.#target, this.#count)
      this.#choices[index] = choice
      if (this.#expectsLists) choice.expectLists()
    }
    const { delta, message, logprobs, finish_reason: reason } = value
    const reported = value.error == null ? undefined : readProviderError({ error: value.error })
    if (reported) {
      this.#refuse(reported, out)
      return
    }
    if (isObject(delta) && !(this.#unary && isObject(message))) choice.read(delta, this.#answerId, out)
    else if (isObject(message) && (this.#unary || (textIn(reason) && !choice.touched))) {
      // S19: a whole answer. Beside deltas, a message only repeats them (C26).
      choice.read(message, this.#answerId, out)
    }
    if (isObject(logprobs)) choice.rate(logprobs, out)
    if (typeof reason !== 'string' || reason === '') return
    const status = FAILURES.get(reason)
    if (status === undefined) choice.finish(reason)
    else this.#fail(upstreamError(status, { message: `the provider ended its answer with "${reason}"` }), out)
  }

  /** Lists of sources belong to the first choice. */
  #readLists(chunk: Json): void {
    for (const name of SOURCES) {
      const list = chunk[name]
      // Some providers repeat them in every chunk.
      if (!Array.isArray(list) || entriesIn(list).length <= (this.#lists?.get(name)?.length ?? 0)) continue
      this.#lists ??= new Map()
      this.#listed += weigh(list) - weigh(this.#lists.get(name))
      this.#lists.set(name, list)
      this.#expectsLists = true
      for (const choice of this.#choices) choice?.expectLists()
    }
  }

  /** Other fields beside the choices: the served tier, and whether content was filtered. */
  #extras(chunk: Json, out: Event[]): void {
    const { service_tier: tier } = chunk
    if (typeof tier === 'string' && tier !== '' && tier !== this.#tier) {
      this.#tier = tier
      out.push({ type: 'tier', tier })
    }
    // One provider reports filtering this way, with ordinary finish reasons.
    if (chunk.input_sensitive === true || chunk.output_sensitive === true) {
      for (const choice of this.#choices) choice?.filter()
    }
  }

  #refuse(reported: ProviderError, out: Event[]): void {
    this.#fail(upstreamError(guessStatus(reported, this.#target), reported, this.#target), out)
  }

  /** Ends the answer; later chunks are ignored. */
  #fail(error: GatewayError, out: Event[]): void {
    this.#failed = true
    this.#done = true
    out.push({ type: 'error', error })
  }
}
