/** Checks a rule as an operator writes it. */
import { parseRange } from '../core/address.ts'
import type { RuleType, RuleValue } from '../core/policy.ts'
import { errors, type GatewayError } from '../lib/error.ts'

type Field = keyof RuleValue

/** The fields that a rule of each type reads; at least one of them must be there. */
const fieldsOf: { readonly [T in RuleType]: readonly Field[] } = {
  allow_models: ['models'],
  deny_models: ['models'],
  allow_providers: ['providers'],
  deny_providers: ['providers'],
  allow_pricing: ['pricing', 'maxInputPrice', 'maxOutputPrice'],
  deny_pricing: ['pricing', 'maxInputPrice', 'maxOutputPrice'],
  allow_ip_cidrs: ['ipCidrs'],
  deny_ip_cidrs: ['ipCidrs'],
}

const MAX_LIST_ENTRIES = 1000
/** USD per million tokens: at most nine digits of dollars and six places, as finely as token prices are kept. */
const PRICE = /^\d{1,9}(\.\d{1,6})?$/

/** Returns the given fields of `value`. Throws a 400 that names a field which does not fit the type. */
export function ruleValue(type: RuleType, value: RuleValue): RuleValue {
  const given = Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as RuleValue
  const fields = fieldsOf[type]
  const stray = (Object.keys(given) as Field[]).find(field => !fields.includes(field))
  if (stray) throw ruleError(`A rule of type ${type} takes ${fields.join(', ')}, not ${stray}.`, stray)
  if (Object.keys(given).length === 0)
    throw ruleError(`A rule of type ${type} needs ${fields.join(' or ')}.`, fields[0]!)
  for (const field of ['models', 'providers', 'ipCidrs'] as const) checkList(field, given[field])
  const range = given.ipCidrs?.find(text => !parseRange(text))
  if (range !== undefined) {
    throw ruleError(`"${range}" is no range of addresses, such as 192.0.2.0/24 or 2001:db8::/32.`, 'ipCidrs')
  }
  for (const field of ['maxInputPrice', 'maxOutputPrice'] as const) {
    if (given[field] === undefined || PRICE.test(given[field])) continue
    throw ruleError(`"${given[field]}" is no price in USD per million tokens, such as 2.50.`, field)
  }
  return given
}

function checkList(field: Field, list: readonly string[] | undefined): void {
  if (!list) return
  if (list.length === 0 || list.includes(''))
    throw ruleError(`${field} must hold at least one entry, none of them empty.`, field)
  if (list.length > MAX_LIST_ENTRIES) throw ruleError(`${field} may hold up to ${MAX_LIST_ENTRIES} entries.`, field)
}

const ruleError = (message: string, field: Field): GatewayError => errors.invalidParameters(message, field)
