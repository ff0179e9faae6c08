/** Measures an answer as it comes: what its provider reports, what was delivered since then, and what that costs. */

import { Cancellation } from '../core/cancel.ts'
import { costOf } from '../core/cost.ts'
import { type Event, isContent, type UsageReport } from '../core/event.ts'
import { Exchange, type Meters } from '../core/exchange.ts'
import { tokensOfImage } from '../core/media.ts'
import type { AnswerMeter } from '../core/meter.ts'
import { type Cost, type Money, noCost, type Requests } from '../core/money.ts'
import type { AnswerMeasure } from '../core/operation.ts'
import { type Axis, applyReport, estimateTokens, textSize, type Usage } from '../core/usage.ts'
import type { RequestPart } from '../core/wire.ts'
import { errors } from '../lib/error.ts'
import { ExpectedUsage, plausible } from './plausible.ts'
import { PromptEstimate } from './prompt.ts'
import { requestsOf } from './requests.ts'
import { completeUsage, type Delivered, limited } from './settle.ts'

/** Merges reports into the `usage` of its exchange, and counts what was delivered since the last one. */
class Answer implements AnswerMeter, Delivered {
  readonly #ex: Exchange
  readonly #expected: ExpectedUsage
  /** The provider charges nothing for the answer. */
  #isFree = false
  hasContent = false
  #begun = false
  #cost: Cost | null | undefined
  /** The most that an estimate costs. */
  #most: Money | undefined
  /** Tokens of the last report that named content, and those of them that were reasoning. */
  #reported = 0
  #reportedReasoning = 0
  /** Bytes that came since then. */
  #textBytes = 0
  #reasoningBytes = 0
  newImages = 0
  images = 0
  #read = 0
  /** Null where an answer of bytes costs nothing, undefined before its first bytes. */
  #measure: AnswerMeasure | null | undefined
  #billed: Partial<Usage> | undefined
  progress: Partial<Usage> | undefined
  #requests: Requests | undefined
  readonly implausible = new Map<Axis, number>()

  constructor(ex: Exchange) {
    this.#ex = ex
    this.#expected = new ExpectedUsage(ex)
  }

  /** No allocation: there is a batch for every piece of every stream. */
  count(batch: readonly Event[]): void {
    for (let at = 0; at < batch.length; at++) {
      const event = batch[at]!
      if (isContent(event)) this.hasContent = true
      switch (event.type) {
        case 'text':
        case 'refusal':
          this.#textBytes += textSize(event.text)
          break
        case 'reasoning':
          this.#reasoningBytes += textSize(event.text)
          break
        case 'tool':
          this.#textBytes += textSize(event.args ?? '') + textSize(event.name ?? '')
          break
        case 'image':
          this.images++
          this.newImages++
          break
        case 'bytes':
          this.#measureBytes(event)
          break
        case 'usage':
          this.#report(event)
          break
        case 'progress':
          this.progress = plausible(event.usage, this.#expected.get)
          if (this.progress.completion) this.#nameDelivered(this.progress)
          break
        case 'start':
          this.#begin()
          break
        case 'finish':
          if (event.free) this.#isFree = true
          break
        case 'tier':
          this.#ex.answer.servedTier = event.tier
          this.#cost = undefined
          break
      }
    }
  }

  #measureBytes({ bytes, contentType = '' }: Extract<Event, { type: 'bytes' }>): void {
    if (this.#measure === undefined) {
      const { endpoint, outbound, request, target } = this.#ex
      const sent = outbound.output ?? endpoint.operation?.expectedOutput?.(request!, target!.mapping)
      this.#measure = endpoint.operation?.measure?.(contentType, target!.mapping.model, sent?.limit) ?? null
    }
    this.#measure?.add(bytes)
  }

