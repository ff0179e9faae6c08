/** Several requests to one target in the place of one; joins their answers (docs/contract.md#polled-answers). */
import { Cancellation } from '../core/cancel.ts'
import type { Event, UsageReport } from '../core/event.ts'
import type { FanOut } from '../core/translator.ts'
import { type Axis, applyReport, type Usage } from '../core/usage.ts'
import { asError, CLIENT_CLOSED, errors, type GatewayError } from '../lib/error.ts'

/** Maximum concurrent requests that together serve one. */
const PARTS_AT_ONCE = 4

/** Progress of one part. */
export interface PartReceipt {
  /** Its provider has all of it. */
  atProvider: boolean
}

/** Callbacks of the exchange that its parts use. */
interface PartCalls<P> {
  /**
   * Gives the events of one whole answer, the last of which is an error where it failed and is charged, and ends with the
   * signal that it gets.
   */
  send(part: P, signal: Cancellation, receipt: PartReceipt): Promise<readonly Event[]>
  /**
   * Gets the usage of what the provider charges where nothing is returned, since a part fails by the caller's fault, there
   * is no memory, or the caller has left; and that error.
   */
  charge(report: UsageReport, error: GatewayError): void
  /** Estimates the usage of a sent part that returned these events and no report; see `send`. */
  usageOf(part: P, events: readonly Event[]): UsageReport
}

/**
 * Sends all parts and joins their answers. Resolves with the events of one answer. An `ordered` request fails without one
 * of its answers. Any other request needs one answer. It does without parts that the provider refuses to make, or that fail
 * by what the caller had its model write. Where the caller leaves, or the request fails by its fault, each part that the
 * provider has is charged: as it was reported, or as an estimate.
 */
export const fannedOut = <P>(
  parts: readonly P[],
  fanOut: FanOut,
  signal: Cancellation,
  calls: PartCalls<P>,
): Promise<Event[]> => new FannedOut(parts, fanOut, signal, calls).answer()

class FannedOut<P> {
  readonly #parts: readonly P[]
  readonly #fanOut: FanOut
  readonly #signal: Cancellation
  readonly #calls: PartCalls<P>
  readonly #signals: readonly Cancellation[]
  readonly #answers: (readonly Event[] | undefined)[]
  /** Parts that ended unanswered because the caller has left, or has made another one fail. */
  readonly #cutOff = new Set<number>()
  /** Events of failed parts that are charged. */
  readonly #billed: (readonly Event[])[] = []
  #next = 0
  /** First error of a part that the answer does without. */
  #refused: GatewayError | undefined
  /** First error of a part by which the whole request fails. */
  #failed: GatewayError | undefined

  constructor(parts: readonly P[], fanOut: FanOut, signal: Cancellation, calls: PartCalls<P>) {
    this.#parts = parts
    this.#fanOut = fanOut
    this.#signal = signal
    this.#calls = calls
    this.#signals = parts.map(() => new Cancellation())
    this.#answers = parts.map(() => undefined)
  }

