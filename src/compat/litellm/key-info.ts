/** `GET /key/info`: spending and limits of a key, in LiteLLM's form. */
import { hash } from 'node:crypto'
import { json } from '../../codecs/json.ts'
import type { Endpoint } from '../../core/endpoint.ts'
import type { Exchange } from '../../core/exchange.ts'
import { keyUsage } from '../../core/key-usage.ts'
import { type Money, toNumber } from '../../core/money.ts'
import type { KeyStatus, Principal, Services } from '../../core/ports.ts'
import { value } from '../../core/reply.ts'
import { errors } from '../../lib/error.ts'

const HASH = /^[0-9a-f]{64}$/
/** LiteLLM's names of periods. */
const durations: Readonly<Record<string, string>> = { hour: '1h', day: '1d', week: '7d', month: '1mo' }

/** `isAdmin` compares with the gateway's admin token. */
export const keyInfo = (isAdmin: (secret: string) => boolean): Endpoint => ({
  name: 'key',
  method: 'GET',
  path: '/key/info',
  chain: 'local',
  codec: json,
  bodyLimit: 0,
  open: ex => isAdmin(bearerOf(ex)),
  async serve(ex, { keys }) {
    const asked = new URLSearchParams(ex.http.query).get('key')
    const { principal } = ex.caller
    const isOperator = isAdmin(bearerOf(ex))
    if (!principal && !isOperator) throw errors.noCredentials()
    if (!principal && !asked) throw errors.invalidField('key', 'name the key, such as /key/info?key=…')
    const secret = asked ?? bearerOf(ex)
    const found = asked ? await find(asked, keys) : principal
    // A caller learns nothing of keys that it may not see, not even whether they exist.
    if (!isOperator && !(found && mayRead(principal!, found))) throw errors.forbidden(NOT_YOURS)
    if (!found) throw errors.notFound('Key not found in database')
    if (found.kind !== 'key') throw errors.forbidden('Only regular gateway API keys have this information.')
    return value({
      key: HASH.test(secret) ? secret : hash('sha256', secret),
      info: infoOf(found, await keys.status(found), secret),
    })
  },
})

const NOT_YOURS =
  "You are not allowed to access this key's info. Ask with that key, or as an admin of its organization."

const bearerOf = (ex: Exchange): string =>
  /^Bearer +(.+)$/i.exec(ex.header('authorization') ?? '')?.[1] ?? ex.header('x-api-key')?.trim() ?? ''

/** Takes a key, or its SHA-256 in hex. */
async function find(key: string, keys: Services['keys']): Promise<Principal | undefined> {
  return (await keys.find(hash('sha256', key))) ?? (HASH.test(key) ? await keys.find(key) : undefined)
}

/** A key itself, and no session that it began; and every key of an organization, for its owners and admins. */
function mayRead({ keyId, orgId, member, kind }: Principal, found: Principal): boolean {
  if (kind !== 'key') return false
  return found.keyId === keyId || (found.orgId === orgId && (member?.role === 'owner' || member?.role === 'admin'))
}

function infoOf(principal: Principal, status: KeyStatus, secret: string): object {
  const { usage, total, recurring } = keyUsage(status)
  const budget = total ?? recurring
  const limits = principal.rates?.find(({ of }) => of === 'key')?.limits ?? {}
  const usd = (amount: Money | undefined) => (amount === undefined ? null : toNumber(amount))
  const iso = (at: number | undefined) => (at === undefined ? null : new Date(at).toISOString())
  return {
    key_name: HASH.test(secret) ? null : `sk-...${secret.slice(-4)}`,
    key_alias: principal.keyName,
    // As in LiteLLM, what counts against the limit begins again with each of its periods.
    spend: usd(budget?.spent ?? usage),
    max_budget: usd(budget?.limit),
    budget_duration: (budget && durations[budget.period]) ?? null,
    budget_reset_at: iso(budget?.resetsAt),
    expires: iso(principal.expiresAt),
    models: [],
    aliases: {},
    config: {},
    permissions: {},
    metadata: {},
    user_id: principal.member?.id ?? null,
    team_id: principal.projectId,
    organization_id: principal.orgId,
    rpm_limit: limits.rpm ?? null,
    tpm_limit: limits.tpm ?? null,
    max_parallel_requests: limits.concurrency ?? null,
    blocked: principal.archived || !principal.access,
    model_spend: {},
    model_max_budget: {},
    allowed_cache_controls: [],
  }
}
