/** Schemas and conversions for arguments of several commands. */

import { formatMoney, type Money, parseMoney } from '../core/money.ts'
import type { LimitChange, LimitInput, LimitRecord, NameStore, Page } from '../core/ports.ts'
import { s } from '../core/schema.ts'
import { errors } from '../lib/error.ts'
import { periods } from '../lib/period.ts'
import {
  onLimitOf,
  onLimitText,
  type RateChange,
  type RateKind,
  type RateLimits,
  rateKinds,
  windowKinds,
} from '../limits/kinds.ts'
import { option, shell } from './command.ts'

/** A new name; the store checks that it is free. */
export const name = shell(
  '--name <name>: its name',
  s.string({ minLength: 1, maxLength: 200, description: 'a name of 1 to 200 characters' }),
)
/** The store resolves it, as it does a project and a member. */
export const organization = shell(
  '--org <org>: id or name of the organization',
  s.string({ minLength: 1, description: 'the id or the name of an organization' }),
)
/** Restricts a list to an organization. */
export const ofOrganization = option('--org <org>: only those of this organization', organization)
/** A name that several projects have is a 404 that lists their ids. */
export const project = shell(
  '--project <project>: id or name of the project',
  s.string({ minLength: 1, description: 'the id or the name of a project' }),
)
/** Restricts a list to a project. */
export const ofProject = option('--project <project>: only those of this project', project)
/** A member of the organization that the command names. */
export const member = shell(
  '<member>: address or id of the member',
  s.string({ minLength: 1, description: 'the address or the id of a member' }),
)
/** Ids of what a command is restricted to. Rejects for an unknown name: an empty answer would look like no records. */
export async function scopeOf(
  given: { readonly [K in 'organization' | 'project' | 'key']?: string | undefined },
  names: NameStore,
): Promise<{ readonly [K in 'orgId' | 'projectId' | 'keyId']?: string }> {
  const { organization, project, key } = given
  return {
    ...(organization !== undefined && { orgId: await names.organization(organization) }),
    ...(project !== undefined && { projectId: await names.project(project) }),
    ...(key !== undefined && { keyId: await names.key(key) }),
  }
}
/** The id of an API key of any status. */
export const keyId = shell(
  '--key <id>: id of the key',
  s.string({ minLength: 1, description: 'the id of a key, as keys.list shows it' }),
)
/** Not checked against the catalogue here. */
export const provider = shell(
  '--provider <id>: id of the provider',
  s.string({ minLength: 1, maxLength: 64, description: 'the id of a provider' }),
)
/** Names of models or providers; unknown ones are reported, not refused. */
export const names = s.array(s.string({ minLength: 1, maxLength: 256 }), { description: 'a list of names' })
/** The period of a recurring limit. */
const period = s.enum(...periods)
/** Where the periods of a limit begin. */
const zone = s.string({ minLength: 1, maxLength: 64, description: 'an IANA time zone such as "Europe/Berlin"' })

const AMOUNT = '\\d{1,9}(\\.\\d{1,9})?'
const AMOUNT_LIMIT = 'at most 999999999.999999999'
/** USD as a decimal string, zero included; `parseMoney` reads it. */
export const amount = s.string({
  pattern: `^${AMOUNT}$`,
  description: `an amount of USD such as "12.50", ${AMOUNT_LIMIT}`,
})
/** An amount, or `none`, which removes a limit. */
const amountOrNone = s.string({
  pattern: `^(none|${AMOUNT})$`,
  description: `an amount of USD such as "12.50", ${AMOUNT_LIMIT}, or "none"`,
})

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

/** `"30d"` → milliseconds. */
export function durationOf(text: string): number {
  return Number(text.slice(0, -1)) * UNIT_MS[text.at(-1) as keyof typeof UNIT_MS]
}
/** A time that `durationOf` reads, in minutes or more. */
export const lifetime = s.string({ pattern: '^[1-9]\\d{0,4}[mhdw]$', description: 'a time such as 12h, 30d or 52w' })
/** A time that `durationOf` reads, in seconds or more. */
export const cacheTtl = s.string({ pattern: '^[1-9]\\d{0,7}[smhd]$', description: 'a time such as 60s, 10m or 12h' })
/** A time that `durationOf` reads, in hours or days; or `off`. */
export const responsesTime = s.string({
  pattern: '^(off|[1-9]\\d{0,3}[hd])$',
  description: '"off", or a time such as 12h or 30d',
})

/** An amount above zero. Throws a GatewayError. */
export function paid(text: string): Money {
  const money = parseMoney(text)
  if (money > 0n) return money
  throw errors.invalidParameters('Argument "amount" must be more than zero.', 'amount')
}

/**
 * Lists are answered in parts, so that a long one does not block requests: `after` is the id of the last record
 * received.
 */
