/** Writes answers as GenerateContentResponses: one body, or a chunk for each batch (docs/contributing/wire-sources.md#gemini). */

import type { Encoder } from '../../core/codec.ts'
import type { Event } from '../../core/event.ts'
import type { Exchange } from '../../core/exchange.ts'
import { MAX_TEXT_CHARACTERS } from '../../json/answer-bounds.ts'
import { stringifyLossless } from '../../json/lossless.ts'
import type { GatewayError } from '../../lib/error.ts'
import { answerIdOf, answerModelOf, costDetails, metadataOf, usageInfo, usdOf } from '../accounting.ts'
import { EVENT_STREAM } from '../event-stream.ts'
import { Candidate } from './candidate.ts'
import { geminiError } from './error.ts'
import type { RepeatBudget } from './grounding.ts'

/** The candidates of one answer, by index; sparse. */
class Candidates {
  readonly #ex: Exchange
  readonly #all: Candidate[] = []
  readonly #budget: RepeatBudget = { left: MAX_TEXT_CHARACTERS }

  constructor(ex: Exchange) {
    this.#ex = ex
  }

  add(batch: readonly Event[]): void {
    for (const event of batch) if ('choice' in event) this.#at(event.choice).add(event)
  }

  /** Candidates with new parts since the last call. */
  taken(): object[] {
    return this.#all.flatMap((candidate, index) => {
      const parts = candidate.take()
      return parts ? [{ content: { role: 'model', parts }, index }] : []
    })
  }

  /** All candidates, each with its remaining parts and finish reason. */
  ended(): object[] {
    if (this.#all.length === 0) this.#at(0)
    return this.#all.flatMap((candidate, index) => {
      candidate.end()
      const parts = candidate.take() ?? [{ text: '' }]
      return [Object.assign({ content: { role: 'model', parts }, index }, candidate.ending)]
    })
  }

  #at(index: number): Candidate {
    const { showsReasoning } = this.#ex.answer
    this.#all[index] ??= new Candidate(
      showsReasoning,
      call => `call_${answerIdOf(this.#ex)}_${index}_${call}`,
      this.#budget,
    )
    return this.#all[index]
  }
}

/** Fields of every piece of an answer. */
const headOf = (ex: Exchange) => ({ modelVersion: answerModelOf(ex), responseId: answerIdOf(ex) })

/** Fields of the last piece. `gateway` is not a field of the wire: clients ignore unknown ones. */
const endingOf = (ex: Exchange, candidates: object[]) => ({
  candidates,
  usageMetadata: usageOf(ex),
  ...headOf(ex),
  gateway: { ...metadataOf(ex), cost_details: costDetails(ex.meter.cost, ex) },
})

const written = (value: object): string => stringifyLossless(JSON.stringify(value))

/** Writes an answer as one JSON object. */
export class WholeEncoder implements Encoder {
  readonly contentType = 'application/json; charset=UTF-8'
  readonly #ex: Exchange
  readonly #candidates: Candidates

  constructor(ex: Exchange) {
    this.#ex = ex
    this.#candidates = new Candidates(ex)
  }

  write(batch: readonly Event[]): undefined {
    this.#candidates.add(batch)
  }

  end(): string {
    this.#ex.meter.complete(false)
    return written(endingOf(this.#ex, this.#candidates.ended()))
  }

  fail(): undefined {}
}

/** Separators between the chunks of a stream. */
interface Framing {
  readonly contentType: string
  /** Before the first chunk, and before each other. */
  readonly first: string
  readonly next: string
  readonly behind: string
  readonly end: string
}

/** A server-sent event per chunk. */
export const EVENTS: Framing = {
  contentType: EVENT_STREAM,
  first: 'data: ',
  next: 'data: ',
  behind: '\r\n\r\n',
  end: '',
}
/** One JSON array with an element per chunk. */
export const LIST: Framing = {
  contentType: 'application/json; charset=UTF-8',
  first: '[',
  next: ',\r\n',
  behind: '',
  end: ']',
}

/** Writes an answer as chunks. */
export class StreamEncoder implements Encoder {
  readonly contentType: string
  readonly #ex: Exchange
  readonly #framing: Framing
  readonly #candidates: Candidates
  /** Common members of all chunks; empty until the first one. */
  #tail = ''

  constructor(ex: Exchange, framing: Framing) {
    this.contentType = framing.contentType
    this.#ex = ex
    this.#framing = framing
    this.#candidates = new Candidates(ex)
  }

  write(batch: readonly Event[]): string | undefined {
    this.#candidates.add(batch)
    const said = this.#candidates.taken()
    if (said.length === 0) return undefined
    const before = this.#before()
    if (this.#tail === '') this.#tail = `,${JSON.stringify(headOf(this.#ex)).slice(1)}`
    return `${before}{"candidates":${stringifyLossless(JSON.stringify(said))}${this.#tail}${this.#framing.behind}`
  }

  end(): string {
    this.#ex.meter.complete(false)
    return this.#last(endingOf(this.#ex, this.#candidates.ended()))
  }

  /** The error ends the stream: without a finish reason clients consider the answer incomplete. */
  fail(error: GatewayError): string {
    this.#ex.meter.complete(true)
    const failure = geminiError(error)
    // A second time, bare as from Google: `@google/genai` 1 and Go's client skip the event.
    return this.#last(failure) + (this.#framing === EVENTS ? JSON.stringify(failure) : '')
  }

  #last(value: object): string {
    return `${this.#before()}${written(value)}${this.#framing.behind}${this.#framing.end}`
  }

  #before(): string {
    return this.#tail === '' ? this.#framing.first : this.#framing.next
  }
}

/** With its cost in USD; null while the price is unknown. Call it after the last event. */
export function usageOf(ex: Exchange): object {
  const { usage } = ex
  const { prompt = 0, completion = 0, internal_reasoning: thoughts = 0, input_cache_read: cached = 0 } = usage
  const audioInput = usage.input_audio ?? 0
  const imageTokens = usage.image_output ?? 0
  return {
    promptTokenCount: prompt,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    candidatesTokenCount: Math.max(0, completion - thoughts),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    totalTokenCount: prompt + completion,
    promptTokensDetails: [
      counted('TEXT', Math.max(0, prompt - audioInput)),
      ...(audioInput > 0 ? [counted('AUDIO', audioInput)] : []),
    ],
    ...(imageTokens > 0 && { candidatesTokensDetails: [counted('IMAGE', imageTokens)] }),
    cost: usdOf(ex),
    info: usageInfo(ex),
  }
}

const counted = (modality: string, tokenCount: number) => ({ modality, tokenCount })
