/** Finds the principal of a credential, and refuses what it may not do. */

import { hash } from 'node:crypto'
import { type AddressRange, parseRange } from '../core/address.ts'
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory } from '../core/filter.ts'
import type { Policy } from '../core/policy.ts'
import type { Principal, Services } from '../core/ports.ts'
import type { Reply } from '../core/reply.ts'
import { type Infer, s } from '../core/schema.ts'
import { errors, type GatewayError } from '../lib/error.ts'
import { accessError } from '../policy/access-check.ts'
import { labelsOf } from '../policy/labels.ts'
import { ContentLog } from './content.ts'
import { isJwt, issuer, JwtCallers } from './jwt.ts'
import { checkSource } from './source.ts'

const options = s.object({
  /** Serve requests without a credential too; a wrong one is refused all the same. */
  optional: s.default(s.boolean(), false),
  /** Addresses or ranges of proxies whose `X-Forwarded-For` is believed: rules about addresses look through them. */
  trusted_proxies: s.default(s.array(s.string({ description: 'an address or a range such as "10.0.0.0/8"' })), []),
  /** Identity providers whose tokens stand for keys. */
  jwt: s.default(s.array(issuer), []),
})

/** Nothing longer can be a key; hashing it would be work for the sender's benefit. */
const MAX_KEY_CHARACTERS = 256

/** Throws 401 without a valid credential, and 403 or 410 for a principal that may not make the request. */
export const auth: FilterFactory<Infer<typeof options>> = {
  name: 'auth',
  options,
  gives: ['principal'],
  create({ optional, trusted_proxies, jwt }, services) {
    const callers = jwt.length > 0 ? new JwtCallers(jwt, services) : undefined
    const trusted = trusted_proxies.map(rangeOf)
    const contents = new ContentLog(services)
    const uses = { services, contents }
    return {
      handle(ex, next) {
        // A call within the process has the principal of its caller.
        if (ex.caller.principal && ex.caller.access) return next()
        ex.http.trustedProxies = trusted
        const { open } = ex.endpoint
        if (open === true || open?.(ex)) return next()
        const secret = credential(ex)
        if (secret === undefined) {
          if (!optional) throw errors.noCredentials()
          return next()
        }
        const found = callers && isJwt(secret) ? callers.find(secret) : find(secret, services)
        const admitted = (principal: Found) => {
          if (!principal && isClientSecret(secret)) throw errors.invalidClientSecret()
          return enter(ex, principal, uses, next)
        }
        return found instanceof Promise ? found.then(admitted) : admitted(found)
      },
      finish: ex => contents.finish(ex),
    }
  },
}

const BEARER = /^Bearer +(.+)$/i

const NONE: readonly string[] = []

/** The bearer token, else `x-api-key`, else where clients of the wire have it; throws when two differ. */
function credential(ex: Exchange): string | undefined {
  const authorization = ex.header('authorization')
  const bearer = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1]
  const apiKey = ex.header('x-api-key')?.trim() || undefined
  if (bearer !== undefined && apiKey !== undefined && bearer !== apiKey) throw errors.ambiguousCredentials()
  const own = ex.endpoint.codec.credentials?.(ex.http.headers, ex.http.query) ?? NONE
  const usual = bearer ?? apiKey
  if (own.length > 0) {
    const all = new Set(usual === undefined ? own : [usual, ...own])
    if (all.size > 1) throw errors.ambiguousCredentials()
  } else if (usual === undefined && authorization) throw errors.noCredentials()
  return usual ?? own[0]
}

type Found = Principal | undefined

/** Objects that the filter uses. */
interface Uses {
  readonly services: Services
  readonly contents: ContentLog
}

