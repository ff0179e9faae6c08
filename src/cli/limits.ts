/** Spending limits of keys and members: their options and their display. */
import { type Command, Option } from 'commander'
import { periods } from '../lib/period.ts'

interface ShownLimit {
  readonly period: string
  readonly limit: string
  readonly spent: string
}

/** Adds `--limit`, `--limit-period` and `--limit-zone`; `amount` describes the first. */
export const addLimitOptions = (command: Command, amount = 'amount in USD'): Command =>
  command
    .option('--limit <usd>', `spending limit: ${amount}`)
    .addOption(new Option('--limit-period <period>', 'period of the limit (default: total)').choices([...periods]))
    .option('--limit-zone <zone>', 'IANA time zone in which periods begin (default: UTC)')

/** `1.25 of 5 a month, 20 of 100 in all`. */
export const showLimits = (limits: readonly ShownLimit[]): string =>
  limits
    .map(({ period, limit, spent }) => `${spent} of ${limit} ${period === 'total' ? 'in all' : `a ${period}`}`)
    .join(', ')
