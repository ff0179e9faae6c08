/** `egress` of the files → how connections leave. */
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import type { Egress, HttpProxy } from '../lib/egress.ts'
import { urlOf } from '../lib/url.ts'
import type { NamedFile } from './contents.ts'
import { exemption, isLoopback, isMetadata, parseNoProxy, splitNoProxy } from './no-proxy.ts'
import { type EgressEntry, type EgressFileKey, egressFiles } from './schemas/egress.ts'
import type { Source } from './source.ts'

/** The parts of a `ConfigFile` that an entry is linked from. */
interface File {
  readonly source: Source
  readonly value: { readonly egress?: EgressEntry | undefined }
  readonly contents?: Readonly<Record<string, string>>
}
type Route = Pick<Egress, 'proxy' | 'noProxy' | 'proxiesLoopback'>

const CERTIFICATE =
  /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[\s\S]*?-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i
/** Time to have a certificate renewed. */
const SOON_MS = 14 * 86_400_000
const PORTS = { 'http:': '80', 'https:': '443' }
const DIRECT: Route = { proxy: undefined, noProxy: undefined, proxiesLoopback: false }

/** The files that an entry names. */
export const filesOfEgress = ({ egress }: { readonly egress?: EgressEntry | undefined }): NamedFile[] =>
  egressFiles.flatMap(key => {
    const file = egress?.[key]
    return file === undefined ? [] : [{ key, path: ['egress', key], file }]
  })

/** Links the entry of `gateway.yaml`; undefined where nothing is configured. Throws a ConfigError. */
export function linkEgress(file: File): Egress | undefined {
  const { egress } = file.value
  if (!egress) return undefined
  const noProxy = noProxyOf(file.source, egress)
  const route = { proxy: proxyOf(file.source, egress), noProxy, proxiesLoopback: noProxy?.length === 0 }
  return made(route, authoritiesOf(file, egress), undefined)
}

/**
 * Links the entry of a manifest. Its `proxy` replaces proxy and exemptions of `shared`, the entry of gateway.yaml, also for a target on this
 * machine; its `no_proxy` and its `ca` replace one each. What it omits is as shared. Throws a ConfigError.
 */
export function linkProviderEgress(file: File, shared: Egress | undefined): Egress | undefined {
  const { egress } = file.value
  if (!egress) return shared
  const noProxy = noProxyOf(file.source, egress)
  const route: Route =
    egress.proxy === undefined
      ? { ...(shared ?? DIRECT), ...(noProxy && { noProxy, proxiesLoopback: noProxy.length === 0 }) }
      : { proxy: proxyOf(file.source, egress), noProxy, proxiesLoopback: true }
  return made(route, authoritiesOf(file, egress) ?? shared?.ca, clientOf(file, egress))
}

function made({ proxy, noProxy, proxiesLoopback }: Route, ca: string | undefined, client: Egress['client']): Egress {
  const isExempt = exemption(noProxy ?? [])
  const isDirect = (hostname: string, port: string) =>
    isMetadata(hostname, port) || (!proxiesLoopback && isLoopback(hostname, port)) || isExempt(hostname, port)
  const all = { proxy, noProxy, proxiesLoopback, ca, client }
  return Object.freeze({
    ...all,
    id: createHash('sha256').update(JSON.stringify(all)).digest('hex').slice(0, 16),
    proxyFor: (hostname: string, port: string) => (proxy && !isDirect(hostname, port) ? proxy : undefined),
  })
}

/** Refusals do not repeat the value: it may hold a password. */
function proxyOf(source: Source, { proxy = '' }: EgressEntry): HttpProxy | undefined {
  const text = proxy.trim()
  if (text === '' || text === 'none') return undefined
  const refuse = (why: string) => source.error(why, ['egress', 'proxy'])
  const url = urlOf(SCHEME.test(text) ? text : `http://${text}`)
  if (!url?.hostname) throw refuse('expected the address of a proxy, such as "http://proxy.example.com:3128"')
  const { protocol, hostname, pathname, search, hash } = url
  if (protocol !== 'http:' && protocol !== 'https:') {
    throw refuse(`expected "http://" or "https://": "${protocol}" is no scheme of an HTTP proxy`)
  }
  if (pathname !== '/' || search !== '' || hash !== '') throw refuse('expected nothing behind the port of the proxy')
  const port = url.port || PORTS[protocol]
  const [user, password] = [url.username, url.password].map(part => decoded(part, refuse))
  const isNamed = user !== '' || password !== ''
  return Object.freeze({
    ...{ protocol, hostname: hostname.replace(/^\[|\]$/g, ''), port, name: `${hostname}:${port}` },
    authorization: isNamed ? `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` : undefined,
    password: password || undefined,
  })
}

