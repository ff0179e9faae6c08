/** The end of every inference chain: send, classify, decode, commit. Nothing above it ever sees provider bytes. */
import { firstEventMs } from '../core/catalog.ts'
import { asError, errors, type GatewayError } from '../core/error.ts'
import { type Event, isContent } from '../core/event.ts'
import { parsedAhead, written } from '../core/exact.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Reply } from '../core/filter.ts'
import type { Mask } from '../core/mask.ts'
import type { MemoryBudget, MemoryLease } from '../core/memory-budget.ts'
import type { Seals } from '../core/seals.ts'
import { type Decoder, type Frame, nativeFormOf, type Target } from '../core/translator.ts'
import type { Outgoing } from './auth/strategy.ts'
import { waitFor } from './auth/wait.ts'
import { decoded, type Source } from './encoding.ts'
import type { Framing } from './framing/framing.ts'
import { framingFor } from './framing/index.ts'
import type { Incoming } from './incoming.ts'
import { AnswerMask, maskedError } from './masking.ts'
import { retryAfterMs } from './retry-after.ts'
import { maskOfSent, sign } from './sign.ts'
import { Tally } from './tally.ts'
import type { Transport } from './transport.ts'
import { Turns } from './turns.ts'

const MAX_ERROR_BYTES = 64 * 1024
/** Of an answer that is held here: until it is whole, or until there is anything of it that a client can see. */
const MAX_HELD_BYTES = 32 * 1024 * 1024
/** Up to here an answer takes nothing of the memory budget: most are smaller. */
const SMALL_HELD_BYTES = 64 * 1024
/** What is kept of a held answer: its bytes, and its events. */
const COPIES = 2
/** Of what is kept of a stream, as much as is taken at a time. */
const HELD_STEP = 64 * 1024
/** Characters from which a frame is parsed in steps. */
const LARGE_FRAME = 256 * 1024
/** In place of the chunks at the end of the bytes. */
const END = [undefined] as const

/**
 * Resolves once the first event that a client can see is there (the commit point); until then every failure is a
 * GatewayError that `route` may answer with another target. After it, failures are `error` events.
 */
export function terminal(transport: Transport, memory: MemoryBudget): (ex: Exchange) => Promise<Reply> {
  const turns = new Turns()
  return async ex => {
    const target = ex.target!
    ex.marks.sent = performance.now()
    ex.atProvider = false
    const sent: Sent = { mask: undefined }
    const incoming = await send(transport, ex, target, sent)
    const tenant = ex.principal?.orgId ?? ''
    const lease = memory.lease(tenant)
    try {
      if (incoming.status >= 400) throw await refusal(incoming, ex, sent.mask)
      if (incoming.status !== 200) throw errors.invalidAnswer(`its status is ${incoming.status}`, incoming.status)
      const { framing, mode } = framingFor(incoming.header('content-type'), ex.streaming)
      const source = decoded(incoming, incoming.header('content-encoding'))
      const { translator } = target
      const native = nativeFormOf(translator, ex.native)
      const decoder = native?.decoder?.(mode, target) ?? translator.decoder(mode, target, ex.request)
      // The numbers of vectors mostly pass without being read.
      const parser = translator.op === 'chat' ? parserOf(turns, tenant) : undefined
      const answer = new Answer(incoming, source, framing, decoder, lease, sent.mask, ex.policy?.seals, parser)
      await answer.commit(!ex.streaming)
      incoming.committed(mode === 'stream')
      // Nobody is asked again.
      ex.outbound = undefined
      ex.encodeAgain = undefined
      ex.verbatim = undefined
      ex.marks.answered = performance.now()
      return { status: 200, headers: [], events: answer }
    } catch (thrown) {
      incoming.destroy()
      lease.release()
      throw thrown
    }
  }
}

/** Parses a frame without keeping others waiting. */
type Parser = (frame: Frame) => Promise<Frame>

const parserOf =
  (turns: Turns, tenant: string): Parser =>
  async ({ data, name, bytes }) => {
    const parsed = await turns.run(tenant, parsedAhead(data))
    return bytes ? { data, name, bytes, parsed } : { data, name, parsed }
  }

const isLarge = ({ data }: Frame): boolean => data.length >= LARGE_FRAME

type Batch = IteratorResult<readonly Event[]>
type Step = Batch | Promise<Batch>

/** What is known once the request is signed. */
interface Sent {
  /** Of its credential. */
  mask: Mask | undefined
}

