/** One answer as its events: framed, parsed, decoded, masked and sealed, within its bounds. */

import { type Event, isContent } from '../core/event.ts'
import type { AnswerSeals } from '../core/seals.ts'
import type { Decoder, Frame } from '../core/wire.ts'
import { billed, MAX_ANSWER_BYTES, tooManyBytes } from '../json/answer-bounds.ts'
import { asAnswerError, asError, errors, type GatewayError } from '../lib/error.ts'
import { scheduler } from '../limits/scheduler.ts'
import type { Mask } from '../secrets/mask.ts'
import { AnswerCounter, writtenIn } from './answer-counter.ts'
import type { AnswerLease } from './answer-memory.ts'
import type { PlainSource } from './encoding.ts'
import type { Framing } from './framing/framing.ts'
import { AnswerMask } from './masking.ts'
import { END_GRACE_MS, type UpstreamResponse } from './upstream-response.ts'

/** Step in which a stream takes memory, in bytes. */
const HELD_STEP_BYTES = 64 * 1024
/** In place of the chunks at the end of the bytes. */
const END = [undefined] as const

/** Size from which decoding an event, or a whole answer, is scheduled. */
const SCHEDULED_BYTES = 256 * 1024

/** The size of a frame: in bytes where it has any, else in characters. */
const sizeOf = (frame: Frame): number => frame.bytes?.length ?? frame.data.length

/** Inputs for reading an answer. */
interface Reading {
  readonly incoming: UpstreamResponse
  /** The bytes of `incoming`, plain. */
  readonly source: PlainSource
  readonly framing: Framing
  readonly decoder: Decoder
  /** Takes memory for what is held of the answer: until it is whole, or until there is anything of it that a client can see. */
  readonly lease: AnswerLease
  /** All of the answer is held until its end. */
  readonly isHeld: boolean
  /** Its model may call tools: what passes a bound of its form is what the caller had it write. */
  readonly mayCallTools: boolean
  /** The answer is cut into events as it comes. */
  readonly isStream: boolean
  /** Organization whose share of the event loop decoding takes. */
  readonly tenant: string
  /** Mask of the request's credential. */
  readonly mask: Mask | undefined
  readonly seals: AnswerSeals | undefined
}

type Batch = IteratorResult<readonly Event[]>
type BatchResult = Batch | Promise<Batch>

/** An iterator by hand: a generator costs three more turns of the queue for each batch. */
export class Answer implements AsyncIterable<readonly Event[]>, AsyncIterator<readonly Event[]> {
  readonly #reading: Reading
  readonly #source: PlainSource
  readonly #framing: Framing
  readonly #decoder: Decoder
  readonly #lease: AnswerLease
  readonly #mask: AnswerMask | undefined
  readonly #counter: AnswerCounter
  /** The last one, until its events are read. */
  #frame: Frame | undefined
  /** Events that `commit` has read. */
  #first: Event[] | undefined = undefined
  #ended = false
  /** When the last event of an answer that is complete was read. */
  #completeAt: number | undefined
  /** The decoder is at work: what it throws is about what the answer says, even if that was its end. */
  #isDecoding = false

