/** The responses of a session: each is held for before its provider has it, and is settled before its end is shown. */
import type { Mapping } from '../core/catalog.ts'
import { errors, type GatewayError } from '../core/error.ts'
import type { Json } from '../core/json.ts'
import type { Money } from '../core/money.ts'
import { plausible } from '../core/plausible-usage.ts'
import {
  type PartHold,
  type RealtimeForm,
  type SessionCharges,
  type SessionPart,
  withOutput,
} from '../core/realtime.ts'
import { MOST_OUTPUT, textSize, type Usage } from '../core/usage.ts'
import { speechUsage } from './conversation.ts'
import { Output } from './output.ts'

/** What is held at first for the output of a response that has no limit, and what its hold grows by. */
const HELD_OUTPUT = 4096
/** A hold grows when so much of its output is used. */
const GROWS_AT = 3 / 4
/** Transcripts that are held for and have not come. */
const MAX_PENDING_TRANSCRIPTS = 256
/** Ids that are kept, so that nothing is charged twice. */
const MAX_ENDED = 10_000
const MAX_ID = 128

/** What is held at first for such a response: its model's most where it thinks, since no delta shows what that comes to. */
export const heldOutput = ({ supports, maxOutput, contextLength }: Mapping): number =>
  supports.has('reasoning') ? (maxOutput ?? contextLength ?? MOST_OUTPUT) : HELD_OUTPUT

/** A response before its provider has it. */
export interface PlannedResponse {
  /** What is held for it. */
  readonly expected: Usage
  /** Bytes of a second of audio in its output. */
  readonly outputRate: number
  /** Takes what its provider reports. */
  readonly reported: (usage: Usage) => void
}

interface Running {
  readonly hold: PartHold
  readonly eventId: string
  readonly at: number
  readonly began: number
  readonly expected: Usage
  readonly reported: (usage: Usage) => void
  readonly output: Output
  id: string | undefined
  firstMs: number | undefined
  /** Tokens of output that are held for. */
  covered: number
  /** There was no money for more than that: more is wanted when all of it is used, not before. */
  isShort: boolean
  /** There was no money for more of it. */
  isCancelled: boolean
}

interface PendingTranscript {
  /** Rejects with the refusal. */
  readonly hold: Promise<PartHold>
  readonly at: number
  readonly expected: Usage
}

/** Whose money the responses spend, and how much of it. */
interface ResponsesOptions {
  readonly charges: SessionCharges
  readonly form: RealtimeForm
  readonly now: () => number
  /** What one session may spend. */
  readonly most: Money
}

/** One response runs at a time; transcripts are held for beside it. */
export class Responses {
  readonly #options: ResponsesOptions
  #running: Running | undefined
  /** Being held for: nothing else may begin meanwhile. */
  #isBeginning = false
  readonly #pendingTranscripts = new Map<string, PendingTranscript>()
  readonly #ended = new Set<string>()
  #spent = 0n
  #count = 0

  constructor(options: ResponsesOptions) {
    this.#options = options
  }

  get isRunning(): boolean {
    return this.#running !== undefined || this.#isBeginning
  }

  get awaitsTranscripts(): boolean {
    return this.#pendingTranscripts.size > 0
  }

  get isSpent(): boolean {
    return this.#spent >= this.#options.most
  }

  /** The response is dropped: there was no money for more of it. */
  get isCancelled(): boolean {
    return this.#running?.isCancelled === true
  }

  /**
   * Holds for a response. Resolves when the event with this id may be sent, to the tokens of output that there is money for where
   * these are less than what is expected; throws the refusal.
   */
  async begin(eventId: string, { expected, outputRate, reported }: PlannedResponse): Promise<number | undefined> {
    this.#isBeginning = true
    try {
      const hold = await this.#options.charges.holdResponse(expected)
      const covered = hold.output
      const isShort = covered < (expected.completion ?? 0)
      this.#running = {
        ...{ hold, eventId, expected, reported, at: this.#options.now(), began: performance.now() },
        ...{ output: new Output(outputRate), id: undefined, firstMs: undefined, covered, isShort, isCancelled: false },
      }
      return isShort ? covered : undefined
    } finally {
      this.#isBeginning = false
    }
  }

