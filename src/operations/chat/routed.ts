/** Fields of a request's body that say how it is routed, on every client wire. */

import type { ChatRequest, ProviderPreferences } from '../../core/chat-request.ts'
import type { RoutedBody } from '../../core/operation.ts'
import { isObject, type Json } from '../../json/json.ts'
import { errors } from '../../lib/error.ts'

/** Each is planned and attempted separately. */
const MAX_MODELS = 10
const MAX_PROVIDERS = 100
const MAX_NAME_CHARACTERS = 256
/** Prices are pico-USD per token, so they have no more decimals. */
const PRICE_PLACES = 6

const ROUTINGS: readonly unknown[] = ['auto', 'price', 'throughput', 'latency']

const FLAGS = ['free_models_only', 'no_reasoning'] as const
const NAMES = ['models', 'provider', 'routing', ...FLAGS] as const

/** Undefined for a body without such fields. Throws a 400 for a field of the wrong form. */
export function routed(body: unknown): RoutedBody<ChatRequest> | undefined {
  if (!isObject(body) || !NAMES.some(name => name in body)) return undefined
  const fields: Partial<ChatRequest> = {}
  const { models, provider, routing, free_models_only: _, no_reasoning: __, ...rest } = body
  if (routing != null) {
    if (!ROUTINGS.includes(routing)) throw errors.invalidField('routing', oneOf(ROUTINGS))
    fields.routing = routing as NonNullable<ChatRequest['routing']>
  }
  for (const name of FLAGS) if (body[name] != null) fields[name] = truthIn(body[name], name)
  const names = models == null ? [] : namesOf(models, 'models', MAX_MODELS, "a model's name")
  // A model given elsewhere by the wire, such as in its path, comes first.
  if (rest.model == null && names.length > 0) rest.model = names[0]
  if (names.length > 0) fields.models = names
  if (provider != null) fields.provider = preferencesOf(provider)
  return { body: rest, fields }
}

/** Parsers of the members of `provider`. */
const MEMBERS: { readonly [M in keyof Required<ProviderPreferences>]: (value: unknown, at: string) => unknown } = {
  order: providersOf,
  only: providersOf,
  ignore: providersOf,
  allow_fallbacks: truthIn,
  max_price: limitsOf,
  sort(value, at) {
    if (value === 'auto' || !ROUTINGS.includes(value)) throw errors.invalidField(at, oneOf(ROUTINGS.slice(1)))
    return value
  },
}

function truthIn(value: unknown, at: string): boolean {
  if (typeof value !== 'boolean') throw errors.invalidField(at, 'must be true or false')
  return value
}

function preferencesOf(given: unknown): ProviderPreferences {
  if (!isObject(given))
    throw errors.invalidField('provider', `must be an object with ${Object.keys(MEMBERS).join(', ')}`)
  return membersOf(given, 'provider', MEMBERS) as ProviderPreferences
}

const PRICES = { prompt: limitOf, completion: limitOf }

function limitsOf(given: unknown, at: string): unknown {
  if (!isObject(given)) throw errors.invalidField(at, 'must be an object with prompt, completion')
  return membersOf(given, at, PRICES)
}

/** Members present in `given`, parsed by `members`. Throws for any other. */
function membersOf(
  given: Json,
  at: string,
  members: Readonly<Record<string, (value: unknown, at: string) => unknown>>,
) {
  const read: Json = {}
  for (const [name, value] of Object.entries(given)) {
    const own = `${at}.${name.slice(0, MAX_NAME_CHARACTERS)}`
    if (!Object.hasOwn(members, name)) {
      throw errors.invalidField(own, `is unknown; ${at} takes ${Object.keys(members).join(', ')}`)
    }
    if (value != null) read[name] = members[name]!(value, own)
  }
  return read
}

function providersOf(given: unknown, at: string): readonly string[] {
  return namesOf(given, at, MAX_PROVIDERS, "a provider's id")
}

/** Without repetitions. */
function namesOf(given: unknown, at: string, most: number, what: string): string[] {
  if (!Array.isArray(given) || given.length > most)
    throw errors.invalidField(at, `must be a list of at most ${most} names`)
  for (const [index, name] of given.entries()) {
    if (typeof name === 'string' && name !== '' && name.length <= MAX_NAME_CHARACTERS) continue
    throw errors.invalidField(`${at}[${index}]`, `must be ${what}, a text of 1 to ${MAX_NAME_CHARACTERS} characters`)
  }
  return [...new Set<string>(given)]
}

/** Truncates to the decimals of prices: a price above the truncated limit is above the limit. */
function limitOf(given: unknown, at: string): string {
  const text = typeof given === 'number' && given >= 0 && given < 1e9 ? given.toFixed(12) : given
  const [, whole, fraction = ''] = (typeof text === 'string' && /^(\d{1,9})(?:\.(\d{1,12}))?$/.exec(text)) || []
  if (whole === undefined)
    throw errors.invalidField(at, 'must be USD per million tokens, a number or a decimal text such as "0.50"')
  return `${whole}.${fraction.slice(0, PRICE_PLACES).padEnd(1, '0')}`
}

const oneOf = (values: readonly unknown[]): string =>
  `must be one of ${values.map(value => JSON.stringify(value)).join(', ')}`
