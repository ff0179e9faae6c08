/** Who pays for what a client's own body makes a provider do. */
import type { Target } from '../../src/plugin.ts'

/** Whether the provider is paid by the caller, and not by the operator. */
export const paysItself = ({ credential, provider }: Target): boolean =>
  credential?.source === 'byok' || provider.owner !== undefined

/** `entry` is a name, or the beginning of some and `*`. */
export const fits = (entry: string, name: string): boolean =>
  entry.endsWith('*') ? name.startsWith(entry.slice(0, -1)) : name === entry

export const saysAnything = (value: unknown): boolean => value != null && !(Array.isArray(value) && value.length === 0)