  async answer(): Promise<Event[]> {
    const workers = Math.min(PARTS_AT_ONCE, this.#parts.length)
    this.#signal.listen(this.#leave)
    try {
      await Promise.all(Array.from({ length: workers }, () => this.#work()))
    } finally {
      this.#signal.ignore(this.#leave)
    }
    const { reason } = this.#signal
    // A part that the gateway ends costs its caller nothing.
    if (reason && !this.#failed) throw this.#ended(reason, reason.status === CLIENT_CLOSED)
    const answers = this.#answers.filter(answer => answer !== undefined)
    const error = this.#failed ?? (answers.length === 0 ? this.#refused : undefined)
    if (error) throw this.#ended(error, isCharged(error))
    const events = this.#fanOut.join(answers.map(withoutUsage))
    const charged = [...this.#counted(answers), ...this.#billed]
    if (charged.length === 0) return [reportOf(answers), ...events]
    return [reportOf(charged), ...events.map(withCharge)]
  }

  readonly #leave = (): void => {
    // The second time what is read on is to end.
    for (const one of this.#signals) {
      if (one.reason) one.cut()
      else one.abort(this.#signal.reason ?? errors.aborted())
    }
  }

  /** Sends one part after another while the request has not failed. */
  async #work(): Promise<void> {
    while (this.#next < this.#parts.length && !this.#failed && !this.#signal.reason) await this.#send(this.#next++)
  }

  async #send(at: number): Promise<void> {
    const part = this.#parts[at]!
    const receipt: PartReceipt = { atProvider: false }
    try {
      const events = await this.#calls.send(part, this.#signals[at]!, receipt)
      const last = events.at(-1)
      if (last?.type === 'error') {
        this.#billed.push(events.some(isReport) ? events : [this.#calls.usageOf(part, events)])
        this.#leaveOut(last.error)
      } else this.#answers[at] = events
    } catch (thrown) {
      const error = asError(thrown)
      if (error.code === 'content_filter') this.#leaveOut(error)
      else if (!this.#signal.reason && !this.#failed) this.#fail(error)
      else if (error.status === CLIENT_CLOSED && receipt.atProvider) this.#cutOff.add(at)
    }
  }

  #leaveOut(error: GatewayError): void {
    if (this.#fanOut.ordered) this.#fail(error)
    else this.#refused ??= error
  }

  #fail(error: GatewayError): void {
    if (this.#failed || this.#signal.reason) return
    this.#failed = error
    // Charges the other parts: they are read on, as if the client had left.
    const reason = isCharged(error) ? errors.aborted() : error
    for (const one of this.#signals) one.abort(reason)
  }

  /** Charges what is owed for a request that fails as a whole. Returns the error. */
  #ended(error: GatewayError, isOwed: boolean): GatewayError {
    const owed = isOwed ? this.#owed() : []
    if (owed.length > 0) this.#calls.charge(reportOf(owed), error)
    return error
  }

  /** Returns the events to charge when the request fails as a whole. */
  #owed(): (readonly Event[])[] {
    const owed = [...this.#billed]
    for (const [at, part] of this.#parts.entries()) {
      const events = this.#answers[at] ?? (this.#cutOff.has(at) ? [] : undefined)
      if (!events || events.some(isFree)) continue
      owed.push(events.some(({ type }) => type === 'usage') ? events : [this.#calls.usageOf(part, events)])
    }
    return owed
  }

  /** Returns what to charge for the answers. A count that some of them report is estimated for the others. */
  #counted(answers: readonly (readonly Event[])[]): (readonly Event[])[] {
    const charged = answers.filter(answer => !answer.some(isFree))
    const axes = countedAxes.filter(axis => charged.some(answer => reports(answer, axis)))
    return this.#answers.flatMap((answer, at) => {
      if (!answer || answer.some(isFree)) return []
      // Where no part has a count, the sum of all is estimated.
      return [axes.every(axis => reports(answer, axis)) ? answer : [this.#calls.usageOf(this.#parts[at]!, answer)]]
    })
  }
}

/** Tells whether answered parts are charged: after a provider's final rejection, and when memory is missing. */
const isCharged = ({ failover, upstreamStatus, code }: GatewayError): boolean =>
  !failover && (upstreamStatus !== undefined || code === 'overloaded')

const isReport = (event: Event): boolean => event.type === 'usage' && event.estimated === undefined

/** Counts whose absence beside those of other parts does not show in the sum. */
const countedAxes = ['prompt', 'completion'] as const
const reports = (answer: readonly Event[], axis: Axis): boolean =>
  answer.some(event => event.type === 'usage' && event.usage[axis] !== undefined)

const isFree = (event: Event): boolean => event.type === 'finish' && event.free === true

/** An answer that is free makes no other one free. */
function withCharge(event: Event): Event {
  if (event.type !== 'finish') return event
  const { free: _, ...finish } = event
  return finish
}

/** The sum over the answers, each of which is a request; the last report of each counts. */
function reportOf(answers: readonly (readonly Event[])[]): UsageReport {
  const requests = { count: answers.length, longest: 0 }
  const sum: UsageReport = { type: 'usage', usage: {}, requests }
  const billed: Usage = {}
  for (const events of answers) {
    const usage: Usage = {}
    let less: Partial<Usage> | undefined
    for (const event of events) {
      if (event.type !== 'usage') continue
      applyReport(usage, event.usage)
      less = event.billed
      if (event.estimated) sum.estimated = true
    }
    requests.longest = Math.max(requests.longest, usage.prompt ?? 0)
    add(sum.usage, usage)
    add(billed, { ...usage, ...less })
    if (less) sum.billed = billed
  }
  return sum
}

function add(sum: Partial<Usage>, usage: Partial<Usage>): void {
  for (const axis in usage) sum[axis as Axis] = (sum[axis as Axis] ?? 0) + usage[axis as Axis]!
}

const withoutUsage = (events: readonly Event[]): Event[] => events.filter(({ type }) => type !== 'usage')
