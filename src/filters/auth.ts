/** Who calls: finds the principal of the credential, and refuses what it may not do. */
import { hash } from 'node:crypto'
import { errors } from '../core/error.ts'
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory } from '../core/filter.ts'
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
      async handle(ex, next) {
        const secret = credential(ex)
        if (secret !== undefined) ex.principal = await authenticate(secret, services)
        else if (!optional) throw errors.noCredentials()
        return next()
      },
    }
  },
}

/** The bearer token, else `x-api-key`; throws when the two differ. */
function credential(ex: Exchange): string | undefined {
  const bearer = /^Bearer +(.+)$/i.exec(ex.header('authorization') ?? '')?.[1]
  const apiKey = ex.header('x-api-key')?.trim() || undefined
  if (bearer !== undefined && apiKey !== undefined && bearer !== apiKey) throw errors.ambiguousCredentials()
  if (bearer === undefined && apiKey === undefined && ex.header('authorization')) throw errors.noCredentials()
  return bearer ?? apiKey
}

async function authenticate(secret: string, { keys, now }: Services): Promise<Principal> {
  if (secret.length > MAX_KEY_LENGTH) throw errors.invalidKey()
  let principal: Principal | undefined
  try {
    const found = keys.find(hash('sha256', secret))
    principal = found instanceof Promise ? await found : found
  } catch (cause) {
    throw errors.storeUnavailable(cause)
  }
  if (!principal) throw errors.invalidKey()
  if (principal.expiresAt !== undefined && principal.expiresAt <= now())
    throw errors.invalidKey('This API key has expired.')
  if (principal.archived) throw errors.archived()
  return principal
}
