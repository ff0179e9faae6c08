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
 * All or nothing; but what a provider refuses to make, or what fails by what the caller had its model write, is left out as
 * long as anything else is there. A caller that leaves, or by whose fault a part fails, pays for each part that its provider
 * has: as it was reported, or else as an estimate.
 */
export async function fannedOut<P>(
  parts: readonly P[],
  { join, ordered }: FanOut,
  signal: Cancellation,
  { send, charge, usageOf }: PartCalls<P>,
): Promise<Event[]> {
  const signals = parts.map(() => new Cancellation())
  const stop = (reason: GatewayError) => {
    for (const one of signals) one.abort(reason)
  }
  const gone = () => {
    // The second time what is read on is to end.
    for (const one of signals) {
      if (one.reason) one.cut()
      else one.abort(signal.reason ?? errors.aborted())
    }
  }
  /** Parts that ended unanswered because the caller has left, or has made another one fail. */
  const cutOff = new Set<number>()
  const answers: (readonly Event[] | undefined)[] = parts.map(() => undefined)
  /** Events of failed parts that are charged. */
  const billed: (readonly Event[])[] = []
  let refused: GatewayError | undefined
  let failed: GatewayError | undefined
  const fail = (error: GatewayError) => {
    if (failed || signal.reason) return
    failed = error
    // Charges the other parts: they are read on, as if the client had left.
    stop(isCharged(error) ? errors.aborted() : error)
  }
  /** Without one of its answers nothing of an ordered request can be returned: no more of it is sent. */
  const leaveOut = (error: GatewayError) => {
    if (ordered) fail(error)
    else refused ??= error
  }
  let next = 0
  const run = async () => {
    while (next < parts.length && !failed && !signal.reason) {
      const at = next++
      const receipt: PartReceipt = { atProvider: false }
      try {
        const events = await send(parts[at]!, signals[at]!, receipt)
        const last = events.at(-1)
        if (last?.type === 'error') {
          billed.push(events.some(isReport) ? events : [usageOf(parts[at]!, events)])
          leaveOut(last.error)
        } else answers[at] = events
      } catch (thrown) {
        const error = asError(thrown)
        if (error.code === 'content_filter') leaveOut(error)
        else if (signal.reason || failed) {
          if (error.status === CLIENT_CLOSED && receipt.atProvider) cutOff.add(at)
        } else fail(error)
      }
    }
  }
  signal.listen(gone)
  try {
    await Promise.all(Array.from({ length: Math.min(PARTS_AT_ONCE, parts.length) }, run))
  } finally {
    signal.ignore(gone)
  }
  /** Returns the events to charge when the request fails as a whole. */
  const owedOf = (): (readonly Event[])[] => {
    const answered = parts.flatMap((part, at): (readonly Event[])[] => {
      const events = answers[at] ?? (cutOff.has(at) ? [] : undefined)
      if (!events || events.some(isFree)) return []
      const isReported = events.some(({ type }) => type === 'usage')
      return [isReported ? events : [usageOf(part, events)]]
    })
    return [...answered, ...billed]
  }
  if (signal.reason && !failed) {
    const owed = owedOf()
    // A part that the gateway ends costs its caller nothing.
    if (owed.length > 0 && signal.reason.status === CLIENT_CLOSED) charge(reportOf(owed), signal.reason)
    throw signal.reason
  }
  const there = answers.filter(answer => answer !== undefined)
  const counted = countedAxes.filter(axis => there.some(answer => !answer.some(isFree) && reports(answer, axis)))
  const whole = answers.flatMap((answer, at) => {
    if (!answer || answer.some(isFree)) return []
    // Where no part has a count, the sum of all is estimated.
    return [counted.every(axis => reports(answer, axis)) ? answer : [usageOf(parts[at]!, answer)]]
  })
  const charged = [...whole, ...billed]
  const error = failed ?? (there.length === 0 ? refused : undefined)
  if (error) {
    const owed = isCharged(error) ? owedOf() : []
    if (owed.length > 0) charge(reportOf(owed), error)
    throw error
  }
  const events = join(there.map(withoutUsage))
  if (charged.length === 0) return [reportOf(there), ...events]
  return [reportOf(charged), ...events.map(withCharge)]
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