function decoded(part: string, refuse: (why: string) => Error): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw refuse('the user or the password of the proxy has a "%" that begins no percent-encoding; write "%25"')
  }
}

function noProxyOf(source: Source, { no_proxy: written }: EgressEntry): readonly string[] | undefined {
  if (written === undefined) return undefined
  const lists = typeof written === 'string' ? [written] : written
  for (const [index, text] of lists.entries()) {
    const odd = splitNoProxy(text).find(entry => !parseNoProxy(entry))
    if (odd === undefined) continue
    const path = typeof written === 'string' ? [] : [index]
    const expected = 'a host, a suffix such as ".internal", an address, a range such as "10.0.0.0/8", or "*"'
    throw source.error(`expected ${expected}, each perhaps with ":" and a port; got "${odd}"`, [
      'egress',
      'no_proxy',
      ...path,
    ])
  }
  return Object.freeze(splitNoProxy(written))
}

/** The text of the file that a key names. A file that cannot be read was refused when it was loaded. */
const contentOf = ({ contents }: File, key: EgressFileKey): string => contents?.[key] ?? ''

function authoritiesOf(file: File, { ca }: EgressEntry): string | undefined {
  return ca === undefined ? undefined : certificatesIn(file, 'ca').join('\n')
}

function clientOf(file: File, { client_cert: cert, client_key: key }: EgressEntry): Egress['client'] {
  const lone = cert === undefined ? 'client_key' : 'client_cert'
  if (cert === undefined && key === undefined) return undefined
  if (cert === undefined || key === undefined) {
    const other = cert === undefined ? 'client_cert' : 'client_key'
    throw file.source.error(`"${lone}" needs "${other}" beside it`, ['egress', lone], 'key')
  }
  const chain = certificatesIn(file, 'client_cert')
  const refuse = (why: string) => file.source.error(why, ['egress', 'client_key'])
  const text = contentOf(file, 'client_key')
  const parsed = keyIn(text, refuse)
  if (!new X509Certificate(chain[0]!).checkPrivateKey(parsed)) {
    throw refuse('the key does not fit the first certificate of "client_cert"')
  }
  return Object.freeze({ cert: chain.join('\n'), key: text })
}

function keyIn(text: string, refuse: (why: string) => Error): KeyObject {
  if (/ENCRYPTED/.test(text))
    throw refuse('the key is encrypted; write it without a passphrase, and let only the gateway read it')
  try {
    return createPrivateKey(text)
  } catch {
    throw refuse('expected a file with a private key in PEM ("-----BEGIN PRIVATE KEY-----")')
  }
}

/** Lists the certificates of an entry's files that have ended or end within two weeks, as errors that refuse nothing. */
export function endingCertificates(file: File, now = Date.now()): Error[] {
  return (['ca', 'client_cert'] as const).flatMap(key => {
    const all = file.contents?.[key] === undefined ? [] : certificatesIn(file, key)
    return all.flatMap((pem, index) => {
      const { validTo } = new X509Certificate(pem)
      const end = Date.parse(validTo)
      if (!(end < now + SOON_MS)) return []
      const when = `${end < now ? 'ended' : 'ends'} on ${new Date(end).toISOString().slice(0, 10)}`
      return file.source.error(`certificate ${index + 1} of the file ${when}; renew it`, ['egress', key])
    })
  })
}

/** Certificates of a file, in PEM. */
function certificatesIn(file: File, key: EgressFileKey): string[] {
  const refuse = (why: string) => file.source.error(why, ['egress', key])
  const found = contentOf(file, key).match(CERTIFICATE) ?? []
  if (found.length === 0) throw refuse('expected a file with certificates in PEM ("-----BEGIN CERTIFICATE-----")')
  for (const [index, pem] of found.entries()) {
    try {
      new X509Certificate(pem)
    } catch {
      throw refuse(`certificate ${index + 1} of the file cannot be read: it is damaged`)
    }
  }
  return found
}
