/** What the answer of an exchange has used so far, as its provider reports it or as an estimate, and what that costs. */

import { isPaidByTokens } from './counted.ts'
import { mayReason } from './effort.ts'
import { type Event, isContent } from './event.ts'
import type { Exchange } from './exchange.ts'
import { addPages, IMAGE_TOKENS, tokensOfImage } from './media.ts'
import { type Cost, costOf, noCost, type Requests } from './money.ts'
import { type Expected, plausible } from './plausible-usage.ts'
import { extrasOf, requestsOf } from './requests.ts'
import { Thought } from './thought.ts'
import { PARTS_AT_ONCE } from './translator.ts'
import { type Axis, estimateTokens, MOST_OUTPUT, mergeUsage, type Usage } from './usage.ts'

/** Tokens per second, at most, at which hidden thinking is estimated: an answer sent in one burst measures far more. */
const MAX_THINKING_SPEED = 2000

/** Of what a provider does, apart from reading tokens: a report above 0 says that it has been done. */
const done = ['output_images', 'request', 'web_search', 'ocr_page', 'ocr_page_annotated', 'input_audio_hour'] as const

const isEmpty = (event: Event): boolean =>
  (event.type === 'text' || event.type === 'refusal') && event.text.length === 0

/** Reports are merged into the `usage` of the exchange. */
export class AnswerUsage {
  readonly #ex: Exchange
  /** The provider charges nothing for the answer. */
  isFree = false
  /** Something has come that a client can see. */
  hasContent = false
  #cost: Cost | null | undefined
  /** Characters delivered since the last report, but those of reasoning. */
  #unreported = 0
  readonly #thought = new Thought()
  /** Completion tokens that a report named for what had been delivered; one before any content counts for nothing. */
  #reportedTokens = 0
  /** Characters that the provider's own tools have read since the last report of the prompt. */
  #read = 0
  #images = 0
  /** Of them, those since the last report. */
  #unreportedImages = 0
  /** Of an answer that is no text, and of what type it says it is. */
  #bytes = 0
  #contentType = ''
  #begun = false
  #billed: Partial<Usage> | undefined
  /** What a provider has counted of the answer so far, until it reports. */
  #progress: Partial<Usage> | undefined
  #known: (Pick<Exchange, 'target' | 'request'> & { readonly expected: Expected }) | undefined
  #requests: Requests | undefined
  /** Axes of reports that were not plausible. */
  readonly #dropped = new Set<Axis>()

  constructor(ex: Exchange) {
    this.#ex = ex
  }

