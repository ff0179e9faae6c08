/** Estimates the prompt of an exchange before its provider reports it, as its target counts. */

import type { Exchange } from '../core/exchange.ts'
import { imageTokensOf, morePageTokens } from '../core/media.ts'
import type { PromptMeter } from '../core/meter.ts'
import { ratesFor } from '../core/money.ts'
import { isCountedAhead } from '../core/offer.ts'
import { nativeFormOf, type Target } from '../core/translator.ts'
import { estimateTokens, type Usage } from '../core/usage.ts'
import { FILE_TOKENS } from '../media/tokens.ts'
import { promptAudioTokens } from './audio.ts'
import { repeatsOf, requestsOf } from './requests.ts'

/** Measures texts once; what they come to may change with the target. */
export class PromptEstimate implements PromptMeter {
  readonly #ex: Exchange
  /** The request that was measured: a virtual model may send another one. */
  #measured: Exchange['request'] = undefined
  #size: number | undefined = undefined
  #reasoningSize: number | undefined = undefined
  #sealed: { readonly provider: string; readonly tokens: number } | undefined = undefined

  constructor(ex: Exchange) {
    this.#ex = ex
  }

  /** Tokens of the texts by the target's tokenizer; 0 until the body is read. */
  get tokens(): number {
    const { request, operation, target } = this.#ex
    if (!request) return 0
    const byCharacters = isCountedAhead(target)
    if (byCharacters && operation.characters) return operation.characters(request)
    if (this.#measured !== request) {
      this.#measured = request
      this.#size = undefined
      this.#reasoningSize = undefined
      this.#sealed = undefined
    }
    this.#size ??= operation.promptSize(request)
    let size = this.#size
    if (target?.provider.reasoningReplay) {
      this.#reasoningSize ??= operation.reasoningSize?.(request) ?? 0
      size += this.#reasoningSize
    }
    return byCharacters ? size : estimateTokens(size)
  }

  /**
   * Tokens that only the provider reads: of its earlier answers, and of a body of its wire. They count as far as the
   * model's context has room behind `tokens`. They are kept apart, because a client may send more than is read, which
   * does not make a request too long.
   */
  #ownTokens(tokens: number): number {
    const { target } = this.#ex
    const { native } = this.#ex.input
    if (!target) return 0
    const isNative = native?.size !== undefined && nativeFormOf(target.translator, native) !== undefined
    const said = isNative ? estimateTokens(native.size) : 0
    const { contextLength = Number.POSITIVE_INFINITY } = target.mapping
    return Math.min(this.#sealedTokens(target) + said, Math.max(0, contextLength - tokens))
  }

  #sealedTokens({ provider: { id } }: Target): number {
    const { request, operation } = this.#ex
    if (!request || !operation.sealedSize) return 0
    if (this.#sealed?.provider !== id) {
      this.#sealed = { provider: id, tokens: estimateTokens(operation.sealedSize(request, id)) }
    }
    return this.#sealed!.tokens
  }

  /** With the media, what the target alone reads, and what of all may be written to its cache. */
  get usage(): Usage {
    const usage = this.#read()
    addCacheWrite(this.#ex, usage)
    return usage
  }

  #read(): Usage {
    const { target, request, operation } = this.#ex
    const { tokens } = this
    const prompt = tokens + this.#ownTokens(tokens)
    const media = request && operation.media?.(request)
    const times = repeatsOf(this.#ex)
    if (!media) return { prompt: prompt * times }
    const { images, audioSeconds, fileTokens, pages = 0 } = media
    const formula = target?.mapping.model.imageTokens
    const audioTokens = promptAudioTokens(audioSeconds, target?.mapping.model)
    const byImage = target?.price?.rates.image !== undefined
    const imageTokens = byImage ? 0 : imageTokensOf(images, formula)
    const all = prompt + audioTokens + fileTokens + imageTokens + morePageTokens(pages, formula)
    const longest = target?.mapping.contextLength ?? all
    const each = Math.min(all, longest * (operation.prompts?.(request) ?? 1))
    const usage: Usage = { prompt: each * times }
    if (byImage) usage.image = images.length * times
    if (audioTokens > 0) usage.input_audio = Math.min(audioTokens, each) * times
    return usage
  }
}

/** Tokens of the shortest prefix that is cached, where a mapping names none (docs/contributing/wire-sources.md#anthropic). */
export const MIN_CACHEABLE_TOKENS = 1024

/**
 * Counts the whole prompt of `usage` as written to its provider's cache where that costs more than to read it: if it is
 * marked as it was sent, or if its provider caches by itself and it is long enough. What is held has it, and so has the
 * estimate of what no provider reports.
 */
export function addCacheWrite(ex: Exchange, usage: Usage): void {
  const { target, outbound } = ex
  const { prompt = 0 } = usage
  if (!target?.price || prompt === 0) return
  const { translator, mapping, price } = target
  const isLong = prompt / requestsOf(ex) >= (mapping.minCacheableTokens ?? MIN_CACHEABLE_TOKENS)
  const mark = translator.cacheMarks ? outbound.cacheMark : isLong && '5m'
  if (!mark) return
  const {
    prompt: plain = 0n,
    input_cache_write: write = 0n,
    input_cache_write_1h: longer = write,
  } = ratesFor(price, prompt / repeatsOf(ex))
  if ((mark === '1h' ? longer : write) <= plain) return
  usage[mark === '1h' ? 'input_cache_write_1h' : 'input_cache_write'] = prompt
}

/** The most that the prompt of an exchange is estimated at, with the pages that tools of its provider may read. */
export function wholePrompt(ex: Exchange): Usage {
  const usage = ex.prompt.usage
  const pages = ex.input.native?.pages ?? 0
  if (pages === 0) return usage
  usage.prompt = (usage.prompt ?? 0) + pages * FILE_TOKENS
  addCacheWrite(ex, usage)
  return usage
}
