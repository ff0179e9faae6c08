/** Signature Version 4 (docs/contributing/wire-sources.md#bedrock): the request itself is signed, and the key never travels. */
import { createHash, createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { sha256 } from '../../lib/opaque.ts'
import { awsKeys } from '../../secrets/credential.ts'
import { upstreamError } from '../../wire/upstream-error.ts'
import { type SignedRequest, type Strategy, setHeader } from './strategy.ts'

const ALGORITHM = 'AWS4-HMAC-SHA256'
const MAX_KEYS = 1000

/** Signing keys by day, region, service and secret: four digests that are the same all day. */
const signingKeys = new LRUCache<string, Buffer>({ max: MAX_KEYS })

/** Signs the body's bytes, the address, and the headers that the scheme requires. */
export const awsSigv4: Strategy<'aws-sigv4'> = (out, { region, service }, credential, clock) => {
  const parsed = awsKeys(credential.secret)
  if ('issue' in parsed) throw upstreamError(401, { message: `The credential cannot be used: ${parsed.issue}.` })
  const { id, secret, session } = parsed.value
  const { headers } = out
  out.secret = credential.secret
  const time = new Date(clock()).toISOString().replace(/[-:]|\.\d+/g, '')
  setHeader(headers, 'x-amz-date', time)
  if (session) setHeader(headers, 'x-amz-security-token', session)

  const { host, pathname } = new URL(out.baseUrl)
  // As `Transport` joins them.
  const [path = '', query = ''] = split(pathname.replace(/\/$/, '') + out.path, '?')
  const signed: Record<string, string> = { host }
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!
    if (name === 'host' || name === 'content-type' || name.startsWith('x-amz-')) signed[name] = headers[at + 1]!
  }
  const names = Object.keys(signed).sort()
  const canonical = [
    out.method,
    // The path is sent encoded once; the scheme signs it encoded again.
    path.split('/').map(encode).join('/') || '/',
    canonicalQuery(query),
    ...names.map(name => `${name}:${signed[name]!.trim().replace(/ +/g, ' ')}`),
    '',
    names.join(';'),
    digestOf(out.body),
  ].join('\n')

  const scope = `${time.slice(0, 8)}/${region}/${service}/aws4_request`
  const signature = hmac(signingKey(scope, secret), [ALGORITHM, time, scope, sha256(canonical)].join('\n'))
  setHeader(
    headers,
    'authorization',
    `${ALGORITHM} Credential=${id}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature.toString('hex')}`,
  )
  return out
}

function signingKey(scope: string, secret: string): Buffer {
  const name = `${scope} ${secret}`
  let key = signingKeys.get(name)
  if (!key) {
    key = scope.split('/').reduce<Buffer>(hmac, Buffer.from(`AWS4${secret}`))
    signingKeys.set(name, key)
  }
  return key
}

/** Pairs by name, then by value; what is sent is encoded already. */
const canonicalQuery = (query: string): string =>
  query
    .split('&')
    .filter(Boolean)
    .map(pair =>
      split(pair, '=')
        .map(part => encode(decodeURIComponent(part)))
        .join('='),
    )
    .sort()
    .join('&')

/** Before and after the first `mark`; both parts, whether it is there or not. */
function split(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

/** All but the unreserved characters of RFC 3986, as the scheme demands. */
const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)

/** Returns the digest of the body as it is sent. */
function digestOf(body: SignedRequest['body']): string {
  if (!Array.isArray(body)) return sha256((body ?? '') as string | Buffer)
  const hash = createHash('sha256')
  for (const piece of body as readonly Buffer[]) hash.update(piece)
  return hash.digest('hex')
}

const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
