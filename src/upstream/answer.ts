/** One answer as its events: framed, parsed, decoded, masked and sealed, within its bounds. */
import { billed, tooManyBytes } from '../core/answer-bounds.ts'
import { asAnswerError, asError, errors, type GatewayError } from '../core/error.ts'
import { type Event, isContent } from '../core/event.ts'
import { decodeSteps, FEW_BYTES, isLarge, sizeOf } from '../core/frame-steps.ts'
import type { AnswerSeals } from '../core/seals.ts'
import type { Decoder, Frame } from '../core/translator.ts'
import type { Mask } from '../lib/mask.ts'
import { turnBudget } from '../lib/turn-budget.ts'
import type { Turns } from '../lib/turns.ts'
import type { AnswerLease } from './answer-memory.ts'
import type { PlainSource } from './encoding.ts'
import { FrameCutter } from './frame-cutter.ts'
import type { Framing } from './framing/framing.ts'
import { AnswerMask } from './masking.ts'
import { Tally, writtenIn } from './tally.ts'
import { END_GRACE_MS, type UpstreamResponse } from './upstream-response.ts'

/** Of what is kept of a stream, as much as is taken at a time. */
const HELD_STEP = 64 * 1024
/** In place of the chunks at the end of the bytes. */
const END = [undefined] as const

/** In whose turns an answer is decoded. */
interface Decoding {
  readonly turns: Turns
  readonly tenant: string
  /** The answer is cut into frames as it comes. */
  readonly isStream: boolean
}

/** What an answer is read with. */
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
  /** Where large frames, and many, are decoded without keeping others waiting; undefined where each is a chunk as it came. */
  readonly inTurn: Decoding | undefined
  /** Of the request's credential. */
  readonly mask: Mask | undefined
  readonly seals: AnswerSeals | undefined
}

/** By index: this is done for each piece of each stream. */
function isMuch(chunks: readonly Buffer[] = []): boolean {
  let bytes = 0
  for (let at = 0; at < chunks.length; at++) bytes += chunks[at]!.length
  return bytes > FEW_BYTES
}

type Batch = IteratorResult<readonly Event[]>
type BatchResult = Batch | Promise<Batch>

/** An iterator by hand: a generator costs three more turns of the queue for each batch. */
export class Answer implements AsyncIterable<readonly Event[]>, AsyncIterator<readonly Event[]> {
  readonly #incoming: UpstreamResponse
  readonly #source: PlainSource
  readonly #cutter: FrameCutter
  readonly #decoder: Decoder
  readonly #lease: AnswerLease
  readonly #mask: AnswerMask | undefined
  readonly #seals: AnswerSeals | undefined
  readonly #mayCallTools: boolean
  readonly #inTurn: Decoding | undefined
  readonly #tally: Tally
  /** The last one, until its events are read. */
  #frame: Frame | undefined
  /** Of a whole answer that passes a bound. */
  #unread: readonly Buffer[] | undefined
  /** What was taken of the source, until it is decoded. */
  #chunks: readonly Buffer[] | undefined
  /** What `commit` has read. */
  #first: Event[] | undefined = undefined
  #ended = false
  /** When the last event of an answer that is complete was read. */
  #completeAt: number | undefined
  /** The decoder is at work: what it throws is about what the answer says, even if that was its end. */
  #reading = false