  /** No allocation: there is a batch for every piece of every stream. */
  count(batch: readonly Event[]): void {
    let now = 0
    for (let at = 0; at < batch.length; at++) {
      const event = batch[at]!
      if (isContent(event)) {
        this.hasContent = true
        now ||= performance.now()
        if (event.type === 'reasoning' || event.type === 'native') this.#thought.goesOn()
        else if (!isEmpty(event)) this.#thought.ends(now, this.#ex.timings.sent)
      }
      switch (event.type) {
        case 'text':
        case 'refusal':
          this.#unreported += event.text.length
          break
        case 'reasoning':
          this.#thought.characters += event.text.length
          break
        case 'tool':
          this.#unreported += (event.args?.length ?? 0) + (event.name?.length ?? 0)
          break
        case 'usage':
          this.#reported(event)
          break
        case 'progress':
          this.#progress = plausible(event.usage, this.#expected)
          if (this.#progress.completion) this.#reset(this.#progress)
          break
        case 'image':
          this.#images++
          this.#unreportedImages++
          break
        case 'bytes':
          this.#bytes += event.bytes.length
          if (event.contentType !== undefined) this.#contentType = event.contentType
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

  #begin(): void {
    const { usage } = this.#ex
    // Another one before any content: the answer has begun afresh (C30).
    if (this.#begun && !this.hasContent) {
      for (const axis in usage) delete usage[axis as Axis]
      this.#dropped.clear()
      this.#progress = undefined
      this.#reportedTokens = 0
    }
    this.#begun = true
  }

  /** What is not plausible of a report is estimated: at least as much as was held for it. */
  #reported({ usage: report, billed, estimated, read, requests }: Extract<Event, { type: 'usage' }>): void {
    const sum = this.#ex.usage
    const usage = plausible(report, this.#expected)
    const { completion: before = 0 } = sum
    mergeUsage(sum, usage)
    if (usage !== report) {
      for (const axis in report) if (usage[axis as Axis] === undefined) this.#dropped.add(axis as Axis)
    }
    this.#billed = billed && plausible(billed, this.#expected)
    this.#requests = usage === report ? requests : undefined
    if (estimated || usage !== report) this.#ex.estimated = true
    if (read !== undefined) this.#read += read
    else if (usage.prompt !== undefined) this.#read = 0
    const isLast = this.#progress !== undefined && usage.completion !== undefined
    if (isLast) this.#progress = undefined
    // Some repeat an early count with other events until the last one: it says nothing of what came since.
    const hasRisen = (usage.completion ?? 0) > before
    const delivered = this.#unreported + this.#thought.characters + this.#unreportedImages
    if (isLast || (hasRisen && (delivered > 0 || usage.internal_reasoning))) this.#reset(sum)
    this.#reprice()
  }

  /** A report names all that has been delivered, and thought. */
  #reset({ completion = 0, internal_reasoning: thought = 0 }: Usage): void {
    this.#reportedTokens = completion
    this.#unreported = 0
    this.#unreportedImages = 0
    this.#thought.reported(thought, performance.now())
  }

  /** Made once for each target: a stream may report with each of its events. */
  readonly #expected = (): Expected => {
    const { target, request } = this.#ex
    const known = this.#known
    if (known && known.target === target && known.request === request) return known.expected
    const expected = this.#expectedNow()
    this.#known = { target, request, expected }
    return expected
  }

  #expectedNow(): Expected {
    const { target, request, operation, native } = this.#ex
    const usage = this.#ex.promptUsage
    addPages(usage, native?.pages)
    if (request && target) mergeUsage(usage, extrasOf(this.#ex))
    const output = request && operation.output?.(request)
    const { contextLength: longest = 0, maxOutput = longest || MOST_OUTPUT } = target?.mapping ?? {}
    // What has no limit may go on to the end of the context, whatever is known of the model's answers.
    const isBounded = this.#ex.answerBounds?.limit !== Number.POSITIVE_INFINITY
    const most = isBounded ? maxOutput : Math.max(maxOutput, longest || MOST_OUTPUT)
    const loops = (native?.pages ?? 0) > 0 || native?.loops || (request && operation.loops?.(request))
    return { usage, longest, written: output ? most * output.choices : 0, loops: loops === true }
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
    return Math.max(this.#ex.usage.completion ?? 0, this.#written(this.#unseen) + this.#imageTokens)
  }

  /** Without images. A model that shows its reasoning has thought that, or what it was silent for: the larger of both. */
  #written(unseen: number): number {
    const shown = estimateTokens(this.#unreported + this.#thought.characters)
    return this.#reportedTokens + Math.max(shown, estimateTokens(this.#unreported) + unseen)
  }

  /** Tokens of the images since the last report. */
  get #imageTokens(): number {
    return this.#unreportedImages * tokensOfImage(this.#ex.target?.price)
  }

  /** Tokens that a model may have thought since the last report, by its usual speed (see `Thought`). */
  get #unseen(): number {
    const { target, operation, timings, usualSpeed } = this.#ex
    if (!target || !operation.output || timings.sent === 0) return 0
    // What comes whole is written out of sight, too.
    if (this.#comesInPieces && !mayReason(this.#ex.chat, target.mapping)) return 0
    const seconds = this.#thought.time(performance.now(), timings.sent) / 1000
    const tokens = Math.floor(seconds * Math.min(usualSpeed(), MAX_THINKING_SPEED) * this.#choicesAtOnce)
    const seen = this.#reportedTokens + estimateTokens(this.#unreported) + this.#imageTokens
    return Math.max(0, Math.min(tokens, this.#most - seen))
  }

  /** Tokens of all choices together that the provider may write, by the limit that it was sent and by its model's own. */
  get #most(): number {
    const { operation, request, target, answerBounds, outputLimit } = this.#ex
    const { choices, limit: asked = Number.POSITIVE_INFINITY } = operation.output!(request!)
    const sent = answerBounds?.limit ?? outputLimit?.tokens
    if (sent === Number.POSITIVE_INFINITY) return sent
    const { maxOutput, contextLength } = target!.mapping
    return choices * Math.min(sent ?? asked, maxOutput ?? contextLength ?? MOST_OUTPUT)
  }

  get #comesInPieces(): boolean {
    const { streaming, target, outboundParts, answerBounds } = this.#ex
    const isWhole = outboundParts !== undefined || answerBounds?.whole
    return streaming && !isWhole && target!.mapping.supports.has('streaming')
  }

  get #choicesAtOnce(): number {
    const { operation, request, outboundParts } = this.#ex
    const { choices } = operation.output!(request!)
    const parts = outboundParts?.length ?? 1
    return (choices * Math.min(parts, PARTS_AT_ONCE)) / parts
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
    const { usage: held } = this.#expected()
    for (const axis of this.#dropped) {
      if (held[axis] !== undefined) usage[axis] = Math.max(usage[axis] ?? 0, held[axis])
    }
    return true
  }

  #fill(usage: Usage, cut: boolean): boolean {
    const { isOwed, isCut, operation, target } = this.#ex
    const progress = usage.completion === undefined ? this.#progress : undefined
    if (progress) mergeUsage(usage, progress)
    const isSilent = usage.completion === undefined && !done.some(axis => (usage[axis] ?? 0) > 0)
    if (this.#images > 0) usage.output_images ??= this.#images
    /** Of what the answer has cost. */
    let assumed: 'nothing' | 'some' | 'all' = 'nothing'
    if (!operation.output) {
      const isCounted = usage.completion !== undefined || this.#bytes === 0
      const measured = isCounted
        ? undefined
        : operation.measured?.(this.#bytes, this.#contentType, target!.mapping.model)
      if (measured) {
        mergeUsage(usage, measured)
        usage.prompt ??= this.#ex.promptUsage.prompt!
        return true
      }
      // The client left before usage was reported: charge what the request may have cost.
      if (isOwed && isSilent) {
        mergeUsage(usage, extrasOf(this.#ex))
        assumed = 'all'
      }
      usage.completion ??= 0
      // Nothing is made up of what was not reported where something else has the price.
      if (target?.price && !isPaidByTokens(usage, target.price)) {
        usage.prompt ??= 0
        return assumed === 'all'
      }
    } else if (isOwed && cut && !isCut && this.#assume(usage)) {
      assumed = this.#isDrawn ? 'all' : 'some'
    }
    const { prompt, completion } = usage
    const unseen = isOwed && assumed !== 'all' ? this.#unseen : 0
    // What is assumed has them already.
    const ofImages = assumed === 'nothing' ? this.#imageTokens : 0
    const written = this.#written(unseen) + ofImages
    const read = cut || this.#dropped.has('prompt') ? estimateTokens(this.#read) : 0
    const isOpen = cut || this.#dropped.has('completion')
    const complete = prompt !== undefined && completion !== undefined && !(isOpen && written > completion) && read === 0
    const sent = complete && target?.price?.rates.image === undefined ? usage : this.#ex.promptUsage
    if (sent.image !== undefined) usage.image ??= sent.image
    if (complete) return assumed !== 'nothing' || progress !== undefined
    if (prompt === undefined && sent.input_audio !== undefined) usage.input_audio ??= sent.input_audio
    usage.prompt = (prompt ?? sent.prompt!) + read
    usage.completion = isOpen ? Math.max(completion ?? 0, written) : (completion ?? written)
    if (target?.price?.rates.internal_reasoning !== undefined && usage.completion !== completion) {
      // What is not seen of an answer that comes whole is, for all that is known, the answer itself.
      const thought = Math.min(this.#thought.tokens(this.#comesInPieces ? unseen : 0), usage.completion)
      if (thought > 0) usage.internal_reasoning = Math.max(usage.internal_reasoning ?? 0, thought)
    }
    // A completion that is not split counts as images alone.
    const hasImages = this.#unreportedImages > 0 && usage.completion !== completion
    if (hasImages) usage.image_output = (usage.image_output ?? 0) + ofImages
    return true
  }

  /**
   * Adds what a chat answer that its client left may have cost besides text, if anything: images that were not seen of
   * a model that makes these alone, and an image, or a search, before any text.
   */
  #assume(usage: Usage): boolean {
    const { output_images: images = 0, web_search: searches = 0, ...tokens } = extrasOf(this.#ex)
    const isSilent = !this.hasContent
    const searched = searches > 0 && isSilent && usage.web_search === undefined
    if (searched) usage.web_search = 1
    const isMissing = images > (usage.output_images ?? 0) && !(usage.image_output! > 0)
    const hasImages = isMissing && (isSilent || this.#isDrawn)
    if (hasImages && this.#isDrawn) mergeUsage(usage, { ...tokens, output_images: images })
    else if (hasImages) {
      usage.output_images = images
      usage.image_output = images * IMAGE_TOKENS
      usage.completion = usage.image_output + (usage.completion ?? this.#written(0))
    }
    return searched || hasImages
  }

  /** The answer is images alone. */
  get #isDrawn(): boolean {
    const { output } = this.#ex.target!.mapping.model
    return output.includes('image') && !output.includes('text')
  }

  /** Cost of the usage so far at the target's price; null while the price is unknown. */
  get cost(): Cost | null {
    const { cached, failure, timings, isOwed, isPartPaid, usage, estimated } = this.#ex
    if (cached || this.isFree || (failure && timings.firstToken === 0 && !isOwed && !isPartPaid)) return noCost
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
