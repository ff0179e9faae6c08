/** The requests to its target that stand for an exchange: how many there are, and what they cause beside their prompt. */
import type { Exchange } from './exchange.ts'
import type { FanOut } from './translator.ts'
import type { Usage } from './usage.ts'

/** What several requests to its target stand for an exchange by; undefined where it is one. */
function fanOutOf({ request, target, operation }: Exchange): FanOut | undefined {
  if (!request || !target) return undefined
  const { fanOut: own } = operation
  if (own && own.count(request, target) > 1) return own
  return target.translator.fanOut
}

/** How many requests to its target stand for an exchange. */
export const requestsOf = (ex: Exchange): number => fanOutOf(ex)?.count(ex.request!, ex.target!) ?? 1

/** How often the prompt of an exchange is sent to its target in the place of once. */
export const repeatsOf = (ex: Exchange): number => (fanOutOf(ex)?.repeats ? requestsOf(ex) : 1)

/** What the requests of an exchange cause beside their prompt, which has a target. */
export function extrasOf(ex: Exchange): Usage {
  const { request, target, operation } = ex
  const extras: Usage = { ...operation.extras?.(request!, target!.mapping) }
  if (extras.image_input) extras.image_input *= repeatsOf(ex)
  return extras
}
