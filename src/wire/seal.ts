/**
 * Binds a provider's opaque value (a thinking signature, an encrypted block) to the provider that made it. What leaves
 * the gateway is sealed with an HMAC beside, and comes here only if that holds (`seals.ts`).
 */
import type { Target } from '../core/translator.ts'

/** `value` as a client may hold it: `<provider id>:<value>`. */
export const seal = (target: Target, value: string): string => `${target.provider.id}:${value}`

/** The value again, byte for byte, if `target` is of the provider that made it; undefined for any other. */
export function unseal(target: Target, sealed: string | null | undefined): string | undefined {
  const prefix = `${target.provider.id}:`
  return sealed?.startsWith(prefix) ? sealed.slice(prefix.length) : undefined
}
