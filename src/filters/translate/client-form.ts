/** Which targets get the client's own body (docs/contract.md#fetched-addresses). */
import { type NativeRequest, nativeFormOf, type Target, type Translator } from '../../core/translator.ts'

/**
 * `target`; without the client's form of its wire where the body would have a provider fetch what it is to get as data
 * alone. Such a target gets the canonical request, whose media is fetched here.
 */
export function forBody(target: Target, given: NativeRequest | undefined): Target {
  const { provider, translator } = target
  if (!given || !provider.inlineMedia) return target
  const form = nativeFormOf(translator, given)
  if (!form || form.refers?.(given.body) === false) return target
  return Object.assign({}, target, { translator: withoutForm(translator) })
}

const bridged = new WeakMap<Translator, Translator>()

/** The same object on every call. */
function withoutForm(translator: Translator): Translator {
  let known = bridged.get(translator)
  if (!known) {
    const { native: _, ...rest } = translator
    known = Object.freeze(rest)
    bridged.set(translator, known)
  }
  return known
}
