/** What the answer of an exchange has used so far, as its provider reports it or as an estimate, and what that costs. */

import { costOf, isPaidByTokens } from '../core/cost.ts'
import { type Event, isContent, type UsageReport } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import { type Cost, noCost, type Requests } from '../core/money.ts'
import type { AnswerMeasure } from '../core/operation.ts'
import { type Axis, applyReport, estimateTokens, mergeUsage, type Usage } from '../core/usage.ts'
import { type Assumed, assume } from './assumed.ts'
import { Delivered } from './delivered.ts'
import { ExpectedUsage } from './expected-usage.ts'
import { plausible } from './plausible-usage.ts'
import { extrasOf, requestsOf } from './requests.ts'
import { comesInPieces, mostTokens, unseenTokens } from './unseen.ts'

/** Of what a provider does, apart from reading tokens: a report above 0 says that it has been done. */
const done = ['output_images', 'request', 'web_search', 'ocr_page', 'ocr_page_annotated', 'input_audio_hour'] as const

/** Parts of a prompt that are estimated with it. */
const ofPrompt = ['input_audio', 'input_cache_write', 'input_cache_write_1h'] as const

/** Reports are merged into the `usage` of the exchange. */
export class AnswerUsage {
  readonly #ex: Exchange
  readonly #expected: ExpectedUsage
  /** The provider charges nothing for the answer. */
  isFree = false
  /** Something has come that a client can see. */
  hasContent = false
  #cost: Cost | null | undefined
  readonly #delivered = new Delivered()
  /** Bytes of text that the provider's own tools have read since the last report of the prompt. */
  #read = 0
  #images = 0
  /** Of an answer that is no text; null where it costs nothing, undefined before its first bytes. */
  #measure: AnswerMeasure | null | undefined
  #begun = false
  #billed: Partial<Usage> | undefined
  /** What a provider has counted of the answer so far, until it reports. */
  #progress: Partial<Usage> | undefined
  #requests: Requests | undefined
  /** Axes of reports that were not plausible, as they were reported. */
  readonly #dropped = new Map<Axis, number>()

  constructor(ex: Exchange) {
    this.#ex = ex
    this.#expected = new ExpectedUsage(ex)
  }

  /** No allocation: there is a batch for every piece of every stream. */
  count(batch: readonly Event[]): void {
    let now = 0
    for (let at = 0; at < batch.length; at++) {
      const event = batch[at]!
      if (isContent(event)) {
        this.hasContent = true
        now ||= performance.now()
        this.#delivered.add(event, now, this.#ex.timings.sent)
      }
      switch (event.type) {
        case 'usage':
          this.#reported(event)
          break
        case 'progress':
          this.#progress = plausible(event.usage, this.#expected.get)
          if (this.#progress.completion) this.#delivered.reported(this.#progress, performance.now())
          break
        case 'image':
          this.#images++
          break
        case 'bytes':
          this.#measured(event)
          break
        case 'start':
          this.#begin()
          break
        case 'finish':
          if (event.free) this.isFree = true
          break
        case 'tier':
          this.#ex.servedTier = event.tier
          this.#reprice()
          break
      }
    }
  }

  #measured({ bytes, contentType = '' }: Extract<Event, { type: 'bytes' }>): void {
    const { endpoint, target } = this.#ex
    if (this.#measure === undefined) {
      this.#measure = endpoint.operation?.measure?.(contentType, target!.mapping.model) ?? null
    }
    this.#measure?.add(bytes)
  }

