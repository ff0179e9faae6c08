/** The events of an answer that is paid for. */

import type { Outcome } from '../../core/answer.ts'
import type { Event } from '../../core/event.ts'
import type { Exchange } from '../../core/exchange.ts'
import { tokensOfImage } from '../../core/media.ts'
import type { Reply } from '../../core/reply.ts'
import { TOKEN_BYTES, textSize } from '../../core/usage.ts'
import type { Conclusion } from './conclusion.ts'
import type { Meter } from './meter.ts'

type Batch = IteratorResult<readonly Event[]>

/**
 * Ends only when the charge for the answer is durable, and before its hold is used up. Written by hand: a generator
 * around another costs three turns of the queue a batch.
 */
export class Charged implements AsyncIterable<readonly Event[]>, AsyncIterator<readonly Event[]> {
  readonly #ex: Exchange
  readonly #inner: AsyncIterator<readonly Event[]>
  readonly #conclusion: Conclusion
  /** Meter of a stream. */
  readonly #meter: Meter | undefined
  readonly #tokensOfImage: number
  /** Choices of a stream that have ended. */
  readonly #finished: number[] = []
  #concluded = false
  /** The meter has ended the answer, and the client has its end. */
  #cut = false
  /** The provider has come to its end after the client has left. */
  #readWhole = false

  constructor(ex: Exchange, events: Reply['events'], conclusion: Conclusion, meter: Meter | undefined) {
    this.#ex = ex
    this.#inner = events[Symbol.asyncIterator]()
    this.#conclusion = conclusion
    this.#meter = meter
    this.#tokensOfImage = tokensOfImage(ex.target!.price)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<Batch> {
    if (this.#cut) return this.#conclude(true).then(() => ({ done: true, value: undefined }))
    return this.#inner.next().then(this.#pass, this.#fail)
  }

  async return(): Promise<Batch> {
    try {
      if (this.#ex.isOwed) await this.#readOn()
      await this.#inner.return?.()
    } finally {
      await this.#conclude(false)
    }
    return { done: true, value: undefined }
  }

  readonly #pass = (result: Batch): Batch | Promise<Batch> => {
    if (result.done) return this.#conclude(this.#ex.answer.failure === undefined).then(() => result)
    if (this.#meter) {
      if (this.#meter.stopped) return this.#stopped(result.value)
      const goesOn = this.#meter.mayGoOn(tokensOf(result.value, this.#tokensOfImage))
      if (goesOn !== true) return this.#decide(goesOn, result)
    }
    this.#passed(result.value)
    return result
  }

  readonly #fail = (thrown: unknown): Promise<Batch> =>
    this.#conclude(false).then(() => {
      throw thrown
    })

  async #decide(goesOn: boolean | Promise<boolean>, result: IteratorYieldResult<readonly Event[]>): Promise<Batch> {
    try {
      if (await goesOn) {
        this.#passed(result.value)
        return result
      }
    } catch (thrown) {
      await this.#inner.return?.()
      return this.#fail(thrown)
    }
    const affordable = within(result.value, this.#meter!.tokensLeft, this.#tokensOfImage)
    this.#meter!.stop()
    await this.#inner.return?.()
    return this.#stopped(affordable)
  }

  /** The answer as it ends when its hold is used up: what is there already, and that it is cut. */
  #stopped(rest: readonly Event[]): Batch {
    this.#cut = true
    this.#passed(rest)
    return { done: false, value: [...rest.filter(({ type }) => type !== 'error'), ...endOf(this.#ex, this.#finished)] }
  }

  #passed(batch: readonly Event[]): void {
    this.#ex.count(batch)
    if (!this.#meter) return
    for (let at = 0; at < batch.length; at++) {
      const event = batch[at]!
      if (event.type === 'finish') this.#finished.push(event.choice)
    }
  }

  /** The provider's own report may still come, within what the connection is kept for and what there is money for. */
  async #readOn(): Promise<void> {
    for (;;) {
      const { done, value } = await this.#inner.next()
      if (done) {
        this.#readWhole = this.#ex.answer.failure === undefined
        return
      }
      const isPaid = await this.#isPaid(value)
      // Beyond the hold a report has nothing to be paid from; an estimate costs what is held at most.
      const counted = isPaid ? value : value.filter(({ type }) => type !== 'usage' && type !== 'progress')
      this.#ex.count(counted)
      this.#ex.observe(counted)
      if (!isPaid) return
    }
  }

  async #isPaid(batch: readonly Event[]): Promise<boolean> {
    try {
      return (await this.#meter?.mayGoOn(tokensOf(batch, this.#tokensOfImage))) ?? true
    } catch {
      // The ledger fails, which is logged.
      return false
    }
  }

  async #conclude(complete: boolean): Promise<void> {
    if (this.#concluded) return
    this.#concluded = true
    const ex = this.#ex
    const outcome: Outcome = complete ? 'ok' : ex.signal.aborted ? 'aborted' : 'error'
    // The meter extends the hold for what tools have read every two seconds only, and the hold bounds the charge.
    if (!complete && ex.isOwed) await this.#meter?.coverCost()
    const isDue = complete || ex.isOwed || (ex.streaming && ex.timings.firstToken > 0)
    await (isDue ? this.#conclusion.settle(outcome, complete || this.#readWhole) : this.#conclusion.release())
  }
}

/** As `Exchange.count` counts them. */
function tokensOf(batch: readonly Event[], ofImage: number): number {
  let bytes = 0
  let images = 0
  // Loops by index: an iterator for each piece of each stream adds up.
  for (let at = 0; at < batch.length; at++) {
    const event = batch[at]!
    if (event.type === 'text' || event.type === 'reasoning' || event.type === 'refusal') bytes += textSize(event.text)
    else if (event.type === 'tool') bytes += textSize(event.args ?? '')
    else if (event.type === 'image') images++
  }
  return bytes / TOKEN_BYTES + images * ofImage
}

/** The events that come before so many tokens are used up. */
function within(batch: readonly Event[], tokens: number, ofImage: number): readonly Event[] {
  let used = 0
  const end = batch.findIndex(event => {
    used += tokensOf([event], ofImage)
    // Bytes are measured once they have passed.
    return used > tokens || (event.type === 'bytes' && tokens === 0)
  })
  return end < 0 ? batch : batch.slice(0, end)
}

/** Returns the end events of choices that are not `finished`, for an answer that the gateway cuts. */
export function endOf({ operation, request }: Exchange, finished: readonly number[]): Event[] {
  const { choices } = operation.output?.(request!) ?? { choices: 1 }
  const events: Event[] = []
  for (let choice = 0; choice < choices; choice++) {
    if (!finished.includes(choice)) events.push({ type: 'finish', choice, reason: 'length' })
  }
  return events
}
