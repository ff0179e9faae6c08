/** OAuth for a service account: its key is traded for tokens that last an hour, one for all requests of a credential. */
import { LRUCache } from 'lru-cache'
import type { Credential } from '../../core/provider-settings.ts'
import { serviceAccount } from '../../secrets/credential.ts'
import { upstreamError } from '../../wire/upstream-error.ts'
import { AccessToken } from './access-token.ts'
import { requestToken } from './service-account.ts'
import { type Strategy, setBearer } from './strategy.ts'

const TOKEN_URI = 'https://oauth2.googleapis.com/token'
const MAX_TOKENS = 1000

/** The strategy over one token endpoint. Synchronous while a token lasts. */
export function oauth(request: typeof requestToken): Strategy<'gcp-oauth'> {
  /** Tokens by credential. They outlive a configuration that is replaced. */
  const tokens = new LRUCache<string, AccessToken>({ max: MAX_TOKENS })
  /** A credential belongs to one provider, and so to one scope. */
  const byCredential = new WeakMap<Credential, AccessToken>()

  const tokenOf = (credential: Credential, scope: string): AccessToken => {
    let token = byCredential.get(credential)
    if (!token) {
      const name = `${credential.source} ${scope} ${credential.secret}`
      token = tokens.get(name) ?? accessToken(credential, scope, request)
      tokens.set(name, token)
      byCredential.set(credential, token)
    }
    return token
  }

  return (out, { scope }, credential, clock, egress) => {
    const token = tokenOf(credential, scope).take(clock, egress)
    return typeof token === 'string' ? setBearer(out, token) : token.then(fetched => setBearer(out, fetched))
  }
}

/** The strategy over Google's token endpoint, with one cache of tokens for the process. */
export const gcpOauth = oauth(requestToken)

function accessToken({ source, secret }: Credential, scope: string, request: typeof requestToken): AccessToken {
  const parsed = serviceAccount(secret)
  if ('issue' in parsed) throw upstreamError(401, { message: `The credential cannot be used: ${parsed.issue}.` })
  const account = parsed.value
  // An address that a customer names is not ours to call.
  const tokenUri = (source === 'platform' && account.tokenUri) || TOKEN_URI
  return new AccessToken((now, egress) => request(account, { scope, tokenUri, now, egress }))
}
