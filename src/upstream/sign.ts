/** How the gateway shows its credential to a provider: one named strategy per `auth.scheme`. */
import type { Auth, Provider } from '../core/catalog.ts'
import type { Target, WireRequest } from '../core/translator.ts'

interface Outgoing {
  path: string
  headers: Record<string, string>
}
type Scheme = Auth['scheme']

const strategies: {
  [S in Scheme]: (out: Outgoing, auth: Extract<Auth, { scheme: S }>, secret: string) => void
} = {
  none: () => undefined,
  bearer: (out, _auth, secret) => {
    out.headers.authorization = `Bearer ${secret}`
  },
  header: (out, auth, secret) => {
    out.headers[auth.header] = secret
  },
  query: (out, auth, secret) => {
    const separator = out.path.includes('?') ? '&' : '?'
    out.path += `${separator}${encodeURIComponent(auth.parameter)}=${encodeURIComponent(secret)}`
  },
}

/** Headers that every request to a provider carries, made once per provider. Nothing of the client's is among them. */
const common = new WeakMap<Provider, Record<string, string>>()
function commonHeaders(provider: Provider): Record<string, string> {
  let headers = common.get(provider)
  if (!headers) {
    headers = {
      'content-type': 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'model-gateway',
      ...provider.headers,
    }
    common.set(provider, headers)
  }
  return headers
}

/** Path and headers of a request to `target`, with its credential. */
export function sign(target: Target, request: WireRequest, requestId: string): Outgoing {
  const out: Outgoing = {
    path: request.path,
    headers: { ...commonHeaders(target.provider), ...request.headers, 'x-request-id': requestId },
  }
  const { auth } = target.provider
  const apply = strategies[auth.scheme] as (out: Outgoing, auth: Auth, secret: string) => void
  apply(out, auth, target.credential?.secret ?? '')
  return out
}
