/** A client's own body: fields that are the gateway's, and whether the operator pays for the rest. */
import { errors, type Json, type Target } from '../../src/plugin.ts'

/** Whether the caller pays the provider, with its own key. */
export const paysItself = ({ credential, provider }: Target): boolean =>
  credential?.source === 'byok' || provider.owner !== undefined

/** `entry` is a name, or a prefix with `*`. */
export const fits = (entry: string, name: string): boolean =>
  entry.endsWith('*') ? name.startsWith(entry.slice(0, -1)) : name === entry

/** False for null, undefined and an empty list, which no provider charges for. */
export const isPresent = (value: unknown): boolean => value != null && !(Array.isArray(value) && value.length === 0)

/**
 * Drops fields beside `free` and those of the manifest that have no effect. Throws a 400 that names one with an effect; a
 * target with the caller's own key may still accept it.
 */
export function dropUnpaid(sent: Json, free: ReadonlySet<string>, { provider: { nativeFields = [] } }: Target): void {
  for (const [name, value] of Object.entries(sent)) {
    if (free.has(name) || nativeFields.some(entry => fits(entry, name))) continue
    if (isPresent(value)) throw errors.ownKeyOnly(name)
    delete sent[name]
  }
}

/** Chat request fields that endpoints tolerate in bodies of their provider's wire, and that the provider would refuse. */
export const GATEWAY_ONLY: readonly string[] = [
  'effort',
  'image_config',
  'onboarding',
  'plugins',
  'reasoning_effort',
  'sensitive_word_check',
  'verbosity',
  'web_search',
]