const MAX_RECORDS = 500
/** Arguments of lists by id; `pageOf` reads them. */
export const pageArguments = {
  after: s.optional(s.string({ minLength: 1, description: 'the id of a record' })),
  limit: s.optional(s.integer({ minimum: 1, maximum: MAX_RECORDS, description: `a count from 1 to ${MAX_RECORDS}` })),
}
/** At most 500 records, also where no limit is given. */
export const pageOf = ({ after, limit = MAX_RECORDS }: Page): Page => ({ after, limit })
/** Arguments of lists without ids. */
export const partArguments = {
  limit: pageArguments.limit,
  offset: s.optional(s.integer({ minimum: 0, description: 'the number of entries to skip' })),
}
/** `[limit, offset]`: at most 500 entries, from the first. */
export const partOf = ({
  limit = MAX_RECORDS,
  offset = 0,
}: {
  limit?: number | undefined
  offset?: number | undefined
}) => [limit, offset] as const

interface LimitArguments {
  limit?: string | undefined
  limitPeriod?: (typeof periods)[number] | undefined
  limitZone?: string | undefined
  onLimit?: string | undefined
}
const onLimit = s.string({
  pattern: '^(refuse|notify|use:.{1,256})$',
  description: '"refuse", "notify" or "use:<model>"',
})
/** Arguments of a new limit. */
export const limitArguments = {
  limit: option('--limit <usd>: spending limit: amount in USD', amount),
  limitPeriod: option('--limit-period <period>: period of the limit (default: total)', period),
  limitZone: option('--limit-zone <zone>: IANA time zone in which periods begin (default: UTC)', zone),
  onLimit: option(
    '--on-limit <action>: at the limits that are named: refuse (default), notify, or use:<model>',
    onLimit,
  ),
}
/** Arguments of a changed limit. */
export const limitChanges = {
  ...limitArguments,
  limit: option('--limit <usd>: spending limit: amount in USD, or none to remove the limit', amountOrNone),
}

/** Undefined without a limit. Throws a GatewayError 400 for a period or a zone without an amount. */
export function limitInput({ limit, limitPeriod, limitZone, onLimit }: LimitArguments): LimitInput | undefined {
  if (limit !== undefined) {
    const action = onLimit === undefined ? undefined : onLimitOf(onLimit)
    return { amount: parseMoney(limit), period: limitPeriod, zone: limitZone, onLimit: action }
  }
  if (limitPeriod === undefined && limitZone === undefined) return undefined
  throw errors.invalidParameters('Argument "limit" is missing: the amount for the period.', 'limit')
}

/** `"none"` removes the limit: the total one, or with a period the recurring one. */
export function limitChange(given: LimitArguments): LimitChange | undefined {
  if (given.limit === 'none') return { drop: given.limitPeriod === undefined ? 'total' : 'period' }
  const set = limitInput(given)
  return set && { set }
}

/** With amounts as decimal strings in USD. */
export const shownLimit = ({ limit, spent, ...rest }: LimitRecord) => ({
  ...rest,
  limit: formatMoney(limit),
  spent: formatMoney(spent),
})

const showSpan = (period: string): string => (period === 'total' ? 'in all' : `a ${period}`)
/** Empty for a limit that refuses. */
const showAction = (action: RateLimits['on_limit']): string => (action === undefined ? '' : ` (${onLimitText(action)})`)

/** `1.25 of 5 a month (notify), 20 of 100 in all`. */
export const showLimits = (limits: readonly ReturnType<typeof shownLimit>[]): string =>
  limits.map(one => `${one.spent} of ${one.limit} ${showSpan(one.period)}${showAction(one.on_limit)}`).join(', ')

/** `rpm 30, concurrency 4 (notify)`. */
export const showRates = (limits: RateLimits = {}): string =>
  rateKinds.flatMap(kind => (limits[kind] === undefined ? [] : `${kind} ${limits[kind]}`)).join(', ') +
  showAction(limits.on_limit)

const rate = s.either(
  s.integer({ minimum: 0, maximum: 1_000_000_000, description: 'a number, or 0 to remove the limit' }),
  s.string({ pattern: '^(none|\\d{1,9})$', description: 'a number, or "none" to remove the limit' }),
)
const rateOption = (kind: RateKind) => {
  const what =
    kind === 'concurrency' ? 'requests at a time' : `${windowKinds[kind].counts} per ${windowKinds[kind].span}`
  return option(`--${kind} <n>: ${what} at most; none removes the limit`, rate)
}

/** Arguments of rate limits, for new and for changed records. */
export const rateArguments = {
  ...(Object.fromEntries(rateKinds.map(kind => [kind, rateOption(kind)])) as Record<
    RateKind,
    ReturnType<typeof rateOption>
  >),
  onLimit: limitArguments.onLimit,
}
type RateArguments = { readonly [K in RateKind]?: string | number | undefined } & {
  readonly onLimit?: string | undefined
  readonly limit?: string | undefined
}

/** Undefined where no rate limit is named. An action alone is that of all rate limits. */
export function rateChange(given: RateArguments): RateChange | undefined {
  const named = rateKinds.flatMap(kind => {
    const value = given[kind]
    return value === undefined ? [] : [[kind, value === 'none' || Number(value) === 0 ? null : Number(value)] as const]
  })
  const { onLimit: action } = given
  if (named.length === 0 && (action === undefined || given.limit !== undefined)) return undefined
  return { ...(Object.fromEntries(named) as RateChange), on_limit: action === undefined ? action : onLimitOf(action) }
}

/** Undefined, which changes nothing, stays undefined. */
export const isOn = (value: string | undefined): boolean | undefined =>
  value === undefined ? undefined : value !== 'off'