  #begin(): void {
    // Another one before any content: the answer has begun afresh (C30).
    if (this.#begun && !this.hasContent) {
      const { usage } = this.#ex
      for (const axis in usage) delete usage[axis as Axis]
      this.implausible.clear()
      this.progress = undefined
      this.#reported = 0
    }
    this.#begun = true
  }

  /** Applies a report. An axis that is not plausible counts as much as was held for it. */
  #report({ usage: report, billed, estimated, read, written, requests }: UsageReport): void {
    const sum = this.#ex.usage
    const usage = plausible(report, this.#expected.get)
    const { completion: before = 0 } = sum
    applyReport(sum, usage)
    if (usage !== report || this.implausible.size > 0) {
      for (const axis in report) {
        if (usage[axis as Axis] === undefined) this.implausible.set(axis as Axis, report[axis as Axis]!)
        else this.implausible.delete(axis as Axis)
      }
    }
    this.#billed = billed && plausible(billed, this.#expected.get)
    this.#requests = usage === report ? requests : undefined
    if (estimated || usage !== report) this.#ex.estimated = true
    if (read !== undefined) this.#read += read
    else if (usage.prompt !== undefined) this.#read = 0
    if (written !== undefined) this.#textBytes += written
    const isLast = this.progress !== undefined && usage.completion !== undefined
    if (isLast) this.progress = undefined
    // Some repeat an early count with other events until the last one: it says nothing of what came since.
    const hasRisen = (usage.completion ?? 0) > before
    const hasDelivered = this.#textBytes + this.#reasoningBytes + this.newImages > 0
    if (isLast || (hasRisen && (hasDelivered || usage.internal_reasoning))) this.#nameDelivered(sum)
    this.#cost = undefined
  }

  /** A report names all that came before it. */
  #nameDelivered({ completion = 0, internal_reasoning: reasoning = 0 }: Usage): void {
    this.#reported = completion
    this.#reportedReasoning = reasoning
    this.#textBytes = 0
    this.#reasoningBytes = 0
    this.newImages = 0
  }

  get requests(): Requests | undefined {
    if (this.#requests) return this.#requests
    const count = requestsOf(this.#ex)
    return count > 1 ? { count } : undefined
  }

  complete(cut: boolean, most = this.#most): void {
    const ex = this.#ex
    if (most !== this.#most) this.#cost = undefined
    this.#most = most
    if (!completeUsage(ex, ex.usage, this, cut)) return
    this.#read = 0
    ex.estimated = true
    this.#cost = undefined
  }

  get soFar(): { readonly usage: Usage; readonly cost: Cost | null } {
    const usage = { ...this.#ex.usage }
    const estimated = completeUsage(this.#ex, usage, this, true)
    return { usage, cost: this.#costOf(usage, estimated) }
  }

  get tokens(): number {
    const delivered = this.textTokens + this.newImages * tokensOfImage(this.#ex.target?.price)
    return Math.max(this.#ex.usage.completion ?? 0, delivered, this.#measure?.tokens ?? 0)
  }

  get textTokens(): number {
    return this.#reported + estimateTokens(this.#textBytes + this.#reasoningBytes)
  }

  get reasoningTokens(): number {
    return this.#reportedReasoning + estimateTokens(this.#reasoningBytes)
  }

  get readTokens(): number {
    return estimateTokens(this.#read)
  }

  get bytesUsage(): Usage | undefined {
    return this.#measure?.usage
  }

  get held(): Usage {
    return this.#expected.get().usage
  }

  get cost(): Cost | null {
    const { answer, timings, isOwed, usage, estimated } = this.#ex
    const { cached, failure, billedFailure } = answer
    if (cached || this.#isFree || (failure && timings.firstToken === 0 && !isOwed && !billedFailure)) return noCost
    if (this.#cost === undefined) {
      const cost = this.#costOf(usage, estimated)
      this.#cost = cost && estimated ? limited(cost, this.#most) : cost
    }
    return this.#cost
  }

  /** A search that the request did not ask for, and that has no price, leaves the rest of the cost known. */
  #costOf(usage: Usage, estimated: boolean): Cost | null {
    const price = this.#ex.target?.price
    const counted = this.#billed && !estimated ? { ...usage, ...this.#billed } : usage
    const unasked = counted.web_search && price && price.rates.web_search === undefined && !this.#asksForSearch
    return costOf(unasked ? { ...counted, web_search: 0 } : counted, price, this.#ex.terms)
  }

  get #asksForSearch(): boolean {
    const ex = this.#ex
    if (!ex.request || !ex.endpoint.operation) return false
    const { web_search: searches = 0 } = ex.operation.extras?.(ex.request, ex.target!.mapping) ?? {}
    return searches > 0
  }
}

/** The meters of an exchange. */
export const meters: Meters = {
  prompt: ex => new PromptEstimate(ex),
  answer: ex => new Answer(ex),
}

const NO_BODY = (): never => {
  throw new Error('the body of a part is not read')
}

/**
 * The usage of a part of a request that ends without a report: by `events`, all that came of its answer, the last an error where
 * it failed and is charged. Without any it is that of an exchange whose client leaves.
 */
export function partUsage(ex: Exchange, part: RequestPart, events: readonly Event[]): UsageReport {
  const { snapshot, endpoint, target } = ex
  const { headers, query } = ex.http
  const signal = new Cancellation()
  const own = new Exchange({ meters, snapshot, endpoint, headers, query, signal, body: NO_BODY })
  own.request = part.input
  own.target = target
  own.input.native = ex.input.native
  own.outbound.partOf(ex.outbound, part)
  const isUnseen = events.length === 0
  own.outbound.atProvider = isUnseen
  if (isUnseen) signal.abort(errors.aborted())
  const last = events.at(-1)
  if (last?.type === 'error') own.failedWith(events, last.error)
  else own.count(events)
  own.meter.complete(isUnseen || own.answer.isCut)
  const { usage, estimated } = own
  return { type: 'usage', usage, ...(estimated && { estimated }) }
}