  #begin(): void {
    const { usage } = this.#ex
    // Another one before any content: the answer has begun afresh (C30).
    if (this.#begun && !this.hasContent) {
      for (const axis in usage) delete usage[axis as Axis]
      this.#dropped.clear()
      this.#progress = undefined
      this.#delivered.restart()
    }
    this.#begun = true
  }

  /** Applies a report. An axis that is not plausible counts as much as was held for it. */
  #reported({ usage: report, billed, estimated, read, written, requests }: UsageReport): void {
    const sum = this.#ex.usage
    const usage = plausible(report, this.#expected.get)
    const { completion: before = 0 } = sum
    applyReport(sum, usage)
    if (usage !== report || this.#dropped.size > 0) {
      for (const axis in report) {
        if (usage[axis as Axis] === undefined) this.#dropped.set(axis as Axis, report[axis as Axis]!)
        else this.#dropped.delete(axis as Axis)
      }
    }
    this.#billed = billed && plausible(billed, this.#expected.get)
    this.#requests = usage === report ? requests : undefined
    if (estimated || usage !== report) this.#ex.estimated = true
    if (read !== undefined) this.#read += read
    else if (usage.prompt !== undefined) this.#read = 0
    if (written !== undefined) this.#delivered.lost(written)
    const isLast = this.#progress !== undefined && usage.completion !== undefined
    if (isLast) this.#progress = undefined
    // Some repeat an early count with other events until the last one: it says nothing of what came since.
    const hasRisen = (usage.completion ?? 0) > before
    const isNamed = hasRisen && (!this.#delivered.isEmpty || usage.internal_reasoning)
    if (isLast || isNamed) this.#delivered.reported(sum, performance.now())
    this.#reprice()
  }

  /** The requests that the usage is the sum of; undefined for one. */
  get requests(): Requests | undefined {
    if (this.#requests) return this.#requests
    const count = requestsOf(this.#ex)
    return count > 1 ? { count } : undefined
  }

  /** What the price depends on has changed. */
  #reprice(): void {
    this.#cost = undefined
  }

  /** See `Exchange.completeUsage`. */
  complete(cut: boolean): void {
    const ex = this.#ex
    if (!this.#complete(ex.usage, cut)) return
    this.#read = 0
    ex.estimated = true
    this.#reprice()
  }

  /** Usage and cost if the answer were cut short now. */
  get soFar(): { readonly usage: Usage; readonly cost: Cost | null } {
    const usage = { ...this.#ex.usage }
    const estimated = this.#complete(usage, true)
    return { usage, cost: this.#costOf(usage, estimated) }
  }

  /** Tokens of all choices so far: as reported, as delivered, and thought out of sight. */
  get tokens(): number {
    const written = this.#delivered.written(this.#unseen) + this.#imageTokens
    return Math.max(this.#ex.usage.completion ?? 0, written, this.#measure?.tokens ?? 0)
  }

  /** Estimates the tokens of the answer's text. A report that was not plausible raises them, up to the limit of the answer. */
  #written(unseen: number): number {
    const written = Math.max(this.#delivered.written(unseen), this.#dropped.get('completion') ?? 0)
    return Math.min(written, mostTokens(this.#ex))
  }

  get #unseen(): number {
    return unseenTokens(this.#ex, this.#delivered)
  }

  get #imageTokens(): number {
    return this.#delivered.imageTokens(this.#ex.target?.price)
  }

  /** Whether anything had to be estimated. */
  #complete(usage: Usage, cut: boolean): boolean {
    if (cut && !this.hasContent && !this.#ex.isOwed) {
      usage.prompt ??= 0
      usage.completion ??= 0
      return false
    }
    const estimated = this.#fill(usage, cut)
    if (this.#dropped.size === 0) return estimated
    const { usage: held } = this.#expected.get()
    for (const axis of this.#dropped.keys()) {
      if (held[axis] !== undefined) usage[axis] = Math.max(usage[axis] ?? 0, held[axis])
    }
    return true
  }

  #fill(usage: Usage, cut: boolean): boolean {
    const { isOwed, isCut, operation, target, failure } = this.#ex
    const progress = usage.completion === undefined ? this.#progress : undefined
    if (progress) mergeUsage(usage, progress)
    const isSilent = usage.completion === undefined && !done.some(axis => (usage[axis] ?? 0) > 0)
    if (this.#images > 0) usage.output_images ??= this.#images
    let assumed: Assumed = 'nothing'
    if (!operation.output) {
      if (usage.completion === undefined && this.#measure) {
        mergeUsage(usage, this.#measure.usage)
        usage.prompt ??= this.#ex.promptUsage.prompt!
        return true
      }
      // The client left before usage was reported: charge what the request may have cost.
      if (isOwed && isSilent) {
        mergeUsage(usage, extrasOf(this.#ex))
        assumed = 'all'
      }
      // Of an answer that passes a bound the images are not counted.
      const isUncounted = usage.output_images === undefined && failure?.excess !== undefined
      if (isUncounted && target?.price?.perImage !== undefined) {
        usage.output_images = extrasOf(this.#ex).output_images ?? 0
        assumed = 'all'
      }
      usage.completion ??= 0
      // Nothing is made up of what was not reported where something else has the price.
      if (target?.price && !isPaidByTokens(usage, target.price)) {
        usage.prompt ??= 0
        return assumed === 'all'
      }
    } else if (isOwed && cut && !isCut) assumed = assume(this.#ex, usage, this.#written(0))
    const { prompt, completion } = usage
    const unseen = isOwed && assumed !== 'all' ? this.#unseen : 0
    // What is assumed has them already.
    const ofImages = assumed === 'nothing' ? this.#imageTokens : 0
    const written = this.#written(unseen) + ofImages
    const read = cut || this.#dropped.has('prompt') ? estimateTokens(this.#read) : 0
    const isOpen = cut || this.#dropped.has('completion')
    const complete = prompt !== undefined && completion !== undefined && !(isOpen && written > completion) && read === 0
    // A client that leaves before the prompt is reported pays for no less than the provider may have read.
    const isReported = complete && target?.price?.rates.image === undefined
    const sent = isReported ? usage : this.#ex.promptUsage
    if (sent.image !== undefined) usage.image ??= sent.image
    if (complete) return assumed !== 'nothing' || progress !== undefined
    if (prompt === undefined) for (const axis of ofPrompt) if (sent[axis] !== undefined) usage[axis] ??= sent[axis]
    usage.prompt = (prompt ?? sent.prompt!) + read
    usage.completion = isOpen ? Math.max(completion ?? 0, written) : (completion ?? written)
    if (target?.price?.rates.internal_reasoning !== undefined && usage.completion !== completion) {
      // What is not seen of an answer that comes whole is, for all that is known, the answer itself.
      const thought = Math.min(this.#delivered.thought.tokens(comesInPieces(this.#ex) ? unseen : 0), usage.completion)
      if (thought > 0) usage.internal_reasoning = Math.max(usage.internal_reasoning ?? 0, thought)
    }
    // A completion that is not split counts as images alone.
    const hasImages = this.#delivered.images > 0 && usage.completion !== completion
    if (hasImages) usage.image_output = (usage.image_output ?? 0) + ofImages
    return true
  }

  /** Cost of the usage so far at the target's price; null while the price is unknown. */
  get cost(): Cost | null {
    const { cached, failure, timings, isOwed, billedFailure, usage, estimated } = this.#ex
    if (cached || this.isFree || (failure && timings.firstToken === 0 && !isOwed && !billedFailure)) return noCost
    this.#cost ??= this.#costOf(usage, estimated)
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
