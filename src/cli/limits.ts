/** Spending limits of keys and members: their options and their display. */

interface ShownLimit {
  readonly period: string
  readonly limit: string
  readonly spent: string
}

/** Options of a limit; `amount` describes the first. */
export const limitTexts = (amount = 'amount in USD') => ({
  limit: `--limit <usd>: spending limit: ${amount}`,
  limitPeriod: '--limit-period <period>: period of the limit (default: total)',
  limitZone: '--limit-zone <zone>: IANA time zone in which periods begin (default: UTC)',
})

/** `1.25 of 5 a month, 20 of 100 in all`. */
export const showLimits = (limits: readonly ShownLimit[]): string =>
  limits
    .map(({ period, limit, spent }) => `${spent} of ${limit} ${period === 'total' ? 'in all' : `a ${period}`}`)
    .join(', ')
