/** Figures and times as people read them. */
import { type Html, html } from './html.ts'

const counts = new Intl.NumberFormat('en')

/** 1234567 → `1,234,567`. */
export const count = (value: number): string => counts.format(value)

const MS_OF_SECOND = 1000
const MS_OF_MINUTE = 60_000

/** 1234 → `1.23 s`; null → `–`. */
export function milliseconds(value: number | null): string {
  if (value === null) return '–'
  if (value < MS_OF_SECOND) return `${Math.round(value)} ms`
  if (value < MS_OF_MINUTE) return `${(value / MS_OF_SECOND).toFixed(2)} s`
  return `${Math.floor(value / MS_OF_MINUTE)} min ${Math.round((value % MS_OF_MINUTE) / MS_OF_SECOND)} s`
}

const dollars = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD' })
const fractions = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', maximumSignificantDigits: 4 })

/** Rounds an amount of USD to four digits that are not zero: `-0.00001234` → `-$0.00001234`; null → `–`. */
export function usd(amount: string | null): string {
  if (amount === null) return '–'
  const value = Number(amount)
  return value === 0 ? '$0' : (Math.abs(value) >= 1 ? dollars : fractions).format(value)
}

/** 3 of 12 → `25 %`. */
export const percent = (part: number, whole: number): string =>
  whole === 0 ? '–' : `${((100 * part) / whole).toLocaleString('en', { maximumFractionDigits: 1 })} %`

/** An instant in UTC. `at`: ISO 8601, or Unix milliseconds. */
export function time(at: string | number): Html {
  const iso = new Date(at).toISOString()
  return html`<time datetime="${iso}">${iso.slice(0, 19).replace('T', ' ')}</time>`
}

/** The value that `share` of the sorted values do not exceed; null for none. */
export const quantile = (sorted: readonly number[], share: number): number | null =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? null
