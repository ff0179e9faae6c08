/** Facts of an alert: members of its callback, its sentence for people, and fields of its log line. */
import { formatMoney, parseMoney } from '../core/money.ts'
import type { AlertCaller, LimitStanding, RateStanding } from '../limits/alerts.ts'

/** Members of `data` in the generic form (docs/alerts.md). */
export interface Told {
  readonly on: 'limit' | 'credits'
  /** `spend`, or the kind of a rate limit; absent for credits. */
  readonly limit_kind?: string
  readonly period: string
  /** Kind of whose it is: `key`, `member`, `project`, `session`, `provider-key`, `end-user`, `org`, or what a rule counts by. */
  readonly of: string
  readonly whose: { readonly id: string; readonly name: string }
  readonly organization: { readonly id: string; readonly name: string }
  readonly project: string
  readonly key: { readonly id: string; readonly name: string }
  readonly unit: string
  readonly used?: string
  readonly limit?: string
  readonly fraction?: number
  readonly balance?: string
  readonly below?: string
  readonly period_start: string | null
  readonly period_end: string | null
  readonly time: string
}

const iso = (at: number | undefined): string | null => (at === undefined ? null : new Date(at).toISOString())

const callerOf = ({ orgId, orgName, projectId, keyId, keyName }: AlertCaller) => ({
  organization: { id: orgId, name: orgName },
  project: projectId,
  key: { id: keyId, name: keyName },
})

/** Start and end of a period, and when it was looked at. */
export interface Times {
  readonly start: number | undefined
  readonly end: number | undefined
  readonly now: number
}
const timesOf = ({ start, end, now }: Times) => ({
  period_start: iso(start),
  period_end: iso(end),
  time: new Date(now).toISOString(),
})

function whoseOf({ id, of }: LimitStanding, caller: AlertCaller): Told['whose'] {
  const { keyId, keyName, projectId, member, session, endUser } = caller
  if (of === 'key') return { id: keyId, name: keyName }
  if (of === 'project') return { id: projectId, name: projectId }
  const known = of === 'member' ? member?.id : of === 'session' ? session?.id : of === 'end-user' ? endUser : undefined
  return { id: known ?? id, name: known ?? id }
}

/** Tells of a money limit. */
export const spendTold = (standing: LimitStanding, caller: AlertCaller, fraction: number, times: Times): Told => ({
  on: 'limit',
  limit_kind: 'spend',
  period: standing.period,
  of: standing.of,
  whose: whoseOf(standing, caller),
  ...callerOf(caller),
  unit: 'USD',
  used: formatMoney(standing.spent),
  limit: formatMoney(standing.limit),
  fraction,
  ...timesOf(times),
})

/** Tells of a rate limit. */
export const rateTold = (rate: RateStanding, caller: AlertCaller, fraction: number, times: Times): Told => ({
  on: 'limit',
  limit_kind: rate.kind,
  period: rate.span,
  of: rate.of,
  whose: { id: rate.whose, name: rate.whose },
  ...callerOf(caller),
  unit: rate.unit,
  used: String(rate.used),
  limit: String(rate.limit),
  fraction,
  ...timesOf(times),
})

/** Tells of credits. */
export const creditsTold = (balance: bigint, below: bigint, caller: AlertCaller, now: number): Told => ({
  on: 'credits',
  period: 'total',
  of: 'org',
  whose: { id: caller.orgId, name: caller.orgName },
  ...callerOf(caller),
  unit: 'USD',
  balance: formatMoney(balance),
  below: formatMoney(below),
  ...timesOf({ start: undefined, end: undefined, now }),
})

/** Cents, and what is finer where there is no full cent. */
function money(text: string): string {
  const cents = parseMoney(text.replace('-', '')) % 10_000_000n
  const [whole = '0', places = ''] = text.split('.')
  return cents === 0n ? `${whole}.${places.padEnd(2, '0').slice(0, 2)}` : text
}

const kinds: Readonly<Record<string, string>> = {
  'provider-key': 'provider key',
  'end-user': 'end user',
}
const spans: Readonly<Record<string, string>> = {
  total: 'spending limit',
  hour: 'hourly spending limit',
  day: 'daily spending limit',
  week: 'weekly spending limit',
  month: 'monthly spending limit',
}

/** One plain sentence for people, with when a new period begins. */
export function sentenceOf(told: Told): string {
  const { organization, of, whose, unit, period_end: end } = told
  if (told.on === 'credits') {
    return `The credits of organization "${organization.name}" are at ${money(told.balance!)} USD, which is below ${money(told.below!)} USD.`
  }
  const percent = Math.round(told.fraction! * 10_000) / 100
  const isMoney = told.limit_kind === 'spend'
  const what = isMoney ? spans[told.period]! : `limit of ${unit} per ${told.period} (${told.limit_kind})`
  const who = isMoney ? `${kinds[of] ?? of} "${whose.name}"` : whose.name
  const used = isMoney ? `${money(told.used!)} of ${money(told.limit!)} USD` : `${told.used} of ${told.limit} ${unit}`
  const again = isMoney && end !== null ? ` A new period begins at ${end}.` : ''
  return `The ${what} of ${who} in organization "${organization.name}" has reached ${percent} %: ${used} are used.${again}`
}