/** Signs the request and sends it. Nothing here holds the body while the answer is waited for: it exists once then. */
function send(transport: Transport, ex: Exchange, target: Target, sent: Sent): Promise<Incoming> {
  const request = ex.outbound!
  const { provider } = target
  const { timeouts } = provider
  const remainingMs = () => timeouts.total - (performance.now() - ex.marks.read)
  const fresh = isAgain(ex, target)
  const { signal } = ex
  const tenant = ex.principal?.orgId ?? ''
  const call = (signed: Outgoing) => {
    const { baseUrl, path, headers, body } = signed
    sent.mask = maskOfSent(signed, provider)
    const patience = { timeouts, firstEventMs: firstEventMs(target.mapping, ex.streaming), remainingMs: remainingMs() }
    return transport.send({ baseUrl, path, headers, body, provider, ...patience, signal, fresh, receipt: ex, tenant })
  }
  const body = ex.verbatim ? ex.verbatim.stringify(request.body) : written(JSON.stringify(request.body))
  const signed = sign(target, request, ex.id, body)
  return signed instanceof Promise ? waitFor(signed, remainingMs(), ex.signal).then(call) : call(signed)
}

/** Nobody is asked twice, but for whose socket had gone stale. */
const isAgain = ({ attempts }: Exchange, { mapping, credential, region }: Target): boolean =>
  attempts.some(
    ({ target }) => target.mapping === mapping && target.credential === credential && target.region === region,
  )

/** One answer as its events. An iterator by hand: a generator costs three more turns of the queue for each batch. */
class Answer implements AsyncIterable<readonly Event[]>, AsyncIterator<readonly Event[]> {
  readonly #incoming: Incoming
  readonly #source: Source
  readonly #framing: Framing
  readonly #decoder: Decoder
  readonly #lease: MemoryLease
  readonly #mask: AnswerMask | undefined
  readonly #seals: Seals | undefined
  readonly #parser: Parser | undefined
  readonly #tally = new Tally()
  #leased = 0
  /** What `commit` has read. */
  #first: Event[] | undefined = undefined
  #ended = false
  /** The decoder is at work: what it throws is about what the answer says, even if that was its end. */
  #reading = false