  constructor(reading: Reading) {
    const { source, framing, decoder, lease, isHeld, mask } = reading
    this.#reading = reading
    this.#source = source
    this.#framing = framing
    this.#decoder = decoder
    this.#lease = lease
    this.#counter = new AnswerCounter(isHeld, decoder.kept === undefined)
    this.#mask = mask && new AnswerMask(mask)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /**
   * Reads up to the first event that a client can see, or all of the answer if `whole`. Throws failures that happen
   * before that; then `pending` is what came before.
   */
  async commit(whole: boolean): Promise<void> {
    const first: Event[] = []
    this.#first = first
    let held = 0
    let seen = false
    while (!this.#ended) {
      let chunks: readonly Buffer[] | undefined
      let rest: Event[] | undefined
      try {
        chunks = await this.#source.take()
      } catch (thrown) {
        if (!this.#isOver(thrown)) throw thrown
        rest = this.#broken(thrown, [])
      }
      for (const { length } of chunks ?? []) held += length
      if (held > this.#lease.most) throw this.#tooManyBytes(seen)
      const waits = this.#lease.coverInTurn(held)
      if (waits) await waits
      const decoded = rest ?? this.#decodeScheduled(chunks)
      for (const event of decoded instanceof Promise ? await decoded : decoded) {
        if (event.type === 'error' && (whole || !seen)) throw event.error
        if (isContent(event)) seen = true
        first.push(event)
      }
      if (seen && (!whole || this.#ended)) return
    }
    throw errors.invalidAnswer('it is empty')
  }

  /** Events that `commit` has read and the iterator has not yet returned. */
  get pending(): readonly Event[] {
    return this.#first ?? []
  }

  /** A caller may ask for large media, and for long streams. What else is too large is the provider's failure. */
  #tooManyBytes(seen: boolean): GatewayError {
    const error = tooManyBytes(this.#lease.most)
    const isKept = (this.#decoder.kept ?? this.#counter.kept) > 0 || this.#framing.pending > this.#lease.most / 2
    const isAsked = this.#reading.isStream ? seen || isKept : this.#lease.most > MAX_ANSWER_BYTES
    return isAsked ? error : error.with({ excess: undefined })
  }

  /** The next batch that holds anything. What breaks the answer is its last event. */
  next(): Promise<Batch> {
    if (this.#first) {
      const value = this.#first
      this.#first = undefined
      return Promise.resolve({ done: false, value })
    }
    return this.#ended ? this.return() : this.#source.take().then(this.#read, this.#break)
  }

  readonly #read = (chunks: readonly Buffer[] | undefined): BatchResult => {
    const decoded = this.#decodeScheduled(chunks)
    return decoded instanceof Promise ? decoded.then(this.#step) : this.#step(decoded)
  }
  readonly #break = (thrown: unknown): BatchResult => this.#step(this.#broken(thrown, []))

  readonly #step = (value: readonly Event[]): BatchResult => (value.length > 0 ? { done: false, value } : this.next())

  async return(): Promise<Batch> {
    this.#lease.release()
    if (this.#ended) this.release()
    else this.#destroy()
    return { done: true, value: undefined }
  }

  /** Nothing is read any more: of what the provider still says, its socket is freed. */
  release(): void {
    this.#source.free?.()
    this.#reading.incoming.release()
  }

  #destroy(): void {
    this.#source.free?.()
    this.#reading.incoming.destroy()
  }

  /** Decodes through the scheduler when an event, or the whole answer, is large. */
  #decodeScheduled(chunks: readonly Buffer[] | undefined): Event[] | Promise<Event[]> {
    const isLarge = this.#framing.pending > SCHEDULED_BYTES && (this.#reading.isStream || chunks === undefined)
    return isLarge ? scheduler.run(this.#reading.tenant, () => this.#decode(chunks)) : this.#decode(chunks)
  }

  /** The events of all chunks that are there; the wire's own terminator ends the answer before its last byte. */
  #decode(chunks: readonly Buffer[] | undefined): Event[] {
    const events: Event[] = []
    try {
      const pieces = chunks ?? END
      for (let index = 0; index < pieces.length; index++) {
        const chunk = pieces[index]
        const frames = chunk ? this.#framing.push(chunk) : this.#framing.end()
        for (let at = 0; at < frames.length; at++) this.#add(frames[at]!, events)
      }
      this.#conclude(chunks === undefined, events)
    } catch (thrown) {
      return this.#broken(thrown, events)
    }
    return events
  }

  #conclude(isEnd: boolean, events: Event[]): void {
    // A framing keeps pieces of an event until it is complete, a decoder those of a call or until the end.
    const kept = this.#counter.kept + this.#framing.pending + (this.#decoder.kept ?? 0)
    if (kept > this.#lease.most) throw tooManyBytes(this.#lease.most)
    if (kept > this.#lease.covered + HELD_STEP_BYTES) this.#lease.cover(kept)
    if (!isEnd && !this.#decoder.done && !this.#isOverdue(events)) return
    this.#end(events)
  }

  /** Whether the provider, and not its client, broke an answer off that was complete. */
  #isOver(thrown: unknown): boolean {
    return !this.#ended && !this.#isDecoding && this.#decoder.complete === true && asError(thrown).failover === true
  }

  #end(events: Event[]): void {
    this.#ended = true
    this.#isDecoding = true
    this.#addEvents(this.#decoder.end(), 0, events)
  }

  /** Whether a complete answer goes on without events, as with comments, for longer than its end may take. */
  #isOverdue({ length }: readonly Event[]): boolean {
    if (this.#decoder.complete !== true) return false
    const now = performance.now()
    if (this.#completeAt !== undefined && length === 0) return now - this.#completeAt > END_GRACE_MS
    this.#completeAt = now
    this.#reading.incoming.expectEnd()
    return false
  }

  /** Passes on the events before the break. A break after the complete answer is no error. */
  #broken(thrown: unknown, events: Event[]): Event[] {
    const isOver = this.#isOver(thrown)
    this.#ended = true
    this.#destroy()
    if (this.#decoder.done && !this.#isDecoding) return events
    if (isOver) {
      try {
        this.#end(events)
        return events
      } catch (error) {
        return this.#broken(error, events)
      }
    }
    this.#addEvent({ type: 'error', error: this.#isDecoding ? asAnswerError(thrown) : asError(thrown) }, events)
    return events
  }

  #add(frame: Frame, events: Event[]): void {
    if (this.#decoder.done) return
    this.#isDecoding = true
    this.#frame = frame
    this.#addEvents(this.#decoder.frame(frame), sizeOf(frame), events)
  }

  #addEvents(decoded: readonly Event[], characters: number, events: Event[]): void {
    try {
      this.#counter.add(decoded, characters)
    } catch (thrown) {
      // Nothing of it is passed on, but it may be charged.
      for (const event of decoded) if (event.type === 'usage') events.push(event)
      this.#frame = undefined
      if (!decoded.some(hasCompletion)) events.push(estimateOf(writtenIn(decoded)))
      throw thrown
    }
    for (let at = 0; at < decoded.length; at++) this.#addEvent(decoded[at]!, events)
    this.#frame = undefined
    this.#isDecoding = false
  }

  #addEvent(event: Event, events: Event[]): void {
    this.#mask?.apply(event)
    this.#reading.seals?.apply(event)
    events.push(event.type === 'error' && event.error.excess ? this.#exceeded(event.error, events) : event)
  }

  /** The end of an answer that passes a bound, behind an estimate of its last frame where that is charged and not reported. */
  #exceeded(excess: GatewayError, events: Event[]): Event {
    const error = excess.excess === 'size' || this.#reading.mayCallTools ? billed(excess) : excess
    const isReported = !this.#reading.isStream && events.some(hasCompletion)
    if (error.billed && this.#frame && !isReported) events.push(estimateOf(sizeOf(this.#frame)))
    return { type: 'error', error }
  }
}

const estimateOf = (written: number): Event => ({ type: 'usage', usage: {}, written, estimated: true })
const hasCompletion = (event: Event): boolean => event.type === 'usage' && event.usage.completion !== undefined
