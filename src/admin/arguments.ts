/** Schemas and conversions for arguments of several commands. */
import { errors } from '../core/error.ts'
import { formatMoney, type Money, parseMoney } from '../core/money.ts'
import type { LimitChange, LimitInput, LimitRecord, Page } from '../core/ports.ts'
import { s } from '../core/schema.ts'
import { periods } from '../lib/period.ts'

export const name = s.string({ minLength: 1, maxLength: 200, description: 'a name of 1 to 200 characters' })
export const organization = s.string({ minLength: 1, description: 'the id or the name of an organization' })
export const project = s.string({ minLength: 1, description: 'the id or the name of a project' })
export const member = s.string({ minLength: 1, description: 'the address or the id of a member' })
export const keyId = s.string({ minLength: 1, description: 'the id of a key, as keys.list shows it' })
const period = s.enum(...periods)
const zone = s.string({ minLength: 1, maxLength: 64, description: 'an IANA time zone such as "Europe/Berlin"' })

const AMOUNT = '\\d{1,9}(\\.\\d{1,9})?'
const MOST = 'at most 999999999.999999999'
export const amount = s.string({ pattern: `^${AMOUNT}$`, description: `an amount of USD such as "12.50", ${MOST}` })
export const amountOrNone = s.string({
  pattern: `^(none|${AMOUNT})$`,
  description: `an amount of USD such as "12.50", ${MOST}, or "none"`,
})

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

/** `"30d"` → milliseconds. */
export function durationOf(text: string): number {
  return Number(text.slice(0, -1)) * UNIT_MS[text.at(-1) as keyof typeof UNIT_MS]
}
export const lifetime = s.string({ pattern: '^[1-9]\\d{0,4}[mhdw]$', description: 'a time such as 12h, 30d or 52w' })
export const cacheTtl = s.string({ pattern: '^[1-9]\\d{0,7}[smhd]$', description: 'a time such as 60s, 10m or 12h' })
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
export const pageArguments = {
  after: s.optional(s.string({ minLength: 1, description: 'the id of a record' })),
  limit: s.optional(s.integer({ minimum: 1, maximum: MAX_RECORDS, description: `a count from 1 to ${MAX_RECORDS}` })),
}
export const pageOf = ({ after, limit = MAX_RECORDS }: Page): Page => ({ after, limit })
/** The same for lists without ids. */
export const partArguments = {
  limit: pageArguments.limit,
  offset: s.optional(s.integer({ minimum: 0, description: 'the number of entries to skip' })),
}
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
}
export const limitArguments = {
  limitPeriod: s.optional(period),
  limitZone: s.optional(zone),
}

export function limitInput({ limit, limitPeriod, limitZone }: LimitArguments): LimitInput | undefined {
  if (limit !== undefined) return { amount: parseMoney(limit), period: limitPeriod, zone: limitZone }
  if (limitPeriod === undefined && limitZone === undefined) return undefined
  throw errors.invalidParameters('Argument "limit" is missing: the amount for the period.', 'limit')
}

/** `"none"` removes the limit: the total one, or with a period the recurring one. */
export function limitChange(given: LimitArguments): LimitChange | undefined {
  if (given.limit === 'none') return { drop: given.limitPeriod === undefined ? 'total' : 'period' }
  const set = limitInput(given)
  return set && { set }
}

export const shownLimit = ({ limit, spent, ...rest }: LimitRecord) => ({
  ...rest,
  limit: formatMoney(limit),
  spent: formatMoney(spent),
})