  constructor({ incoming, source, framing, decoder, lease, isHeld, mayCallTools, inTurn, mask, seals }: Reading) {
    this.#incoming = incoming
    this.#source = source
    this.#cutter = new FrameCutter(framing, inTurn?.isStream === true)
    this.#decoder = decoder
    this.#lease = lease
    this.#tally = new Tally(isHeld, decoder.kept === undefined)
    this.#mayCallTools = mayCallTools
    this.#inTurn = inTurn
    this.#mask = mask && new AnswerMask(mask)
    this.#seals = seals
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
      this.#chunks = chunks
      for (const { length } of chunks ?? []) held += length
      if (held > this.#lease.most) throw this.#tooManyBytes(seen)
      const waits = this.#lease.coverInTurn(held)
      if (waits) await waits
      const decoded = rest ?? this.#decodeInTime(chunks)
      this.#chunks = undefined
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

  /**
   * Of a whole answer that `commit` has failed by its size: the bytes that no event was read of, but for those that its
   * source still gives. They are kept here no more.
   */
  takeUnread(): readonly Buffer[] {
    const unread = this.#unread ?? [...this.#cutter.taken(), ...(this.#chunks ?? [])]
    this.#unread = this.#chunks = undefined
    return unread
  }

  /** A stream of small events that no client sees, and of which nothing is kept, is its provider's failure. */
  #tooManyBytes(seen: boolean): GatewayError {
    const error = tooManyBytes(this.#lease.most)
    const isKept = (this.#decoder.kept ?? this.#tally.kept) > 0 || this.#cutter.pending > this.#lease.most / 2
    return this.#inTurn?.isStream !== true || seen || isKept ? error : error.with({ excess: undefined })
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
    const decoded = this.#decodeInTime(chunks)
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
    this.#incoming.release()
  }

  #destroy(): void {
    this.#source.free?.()
    this.#incoming.destroy()
  }

  /** The same in a later turn of the loop where this one is full: many answers may come in it. */
  #decodeInTime(chunks: readonly Buffer[] | undefined): Event[] | Promise<Event[]> {
    const turn = this.#inTurn && isMuch(chunks) ? turnBudget.next(this.#inTurn.tenant) : undefined
    return turn ? turn.then(() => this.#decode(chunks)) : this.#decode(chunks)
  }

  /** The events of all chunks that are there; the wire's own terminator ends the answer before its last byte. */
  #decode(chunks: readonly Buffer[] | undefined): Event[] | Promise<Event[]> {
    const events: Event[] = []
    try {
      const pieces = chunks ?? END
      if (!this.#cutter.isMuch) this.#cutter.restart()
      for (let index = 0; index < pieces.length; index++) {
        const chunk = pieces[index]
        let from = 0
        do {
          if (chunk && this.#cutter.isMuch) return this.#decodeInTurns([], restOf(chunks, index, from), events)
          const end = this.#cutter.endOfSlice(chunk, from)
          const frames = this.#cutter.framesOf(end - from === chunk?.length ? chunk : chunk?.subarray(from, end))
          from = end
          if (this.#inTurn && frames.some(isLarge)) {
            return this.#decodeInTurns(frames, restOf(chunks, index, from), events)
          }
          for (let at = 0; at < frames.length; at++) this.#add(frames[at]!, events)
        } while (chunk && from < chunk.length)
      }
      this.#conclude(chunks === undefined, events)
    } catch (thrown) {
      return this.#broken(thrown, events)
    }
    return events
  }

  /** The same from `frames` on: large ones, and many, are decoded in turns with others. */
  async #decodeInTurns(frames: Frame[], rest: readonly Buffer[] | undefined, events: Event[]): Promise<Event[]> {
    try {
      await this.#addLarge(frames, events)
      for (const chunk of rest ?? []) {
        for (let from = 0; from < chunk.length && !this.#decoder.done; ) {
          if (this.#cutter.isMuch) await this.#nextTurn()
          const end = this.#cutter.endOfSlice(chunk, from)
          await this.#addLarge(this.#cutter.framesOf(chunk.subarray(from, end)), events)
          from = end
        }
      }
      this.#conclude(rest === undefined, events)
    } catch (thrown) {
      return this.#broken(thrown, events)
    }
    return events
  }

  async #nextTurn(): Promise<void> {
    const { turns, tenant } = this.#inTurn!
    await turns.next(tenant)
    this.#cutter.restart()
  }

  async #addLarge(frames: readonly Frame[], events: Event[]): Promise<void> {
    for (const frame of frames) {
      if (isLarge(frame) && !this.#decoder.done) {
        const { turns, tenant } = this.#inTurn!
        this.#reading = true
        this.#frame = frame
        const decoded = await turns.run(tenant, decodeSteps(this.#decoder, frame))
        // What is done with the events takes long, too.
        await turns.next(tenant)
        this.#addEvents(decoded, sizeOf(frame), events)
        await turns.next(tenant)
      } else this.#add(frame, events)
    }
  }

  #conclude(isEnd: boolean, events: Event[]): void {
    // A framing keeps pieces of an event until it is complete, a decoder those of a call or until the end.
    const kept = this.#tally.kept + this.#cutter.pending + (this.#decoder.kept ?? 0)
    if (kept > this.#lease.most) throw tooManyBytes(this.#lease.most)
    if (kept > this.#lease.covered + HELD_STEP) this.#lease.cover(kept)
    this.#cutter.gave(events.length)
    if (!isEnd && !this.#decoder.done && !this.#isOverdue(events)) return
    this.#end(events)
  }

  /** Whether the provider, and not its client, broke an answer off that was complete. */
  #isOver(thrown: unknown): boolean {
    return !this.#ended && !this.#reading && this.#decoder.complete === true && asError(thrown).failover === true
  }

  #end(events: Event[]): void {
    this.#ended = true
    this.#reading = true
    this.#addEvents(this.#decoder.end(), 0, events)
  }

  /** Whether a complete answer goes on without events, as with comments, for longer than its end may take. */
  #isOverdue({ length }: readonly Event[]): boolean {
    if (this.#decoder.complete !== true) return false
    const now = performance.now()
    if (this.#completeAt !== undefined && length === 0) return now - this.#completeAt > END_GRACE_MS
    this.#completeAt = now
    this.#incoming.expectEnd()
    return false
  }

  /** What came before the break is passed on. A socket that breaks after the answer was complete took nothing away. */
  #broken(thrown: unknown, events: Event[]): Event[] {
    const isOver = this.#isOver(thrown)
    this.#ended = true
    this.#destroy()
    if (this.#decoder.done && !this.#reading) return events
    if (isOver) {
      try {
        this.#end(events)
        return events
      } catch (error) {
        return this.#broken(error, events)
      }
    }
    this.#addEvent({ type: 'error', error: this.#reading ? asAnswerError(thrown) : asError(thrown) }, events)
    return events
  }

  #add(frame: Frame, events: Event[]): void {
    if (this.#decoder.done) return
    this.#reading = true
    this.#frame = frame
    this.#addEvents(this.#decoder.frame(frame), sizeOf(frame), events)
  }

  #addEvents(decoded: readonly Event[], characters: number, events: Event[]): void {
    try {
      this.#tally.add(decoded, characters)
    } catch (thrown) {
      // Nothing of it is passed on, but it may be charged.
      for (const event of decoded) if (event.type === 'usage') events.push(event)
      this.#frame = undefined
      if (!decoded.some(hasCompletion)) events.push(estimateOf(writtenIn(decoded)))
      throw thrown
    }
    for (let at = 0; at < decoded.length; at++) this.#addEvent(decoded[at]!, events)
    this.#frame = undefined
    this.#reading = false
  }

  #addEvent(event: Event, events: Event[]): void {
    this.#mask?.apply(event)
    this.#seals?.apply(event)
    events.push(event.type === 'error' && event.error.excess ? this.#exceeded(event.error, events) : event)
  }

  /** The end of an answer that passes a bound, behind an estimate of its last frame where that is charged and not reported. */
  #exceeded(excess: GatewayError, events: Event[]): Event {
    const error = excess.excess === 'size' || this.#mayCallTools ? billed(excess) : excess
    const isReported = !this.#inTurn?.isStream && events.some(hasCompletion)
    if (this.#frame?.bytes) this.#unread = [this.#frame.bytes]
    if (error.billed && this.#frame && !isReported) events.push(estimateOf(sizeOf(this.#frame)))
    return { type: 'error', error }
  }
}

const estimateOf = (written: number): Event => ({ type: 'usage', usage: {}, written, estimated: true })
const hasCompletion = (event: Event): boolean => event.type === 'usage' && event.usage.completion !== undefined

/** The chunks behind `from` of the one at `index`; undefined for the end of the bytes. */
function restOf(chunks: readonly Buffer[] | undefined, index: number, from: number): Buffer[] | undefined {
  return chunks && [chunks[index]!.subarray(from), ...chunks.slice(index + 1)]
}
