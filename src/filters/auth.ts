/** Who calls: finds the principal of the credential, and refuses what it may not do. */
import { hash } from 'node:crypto'
import { errors } from '../core/error.ts'
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory, Reply } from '../core/filter.ts'
import type { Principal, Services } from '../core/ports.ts'
import { type Infer, s } from '../core/schema.ts'

const options = s.object({
  /** Serve requests without a credential too; a wrong one is refused all the same. */
  optional: s.default(s.boolean(), false),
})

/** Nothing longer can be a key; hashing it would be work for the sender's benefit. */
const MAX_KEY_LENGTH = 256

export const auth: FilterFactory<Infer<typeof options>> = {
  name: 'auth',
  options,
  gives: ['principal'],
  create({ optional }, services) {
    return {
      handle(ex, next) {
        const secret = credential(ex)
        if (secret === undefined) {
          if (!optional) throw errors.noCredentials()
          return next()
        }
        const found = find(secret, services)
        if (found instanceof Promise) return found.then(principal => enter(ex, principal, services, next))
        return enter(ex, found, services, next)
      },
    }
  },
}

const BEARER = /^Bearer +(.+)$/i

/** The bearer token, else `x-api-key`; throws when the two differ. */
function credential(ex: Exchange): string | undefined {
  const authorization = ex.header('authorization')
  const bearer = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1]
  const apiKey = ex.header('x-api-key')?.trim() || undefined
  if (bearer !== undefined && apiKey !== undefined && bearer !== apiKey) throw errors.ambiguousCredentials()
  if (bearer === undefined && apiKey === undefined && authorization) throw errors.noCredentials()
  return bearer ?? apiKey
}

type Found = Principal | undefined

/** Throws, or rejects with, a 503 when the store cannot tell. */
function find(secret: string, { keys }: Services): Found | Promise<Found> {
  if (secret.length > MAX_KEY_LENGTH) return undefined
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

function enter(ex: Exchange, principal: Found, { now }: Services, next: () => Promise<Reply>): Promise<Reply> {
  if (!principal) throw errors.invalidKey()
  if (principal.expiresAt !== undefined && principal.expiresAt <= now()) {
    throw errors.invalidKey('This API key has expired.')
  }
  if (principal.archived) throw errors.archived()
  ex.principal = principal
  return next()
}
