/** generateContent answers, whole and streamed, as events (docs/contributing/wire-sources.md#gemini). */
import {
  append,
  checkEvents,
  type Decoder,
  type Event,
  entriesIn,
  errors,
  type Frame,
  GatewayError,
  indexIn,
  isObject,
  type Json,
  MAX_CHOICES,
  MAX_TEXT_CHARACTERS,
  parseCalls,
  type Target,
  textIn,
} from '../../src/plugin.ts'
import { idSuffix } from '../shared/call-count.ts'
import { Choice } from './choice.ts'
import { errorOf } from './error.ts'
import type { TextRoom } from './grounding.ts'
import { PathCount } from './partial-args.ts'
import { takesLevels } from './thinking.ts'
import { tierOf, UsageMeter } from './usage.ts'

/** The field with the arguments of a call. */
const argumentsOf = (_: Json, name: string) => (name === 'functionCall' ? 'args' : undefined)

/** Anything else may be an error in any dialect (E1). */
const isAnswer = (chunk: unknown): boolean =>
  isObject(chunk) &&
  chunk.error == null &&
  ('candidates' in chunk || 'promptFeedback' in chunk || 'usageMetadata' in chunk)

/**
 * Chunks of a stream and whole answers have one form. The wire has no terminator: calls, sources and counts may follow
 * a finish reason, so only the end of the bytes ends the answer.
 */
export class GenerateDecoder implements Decoder {
  done = false

  readonly #unary: boolean
  readonly #target: Target
  readonly #room: TextRoom | undefined
  readonly #native: boolean
  readonly #candidates: number
  /** Choices by the provider's index. */
  readonly #choices = new Map<number, Choice>()
  readonly #usage = new UsageMeter()
  readonly #count = new PathCount()
  #failed = false
  #started = false
  #blocked = false
  #answerId = ''
  #tier = ''

  /**
   * `searched`: the model may search, so citations need places in the text; `native`: the client uses this wire;
   * `candidates`: how many were requested.
   */
  constructor(mode: 'stream' | 'unary', target: Target, searched: boolean, { native = false, candidates = 1 } = {}) {
    this.#native = native
    this.#candidates = candidates
    this.#unary = mode === 'unary'
    this.#target = target
    this.#room = searched ? { left: MAX_TEXT_CHARACTERS } : undefined
  }

  get complete(): boolean {
    if (this.done || this.#unary) return false
    if (this.#blocked) return true
    let finished = 0
    for (const choice of this.#choices.values()) if (choice.finished) finished++
    return finished >= this.#candidates && finished === this.#choices.size
  }

  get kept(): number {
    let kept = 0
    for (const choice of this.#choices.values()) kept += choice.kept
    return kept
  }

  frame({ data }: Frame): Event[] {
    const out: Event[] = []
    if (this.done) return out
    let parsed: unknown
    try {
      parsed = parseCalls(data, argumentsOf)
    } catch (thrown) {
      if (thrown instanceof GatewayError) {
        this.#fail(thrown, out)
        return out
      }
      const text = data.trim()
      if (text === '') return out
      if (text === '[DONE]') this.done = true
      else this.#fail(errors.invalidAnswer(this.#unary ? 'it is not JSON' : 'one of its events is not JSON'), out)
      return out
    }
    // S23: without event framing an answer is a list of chunks.
    for (const chunk of Array.isArray(parsed) ? entriesIn(parsed) : [parsed]) {
      if (!this.#failed) this.#chunk(chunk, out)
    }
    return out
  }

  end(): Event[] {
    const out: Event[] = []
    if (this.#failed) return out
    const choices = [...this.#choices].sort(([a], [b]) => a - b).map(([, choice]) => choice)
    if (choices.length === 0 && this.#blocked) choices.push(this.#choice(0))
    const complete = choices.length > 0 && (this.#blocked || choices.every(choice => choice.finished))
    if (!complete) {
      const empty = this.#unary && choices.length === 0
      this.#fail(empty ? errors.invalidAnswer('it has no candidates') : errors.truncated(), out)
      return out
    }
    const ends: Event[] = []
    const answered = choices.filter(choice => choice.answered)
    for (const choice of choices) {
      const spare = answered.length > (choice.answered ? 1 : 0)
      const error = choice.close(this.#answerId, { blocked: this.#blocked, spare, usage: this.#usage.total }, ends)
      if (!error) continue
      this.#fail(error, out)
      return out
    }
    this.#report(out)
    append(out, ends)
    this.done = true
    return out
  }

  #chunk(chunk: unknown, out: Event[]): void {
    const error = isAnswer(chunk) ? undefined : errorOf(chunk, this.#target)
    if (error) this.#fail(error, out)
    else if (!isObject(chunk)) this.#fail(errors.invalidAnswer('it is not a JSON object'), out)
    else this.#answer(chunk, out)
  }

  #answer(chunk: Json, out: Event[]): void {
    const { candidates, promptFeedback: feedback, usageMetadata: report } = chunk
    this.#begin(chunk, out)
    const usage = this.#usage.add(report)
    if (usage) out.push({ type: 'usage', usage })
    const tier = tierOf(report)
    if (tier !== undefined && tier !== this.#tier) {
      this.#tier = tier
      out.push({ type: 'tier', tier })
    }
    if (isObject(feedback) && textIn(feedback.blockReason)) this.#blocked = true
    for (const [position, candidate] of entriesIn(candidates, MAX_CHOICES).entries()) {
      if (!isObject(candidate)) continue
      const choice = this.#choice(indexIn(candidate.index) ?? position)
      const error = choice.read(candidate, this.#answerId, out)
      checkEvents(out.length)
      if (!error) continue
      this.#fail(error, out)
      return
    }
    this.#progress(out)
  }

  /** Behind what the counts are of. */
  #progress(out: Event[]): void {
    if (this.#unary) return
    for (const choice of this.#choices.values()) if (choice.finished) return
    const usage = this.#usage.progress()
    if (usage) out.push({ type: 'progress', usage })
  }

  #begin(chunk: Json, out: Event[]): void {
    if (this.#started) return
    this.#started = true
    const id = textIn(chunk.responseId)
    const model = textIn(chunk.modelVersion)
    // Calls without an id get one from this, so it must differ between answers.
    this.#answerId = idSuffix(id ?? crypto.randomUUID())
    out.push({ type: 'start', ...(id !== undefined && { id }), ...(model !== undefined && { model }) })
  }

  #choice(index: number): Choice {
    let choice = this.#choices.get(index)
    if (!choice) {
      choice = new Choice(index, this.#target, this.#count, this.#room, this.#native)
      this.#choices.set(index, choice)
    }
    return choice
  }

  /** Emits the usage, once. Newer models count each search, older ones whether they searched. */
  #report(out: Event[]): void {
    let searches = 0
    for (const choice of this.#choices.values()) searches += choice.searches
    if (!takesLevels(this.#target.mapping)) searches = Math.min(searches, 1)
    const usage = { ...this.#usage.total, ...(searches > 0 && { web_search: searches }) }
    if (Object.keys(usage).length > 0) out.push({ type: 'usage', usage })
  }

  /** Ends the answer after its citations and usage; later chunks are ignored. */
  #fail(error: GatewayError, out: Event[]): void {
    for (const choice of this.#choices.values()) choice.cite(out)
    this.#report(out)
    this.#failed = true
    this.done = true
    out.push({ type: 'error', error })
  }
}
