/** `POST /v1/sessions`: begins a session of an end user, with its own secret (docs/contract.md#sessions). */

import { json } from '../codecs/json.ts'
import { validator } from '../codecs/validate.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { formatMoney, parseMoney } from '../core/money.ts'
import type { Principal } from '../core/ports.ts'
import { value } from '../core/reply.ts'
import { s } from '../core/schema.ts'
import { errors } from '../lib/error.ts'

const DEFAULT_SECONDS = 900
const MAX_SECONDS = 86_400

const name = s.string({ minLength: 1, maxLength: 200 })
const amount = s.string({ pattern: '^\\d{1,9}(\\.\\d{1,9})?$', description: 'an amount of USD such as "12.50"' })

/** `maxSpend` is USD; the limits and rules of the key apply in any case. */
const request = s.open({
  customer: s.either(name, s.open({ externalId: name, email: s.optional(s.string({ maxLength: 254 })) })),
  scope: s.optional(
    s.open({
      models: s.optional(s.array(s.string({ minLength: 1, maxLength: 256 }), { minItems: 1, maxItems: 1000 })),
      maxSpend: s.optional(s.either(amount, s.number({ minimum: 0, maximum: 999_999_999 }))),
    }),
  ),
  ttlSeconds: s.optional(s.integer({ minimum: 1, maximum: MAX_SECONDS })),
})
const validate = validator(request)

/** Only for regular keys. A session lives for `ttlSeconds`, 15 minutes if absent, and no longer than its key. */
export const sessions: Endpoint = {
  name: 'sessions',
  method: 'POST',
  path: '/v1/sessions',
  chain: 'local',
  codec: { ...json, requestSchema: validate.json, prepare: validate.prepare },
  bodyLimit: 64 * 1024,
  async serve(ex, { sessions, now }) {
    const { principal } = ex.caller
    if (!principal) throw errors.noCredentials()
    if (principal.kind !== 'key') throw errors.forbidden('Only regular gateway API keys may begin sessions.')
    const { customer, scope = {}, ttlSeconds = DEFAULT_SECONDS } = validate(await ex.input.read())
    const { maxSpend, models } = scope
    const limit =
      maxSpend === undefined ? undefined : parseMoney(typeof maxSpend === 'string' ? maxSpend : fixed(maxSpend))
    const expiresAt = Math.min(now() + ttlSeconds * 1000, principal.expiresAt ?? Number.POSITIVE_INFINITY)
    const who = typeof customer === 'string' ? customer : customer.externalId
    checkCustomer(principal, who)
    const { id, key } = await sessions.begin({ principal, customer: who, models, limit, expiresAt })
    return value({
      id,
      sessionToken: key,
      customer: who,
      scope: { models: models ?? null, maxSpend: limit === undefined ? null : formatMoney(limit) },
      expiresAt: new Date(expiresAt).toISOString(),
    })
  },
}

/** Throws 403 where a developer's token names another end user, whose limits such a session would leave behind. */
function checkCustomer({ endUser, member }: Principal, customer: string): void {
  if (endUser === undefined || endUser === customer || member?.role !== 'developer') return
  throw errors.forbidden(
    `The token is of the end user "${endUser}". It begins sessions of that customer alone. Those of others need the role owner or admin.`,
  )
}

/** Without an exponent, truncated to nano-USD. */
const fixed = (usd: number): string => usd.toFixed(9)