  /** The response of this event runs: it was neither refused nor ended. */
  isHeld(eventId: string): boolean {
    return this.#running?.eventId === eventId
  }

  /** Releases the response that the provider refused, by default the one that waits; false where the event requested none. */
  refused(eventId = this.#running?.eventId): boolean {
    const running = this.#running
    if (!running || running.id !== undefined || running.eventId !== eventId) return false
    running.hold.release()
    this.#running = undefined
    return true
  }

  /** `duplicate`: one with this id has ended, and is charged under it; `unrequested`: it has no request. */
  created({ id }: Readonly<Json>): 'begun' | 'duplicate' | 'unrequested' {
    if (typeof id === 'string' && this.#ended.has(`response ${id}`)) return 'duplicate'
    const running = this.#running
    if (!running || running.id !== undefined) return 'unrequested'
    running.id = this.#idOf(id, 'response')
    return 'begun'
  }

  /** Counts output. False when there is no money for more; rejects when the ledger fails. */
  delta(type: string, delta: string): boolean | Promise<boolean> {
    const running = this.#running
    if (!running || running.isCancelled) return true
    running.firstMs ??= Math.round(performance.now() - running.began)
    if (type.endsWith('audio.delta')) running.output.audio(Math.floor((delta.length * 3) / 4))
    else running.output.text(textSize(delta))
    const growsAt = running.isShort ? running.covered : running.covered * GROWS_AT
    return running.output.tokens < growsAt ? true : this.#grow(running)
  }

  async #grow(running: Running): Promise<boolean> {
    const completion = running.output.tokens + HELD_OUTPUT
    if (await running.hold.extend(withOutput(running.expected, completion))) {
      running.covered = completion
      running.isShort = false
      return true
    }
    running.isShort = true
    // What was held before still covers some.
    if (running.output.tokens < running.covered) return true
    running.isCancelled = true
    return false
  }

  /** Notes what the running response has come to, for the case that the process ends. */
  note(): void {
    const running = this.#running
    if (running && !running.output.isEmpty) running.hold.note(running.output.usage(running.expected))
  }