  /**
   * `source` gives the bytes of `incoming`, plain; `lease` takes memory for what is held of them; `parser` is for large
   * frames, where they are parsed at all.
   */
  constructor(
    incoming: Incoming,
    source: Source,
    framing: Framing,
    decoder: Decoder,
    lease: MemoryLease,
    mask: Mask | undefined,
    seals: Seals | undefined,
    parser: Parser | undefined,
  ) {
    this.#parser = parser
    this.#incoming = incoming
    this.#source = source
    this.#framing = framing
    this.#decoder = decoder
    this.#lease = lease
    this.#mask = mask && new AnswerMask(mask)
    this.#seals = seals
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /**
   * Reads up to the first event that a client can see; of an answer that is wanted `whole`, whose client sees nothing
   * before its end, all of it. Throws what fails before that.
   */
  async commit(whole: boolean): Promise<void> {
    const first: Event[] = []
    let held = 0
    let seen = false
    while (!this.#ended) {
      const chunks = await this.#source.take()
      for (const { length } of chunks ?? []) held += length
      if (held > MAX_HELD_BYTES) throw errors.invalidAnswer('it is larger than 32 MiB')
      this.#hold(held)
      const decoded = this.#decode(chunks)
      for (const event of decoded instanceof Promise ? await decoded : decoded) {
        if (event.type === 'error' && (whole || !seen)) throw event.error
        if (isContent(event)) seen = true
        first.push(event)
      }
      if (seen && (!whole || this.#ended)) {
        this.#first = first
        return
      }
    }
    throw errors.invalidAnswer('it is empty')
  }

  /** Takes memory for so many bytes in all. */
  #hold(bytes: number): void {
    if (bytes <= SMALL_HELD_BYTES || bytes <= this.#leased) return
    if (!this.#lease.grow((bytes - this.#leased) * COPIES)) throw errors.overloaded()
    this.#leased = bytes
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

  readonly #read = (chunks: readonly Buffer[] | undefined): Step => {
    const decoded = this.#decode(chunks)
    return decoded instanceof Promise ? decoded.then(this.#step) : this.#step(decoded)
  }
  readonly #break = (thrown: unknown): Step => this.#step(this.#broken(thrown, []))

  readonly #step = (value: readonly Event[]): Step => (value.length > 0 ? { done: false, value } : this.next())

  async return(): Promise<Batch> {
    this.#lease.release()
    if (this.#ended) this.#incoming.release()
    else this.#incoming.destroy()
    return { done: true, value: undefined }
  }

  /** The events of all chunks that are there; the wire's own terminator ends the answer before its last byte. */
  #decode(chunks: readonly Buffer[] | undefined): Event[] | Promise<Event[]> {
    const events: Event[] = []
    try {
      for (const [index, chunk] of (chunks ?? END).entries()) {
        const frames = this.#framesOf(chunk)
        if (this.#parser && frames.some(isLarge)) return this.#decodeLarge(frames, chunks?.slice(index + 1), events)
        for (const frame of frames) this.#add(frame, events)
      }
      this.#conclude(chunks === undefined, events)
    } catch (thrown) {
      return this.#broken(thrown, events)
    }
    return events
  }

  /** The same from `frames` on, the large ones of which are parsed in turns with everybody else. */
  async #decodeLarge(frames: Frame[], rest: readonly Buffer[] | undefined, events: Event[]): Promise<Event[]> {
    try {
      await this.#addLarge(frames, events)
      for (const chunk of rest ?? []) await this.#addLarge(this.#framing.push(chunk), events)
      this.#conclude(rest === undefined, events)
    } catch (thrown) {
      return this.#broken(thrown, events)
    }
    return events
  }

  async #addLarge(frames: readonly Frame[], events: Event[]): Promise<void> {
    for (const frame of frames) {
      const isMuch = isLarge(frame) && !this.#decoder.done
      this.#add(isMuch ? await this.#parser!(frame) : frame, events)
    }
  }

  /** `chunk` is undefined at the end of the bytes. */
  #framesOf(chunk: Buffer | undefined): Frame[] {
    return chunk ? this.#framing.push(chunk) : this.#framing.end()
  }

  #conclude(isEnd: boolean, events: Event[]): void {
    // Of a stream, pieces may be kept: for what is told of them at the end, or until they are whole.
    if (this.#tally.kept > this.#leased + HELD_STEP) this.#hold(this.#tally.kept)
    if (!isEnd && !this.#decoder.done) return
    this.#ended = true
    this.#reading = true
    this.#told(this.#decoder.end(), 0, events)
  }

  /** What came before the break is told. A socket that breaks after the answer was complete took nothing away. */
  #broken(thrown: unknown, events: Event[]): Event[] {
    this.#ended = true
    this.#incoming.destroy()
    if (!this.#decoder.done || this.#reading) this.#tell({ type: 'error', error: asError(thrown) }, events)
    return events
  }

  #add(frame: Frame, events: Event[]): void {
    if (this.#decoder.done) return
    this.#reading = true
    this.#told(this.#decoder.frame(frame), frame.bytes?.length ?? frame.data.length, events)
  }

  #told(told: readonly Event[], characters: number, events: Event[]): void {
    this.#tally.add(told, characters)
    for (const event of told) this.#tell(event, events)
    this.#reading = false
  }

  #tell(event: Event, events: Event[]): void {
    this.#mask?.apply(event)
    this.#seals?.apply(event)
    events.push(event)
  }
}

/** The provider's refusal. Its status says what happened; what can be read of its body says more. */
async function refusal(incoming: Incoming, ex: Exchange, mask: Mask | undefined): Promise<GatewayError> {
  const body: Buffer[] = []
  try {
    await read(decoded(incoming, incoming.header('content-encoding')), body)
  } catch (thrown) {
    if (ex.signal.reason) throw thrown
  }
  const text = Buffer.concat(body).subarray(0, MAX_ERROR_BYTES).toString('utf8')
  const told = ex.target!.translator.error(incoming.status, text, ex.target!)
  const error = mask ? maskedError(told, mask) : told
  const wait = retryAfterMs(name => incoming.header(name), error.message)
  return wait === undefined ? error : error.with({ retryAfterMs: wait })
}

/** Adds what comes to `into`, up to a bounded length. */
async function read(source: Source, into: Buffer[]): Promise<void> {
  let size = 0
  for (let batch = await source.take(); batch && size < MAX_ERROR_BYTES; batch = await source.take()) {
    for (const chunk of batch) {
      into.push(chunk)
      size += chunk.length
    }
  }
}
