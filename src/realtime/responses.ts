/** The responses of a session: each is held for before its provider has it, and is settled before its end is shown. */

import type { Money } from '../core/money.ts'
import type { PartHold, SessionCharges, SessionPart } from '../core/realtime.ts'
import type { Mapping } from '../core/translator.ts'
import type { Usage } from '../core/usage.ts'
import type { RealtimeForm } from '../core/wire.ts'
import type { Json } from '../json/json.ts'
import { errors, type GatewayError } from '../lib/error.ts'
import { transcriptUsage } from '../metering/audio.ts'
import { plausible } from '../metering/plausible.ts'
import { ResponseMeter } from './response-meter.ts'

/** Transcripts that are held for and have not come. */
const MAX_PENDING_TRANSCRIPTS = 256
/** Ids that are kept, so that nothing is charged twice. */
const MAX_ENDED_IDS = 10_000
const MAX_ID_CHARACTERS = 128

/** A response before its provider has it. */
export interface PlannedResponse {
  /** Usage that is held. */
  readonly expected: Usage
  /** Tokens of output that it may have at most. */
  readonly most: number
  /** Bytes of a second of audio in its output. */
  readonly outputRate: number
  /** Takes what its provider reports. */
  readonly reported: (usage: Usage) => void
}

interface Running {
  readonly meter: ResponseMeter
  readonly eventId: string
  readonly at: number
  readonly reported: (usage: Usage) => void
  id: string | undefined
  /** There was no money for more of it. */
  isCancelled: boolean
}

interface PendingTranscript {
  /** Rejects with the refusal. */
  readonly hold: Promise<PartHold>
  readonly at: number
  readonly expected: Usage
}

/** Funds of the responses, and their limits. */
interface ResponsesOptions {
  readonly charges: SessionCharges
  readonly form: RealtimeForm
  readonly now: () => number
  /** Tokens of the longest prompt that the model of the session reads; 0 where that is unknown. */
  readonly longest: number
  /** Ends the running response at its provider: there is no money for more of it. Called once for each. */
  readonly cancel: () => void
  /** Maximum spending of one session. */
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
   * Holds for a response. Resolves when the event with this id may be sent; to the limit of its output that is sent with it, where
   * there is money for less than what is expected, and its provider takes one. Throws the refusal.
   */
  async begin(eventId: string, { expected, most, outputRate, reported }: PlannedResponse): Promise<number | undefined> {
    const { charges, form, now } = this.#options
    this.#isBeginning = true
    try {
      const hold = await charges.holdResponse(expected)
      const isLimited = form.mostOutput !== undefined && hold.output < (expected.completion ?? 0)
      const limit = isLimited ? Math.min(hold.output, form.mostOutput) : undefined
      const meter = new ResponseMeter({ hold, expected, most: limit ?? most, outputRate })
      this.#running = { meter, eventId, reported, at: now(), id: undefined, isCancelled: false }
      return limit
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
    running.meter.hold.release()
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

  /** Counts output. False when there is no money for it; rejects when the ledger fails. */
  delta(type: string, delta: string): boolean | Promise<boolean> {
    const running = this.#running
    if (!running || running.isCancelled) return true
    running.meter.add(type, delta)
    const goesOn = running.meter.mayGoOn()
    return goesOn === true || this.#decide(running, goesOn)
  }

  async #decide(running: Running, goesOn: boolean | Promise<boolean>): Promise<boolean> {
    if (await goesOn) return true
    if (this.#running === running && !running.isCancelled) {
      running.isCancelled = true
      this.#options.cancel()
    }
    return false
  }

  /** Notes what the running response has come to, for the case that the process ends. */
  note(): void {
    const meter = this.#running?.meter
    if (meter && !meter.isEmpty) meter.hold.note(meter.usage)
  }

  /**
   * Charges a response that has ended, durably, or releases what was held for one without output. `duplicate`: it was charged
   * before; `unrequested`: it has no request; `unreadable`: its usage is not plausible, so that what was held was
   * charged; or it had output, and its usage cannot be read, so that our estimate was. Rejects when the ledger fails.
   */
  async done(response: Readonly<Json>): Promise<'ended' | 'duplicate' | 'unrequested' | 'unreadable'> {
    const running = this.#running
    const { id } = response
    if (typeof id === 'string' && this.#ended.has(`response ${id}`)) return 'duplicate'
    if (!running || (running.id !== undefined && typeof id === 'string' && id !== running.id)) return 'unrequested'
    running.id ??= this.#idOf(id, 'response')
    this.#running = undefined
    this.#end(`response ${running.id}`)
    const { form, longest } = this.#options
    const reported = form.usage(response)
    const usage = credible(reported, running.meter.bound, longest)
    if (usage) {
      const failure = response.status === 'failed' ? errors.truncated() : undefined
      const part = { ...partOf(running), usage, estimated: false, outcome: failure ? 'error' : 'ok', failure } as const
      await this.#settle(running.meter.hold, part)
      running.reported(usage)
      return 'ended'
    }
    if (running.meter.isEmpty && !hasOutput(response) && !reported) {
      running.meter.hold.release()
      return 'ended'
    }
    const failure = errors.invalidAnswer('the usage of a response cannot be read')
    const part = this.#estimated(running, reported ? running.meter.bound : running.meter.usage)
    await this.#settle(running.meter.hold, { ...part, outcome: 'error', failure })
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
    if (running?.meter.isEmpty && outcome === 'error') running.meter.hold.release()
    else if (running) parts.push(this.#settle(running.meter.hold, { ...this.#estimated(running), outcome, failure }))
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
    const { input_audio_hour = 0, ...tokens } = transcriptUsage(seconds, prompt)
    const expected = mapping.price?.rates.input_audio_hour === undefined ? tokens : { input_audio_hour }
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

  #estimated(running: Running, usage = running.meter.usage) {
    return { ...partOf(running), usage, estimated: true }
  }

  /** A provider's id is a part of a key of ours: one that is odd gets another in its place. */
  #idOf(id: unknown, what: string): string {
    return typeof id === 'string' && id !== '' && id.length <= MAX_ID_CHARACTERS ? id : `${what}${++this.#count}`
  }

  #end(key: string): void {
    this.#ended.add(key)
    const [oldest] = this.#ended
    if (this.#ended.size > MAX_ENDED_IDS && oldest !== undefined) this.#ended.delete(oldest)
  }
}

/** A report that is plausible as a whole. `longest`: tokens of the longest prompt, 0 where that is unknown. */
function credible(usage: Usage | undefined, expected: Usage, longest = 0): Usage | undefined {
  return usage && plausible(usage, () => ({ usage: expected, longest, written: 0 })) === usage ? usage : undefined
}

const partOf = ({ id, at, meter, eventId }: Running) => ({ id: id ?? eventId, at, firstMs: meter.firstMs })

const hasOutput = ({ output }: Readonly<Json>): boolean => Array.isArray(output) && output.length > 0