  /**
   * Charges a response that has ended, durably, or releases what was held for one without output. `duplicate`: it was charged
   * before; `unrequested`: it has no request; `unreadable`: it had output, and its usage cannot be read or is not plausible, so
   * that our estimate was charged. Rejects when the ledger fails.
   */
  async done(response: Readonly<Json>): Promise<'ended' | 'duplicate' | 'unrequested' | 'unreadable'> {
    const running = this.#running
    const { id } = response
    if (typeof id === 'string' && this.#ended.has(`response ${id}`)) return 'duplicate'
    if (!running || (running.id !== undefined && typeof id === 'string' && id !== running.id)) return 'unrequested'
    running.id ??= this.#idOf(id, 'response')
    this.#running = undefined
    this.#end(`response ${running.id}`)
    const usage = credible(this.#options.form.usage(response), running.output.usage(running.expected))
    if (usage) {
      await this.#settle(running.hold, { ...partOf(running), usage, estimated: false, outcome: 'ok' })
      running.reported(usage)
      return 'ended'
    }
    if (running.output.isEmpty && !hasOutput(response)) {
      running.hold.release()
      return 'ended'
    }
    const failure = errors.invalidAnswer('the usage of a response cannot be read')
    await this.#settle(running.hold, { ...this.#estimated(running), outcome: 'error', failure })
    return 'unreadable'
  }

  /**
   * The session ends before its response and transcripts: what the provider has done is charged. Where the provider has failed,
   * that is a response with output, and no transcript.
   */
  async abandon(outcome: 'error' | 'aborted', failure: GatewayError): Promise<void> {
    const running = this.#running
    this.#running = undefined
    const parts: Promise<void>[] = []
    for (const [id, transcript] of this.#pendingTranscripts) {
      parts.push(this.#abandonTranscript(id, transcript, outcome, failure))
    }
    this.#pendingTranscripts.clear()
    if (running?.output.isEmpty && outcome === 'error') running.hold.release()
    else if (running) parts.push(this.#settle(running.hold, { ...this.#estimated(running), outcome, failure }))
    await Promise.all(parts)
  }

  async #abandonTranscript(
    id: string,
    { hold, expected, at }: PendingTranscript,
    outcome: 'error' | 'aborted',
    failure: GatewayError,
  ): Promise<void> {
    // `expectTranscript` has thrown the refusal.
    const held = await hold.catch(() => undefined)
    if (outcome === 'error') held?.release()
    else await held?.settle({ id: `transcript:${id}`, usage: expected, estimated: true, outcome, failure, at })
  }

  /** Holds for the transcript of what was said, and `prompt` tokens that are read with it. Throws the refusal. */
  async expectTranscript(itemId: unknown, seconds: number, mapping: Mapping, prompt: number): Promise<void> {
    const id = this.#idOf(itemId, 'transcript')
    if (this.#pendingTranscripts.has(id) || this.#ended.has(`transcript ${id}`)) return
    if (this.#pendingTranscripts.size >= MAX_PENDING_TRANSCRIPTS) throw errors.invalidAnswer('it sends no transcripts')
    const expected = speechUsage(seconds, mapping.price?.rates.input_audio_hour !== undefined, prompt)
    const hold = this.#options.charges.hold(expected, mapping)
    this.#pendingTranscripts.set(id, { hold, expected, at: this.#options.now() })
    try {
      await hold
    } catch (refusal) {
      this.#pendingTranscripts.delete(id)
      throw refusal
    }
  }

  /**
   * Charges a transcript, durably; one that nothing was held for by `mapping`, where there is one. Throws its refusal.
   */
  async transcriptCompleted(event: Readonly<Json>, mapping: Mapping | undefined): Promise<void> {
    const id = this.#idOf(event.item_id, 'transcript')
    if (this.#ended.has(`transcript ${id}`)) return
    const held = this.#pendingTranscripts.get(id)
    const reported = credible(this.#options.form.transcriptUsage(event), held?.expected ?? {})
    if (!held && !mapping) return
    this.#pendingTranscripts.delete(id)
    this.#end(`transcript ${id}`)
    const hold = await (held?.hold ?? this.#options.charges.hold(reported ?? {}, mapping))
    const usage = reported ?? held?.expected ?? {}
    const at = held?.at ?? this.#options.now()
    await this.#settle(hold, { id: `transcript:${id}`, usage, estimated: !reported, outcome: 'ok', at })
  }

  /** Releases what was held for a transcript that failed. */
  async transcriptFailed(itemId: unknown): Promise<void> {
    if (typeof itemId !== 'string') return
    const held = this.#pendingTranscripts.get(itemId)
    this.#pendingTranscripts.delete(itemId)
    const hold = await held?.hold
    hold?.release()
  }

  async #settle(hold: PartHold, part: SessionPart): Promise<void> {
    this.#spent += (await hold.settle(part)) ?? 0n
  }

  #estimated(running: Running) {
    return { ...partOf(running), usage: running.output.usage(running.expected), estimated: true }
  }

  /** A provider's id is a part of a key of ours: one that is odd gets another in its place. */
  #idOf(id: unknown, what: string): string {
    return typeof id === 'string' && id !== '' && id.length <= MAX_ID ? id : `${what}${++this.#count}`
  }

  #end(key: string): void {
    this.#ended.add(key)
    const [oldest] = this.#ended
    if (this.#ended.size > MAX_ENDED && oldest !== undefined) this.#ended.delete(oldest)
  }
}

/** A report that is plausible as a whole: all that a response writes is seen. */
function credible(usage: Usage | undefined, expected: Usage): Usage | undefined {
  return usage && plausible(usage, () => ({ usage: expected, longest: 0, written: 0 })) === usage ? usage : undefined
}

const partOf = ({ id, at, firstMs, eventId }: Running) => ({ id: id ?? eventId, at, firstMs })

const hasOutput = ({ output }: Readonly<Json>): boolean => Array.isArray(output) && output.length > 0
