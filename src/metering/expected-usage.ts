/** What the usage of an exchange can come to, with which reports are compared. */
import type { Exchange } from '../core/exchange.ts'
import { MOST_OUTPUT, mergeUsage } from '../core/usage.ts'
import type { Expected } from './plausible-usage.ts'
import { extrasOf } from './requests.ts'
import { wholePrompt } from './whole-prompt.ts'

/** Made once for each target: a stream may report with each of its events. */
export class ExpectedUsage {
  readonly #ex: Exchange
  #known: (Pick<Exchange, 'target' | 'request'> & { readonly expected: Expected }) | undefined

  constructor(ex: Exchange) {
    this.#ex = ex
  }

  readonly get = (): Expected => {
    const { target, request } = this.#ex
    const known = this.#known
    if (known && known.target === target && known.request === request) return known.expected
    const expected = expectedOf(this.#ex)
    this.#known = { target, request, expected }
    return expected
  }
}

function expectedOf(ex: Exchange): Expected {
  const { target, request, operation, native } = ex
  const sent = ex.outbound.output
  const usage = wholePrompt(ex)
  if (request && target) mergeUsage(usage, extrasOf(ex))
  const output = request && operation.output?.(request)
  const { contextLength: longest = 0, maxOutput = longest || MOST_OUTPUT } = target?.mapping ?? {}
  // What has no limit may go on to the end of the context, whatever is known of the model's answers.
  const isBounded = sent?.limit !== Number.POSITIVE_INFINITY
  const most = isBounded ? maxOutput : Math.max(maxOutput, longest || MOST_OUTPUT)
  const loops = (native?.pages ?? 0) > 0 || native?.loops || (request && operation.loops?.(request))
  return {
    usage,
    longest,
    written: output ? most * output.choices * (sent?.limits ?? 1) : isBounded ? (sent?.limit ?? 0) : 0,
    loops: loops === true,
  }
}
