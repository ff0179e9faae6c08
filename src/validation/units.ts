/** Durations and sizes in configuration files: a number with a unit, never a bare number. */

/** The factors of each unit: to milliseconds, and to bytes. */
export const units = {
  duration: { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 },
  size: { B: 1, KB: 1e3, MB: 1e6, GB: 1e9, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 },
} as const satisfies Record<string, Record<string, number>>
/** Units of a value. */
export type Unit = keyof typeof units

/** Names the expected value in an error. */
export const examples: Record<Unit, string> = {
  duration: 'a duration with a unit, such as "30s"',
  size: 'a size with a unit, such as "32MiB"',
}

/** `"1.5s"` → 1500 (milliseconds), `"64KiB"` → 65536 (bytes); undefined for an unknown unit. */
export function parseUnit(unit: Unit, text: unknown): number | undefined {
  const match = typeof text === 'string' ? /^(\d{1,12}(?:\.\d{1,6})?) ?([A-Za-z]{1,3})$/.exec(text) : null
  const factors: Readonly<Record<string, number>> = units[unit]
  const factor = match && Object.hasOwn(factors, match[2]!) ? factors[match[2]!] : undefined
  if (!match || factor === undefined) return undefined
  const value = Math.round(Number(match[1]) * factor)
  return Number.isSafeInteger(value) ? value : undefined
}