/** Throws or rejects with 503 when the store fails. */
function find(secret: string, { keys, realtimeSecrets }: Services): Found | Promise<Found> {
  if (secret.length > MAX_KEY_CHARACTERS) return undefined
  if (isClientSecret(secret)) return realtimeSecrets.find(hash('sha256', secret))
  const refuse = (cause: unknown) => {
    throw errors.storeUnavailable(cause)
  }
  try {
    const found = keys.find(hash('sha256', secret))
    return found instanceof Promise ? found.catch(refuse) : found
  } catch (cause) {
    return refuse(cause)
  }
}

/** Tells whether a secret opens a realtime session. */
const isClientSecret = (secret: string): boolean => secret.startsWith('ek_')

type Next = () => Promise<Reply>

/** Undefined for a caller that may ask at this time. */
function errorOf({ endpoint }: Exchange, principal: Principal, now: number): GatewayError | undefined {
  const { expiresAt, token } = principal
  if (token && !endpoint.takesTokens) return errors.invalidKey()
  if ((expiresAt !== undefined && expiresAt <= now) || (token && token.expiresAt <= now)) {
    return errors.invalidKey('it has expired. Send one that is valid.')
  }
  if (!principal.access) return errors.forbidden('The member who made this API key has no access to its project.')
  return principal.archived ? errors.archived() : undefined
}

type Checking = Pick<Services, 'keys' | 'policies' | 'realtimeSecrets'>

/** Exchanges whose callers are being judged again: a slow store gets one question for each. */
const rechecking = new WeakSet<Exchange>()

/**
 * Ends a running exchange whose caller may not go on: its key was revoked, its project was archived, or rules deny it now.
 * A key that expires meanwhile may finish. Never rejects.
 */
export async function recheck(ex: Exchange, services: Checking): Promise<void> {
  if (rechecking.has(ex)) return
  rechecking.add(ex)
  const { keys, policies, realtimeSecrets } = services
  try {
    const { issuer, keyId } = ex.caller.principal ?? {}
    const principal = await (issuer === undefined
      ? keys.find(hash('sha256', credential(ex)!))
      : realtimeSecrets.live(keyId!))
    const refusal = principal ? errorOf(ex, principal, ex.at) : errors.invalidKey()
    const denied = refusal ?? (await accessError(ex, policies))
    if (denied) ex.signal.abort(denied)
  } catch {
    // A store that fails refuses the next request; what was let in goes on.
  } finally {
    rechecking.delete(ex)
  }
}

function enter(ex: Exchange, principal: Found, { services, contents }: Uses, next: Next): Promise<Reply> {
  if (!principal) throw errors.invalidKey()
  const refusal = errorOf(ex, principal, services.now())
  if (refusal) throw refusal
  if (principal.kind === 'publishable' && ex.endpoint.serve === 'upstream') {
    throw errors.forbidden('Publishable keys cannot call models: ask from your server, with a secret key.')
  }
  if (principal.realtime && !ex.endpoint.upgrade) {
    throw errors.forbidden('Client secrets open realtime sessions, and nothing else.')
  }
  checkSource(ex)
  ex.caller.principal = principal
  const found = services.policies.of(principal.orgId)
  if (found instanceof Promise) return found.then(policy => admit(ex, policy, contents, next))
  return admit(ex, found, contents, next)
}

function admit(ex: Exchange, policy: Policy, contents: ContentLog, next: Next): Promise<Reply> {
  const caller = ex.caller.principal!
  ex.caller.policy = policy
  ex.caller.access = policy.access(caller)
  ex.caller.access.admit(() => ex.http.clientAddress)
  const source = { http: ex.http, proven: caller.endUser, options: ex.snapshot.endUsers }
  ex.caller.labels = labelsOf(source)
  if (ex.endpoint.operation) {
    const content = contents.begin(ex)
    ex.input.inspect = body => {
      ex.caller.labels = labelsOf(source, body)
      content?.asked(body)
    }
    if (content) return content.answered(next)
  }
  return next()
}

function rangeOf(text: string): AddressRange {
  const range = parseRange(text)
  if (!range) throw new Error(`"${text}" in trusted_proxies is neither an address nor a range such as "10.0.0.0/8"`)
  return range
}
