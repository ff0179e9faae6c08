/** Connections to servers that others may name. */
import { constants } from 'node:crypto'
import { Socket, type TcpNetConnectOpts } from 'node:net'
import { Duplex } from 'node:stream'
import { createSecureContext, DEFAULT_CIPHERS, type SecureContext, TLSSocket } from 'node:tls'
import { buildConnector } from 'undici'
import type { Egress } from '../lib/egress.ts'
import { DAY_MS } from '../lib/period.ts'
import { openTunnel } from './tunnel.ts'

/**
 * Without DHE: the server chooses the group, of up to 10,000 bits, and the client computes with it for 600 ms before it sees
 * a certificate. Servers that have nothing better are gone.
 */
const CIPHERS = `${DEFAULT_CIPHERS}:!DHE`
const TLS = { ciphers: CIPHERS, secureOptions: constants.SSL_OP_NO_RENEGOTIATION }

/** Bytes that one read of the system brings at most: where more is there, an answer has paused. */
const MAX_READ_BYTES = 64 * 1024
/** Bytes read at once: as many as a socket keeps before it stops reading. */
const READ_BYTES = 16 * 1024
const CONNECT_MS = 10_000

/** As undici's, with the socket that connects; undefined where none is opened. */
export type Connector = (target: Target, callback: buildConnector.Callback) => Socket | undefined
type Target = buildConnector.Options

/** undici's, and how connections leave. */
export type ConnectorOptions = buildConnector.BuildOptions & {
  readonly egress?: Egress | undefined
  /** Resolves with the address that a proxy connects to in place of a name; rejects where none may be connected to. */
  readonly addressOf?: ((hostname: string) => Promise<string>) | undefined
}

/** undici's, for http and https, through the proxy that `egress` has for a target. */
export function boundedConnector({ egress, addressOf, ...options }: ConnectorOptions): Connector {
  // Servers at addresses that others gave are shown no certificate.
  const connect = buildConnector({ ...TLS, ...(egress && secured(egress, !addressOf)), ...options })
  const direct: Connector = (target, callback) => {
    // The types of undici leave out that it returns the socket.
    const connecting: unknown = connect(target, callback)
    return connecting instanceof Socket ? connecting : undefined
  }
  const open = egress?.proxy ? tunnelled(egress, direct, { addressOf, ...options }) : direct
  return (target, callback) =>
    open(target, (...result) => {
      const [, socket] = result
      if (socket) boundReading(socket)
      if (socket && !addressOf) noteCertificate(target.hostname, socket)
      callback(...result)
    })
}

type TunnelOptions = Pick<ConnectorOptions, 'addressOf' | 'timeout'> & Pick<TcpNetConnectOpts, 'lookup' | 'onread'>

/** As `direct`, but for targets that have a proxy. */
function tunnelled(
  egress: Egress,
  direct: Connector,
  { addressOf, timeout, lookup, onread }: TunnelOptions,
): Connector {
  // A lookup that checks targets has no say about the proxy.
  const toProxy = { ...TLS, ...secured(egress, false), ...(lookup && !addressOf && { lookup }), timeout: 0 }
  const below = buildConnector(toProxy)
  const plain = onread ? buildConnector(Object.assign({ onread }, toProxy)) : below
  return (target, callback) => {
    const { hostname, protocol, httpSocket } = target
    const isSecure = protocol === 'https:'
    const port = target.port || (isSecure ? '443' : '80')
    const proxy = httpSocket ? undefined : egress.proxyFor(hostname, port)
    if (!proxy) return direct(target, callback)
    const to = addressOf?.(hostname).then(address => authority(address, port)) ?? authority(hostname, port)
    const connect = isSecure ? below : plain
    return openTunnel({ proxy, to, timeoutMs: timeout ?? CONNECT_MS, connect }, (error, socket) => {
      if (!socket) callback(error, null)
      else if (isSecure) secureOver(socket, target, direct, callback)
      else callback(null, socket)
    })
  }
}

/** Connects by TLS in a tunnel. A tunnel that is destroyed fails the connection, which would wait for ever without that. */
function secureOver(socket: Socket, target: Target, direct: Connector, callback: buildConnector.Callback): void {
  const broken = () => void secure?.destroy(new Error('the tunnel was closed'))
  socket.once('close', broken)
  const secure = direct({ ...target, httpSocket: socket }, (...result) => {
    socket.off('close', broken)
    callback(...result)
  })
}

/** `host:port`, with IPv6 in brackets. */
function authority(hostname: string, port: string): string {
  const host = hostname.replace(/^\[|\]$/g, '')
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

const contexts = { shown: new WeakMap<Egress, SecureContext>(), hidden: new WeakMap<Egress, SecureContext>() }

/** Returns TLS with the authorities of `egress`, and with its certificate if that is shown. It replaces the options of `TLS`. */
function secured(egress: Egress, isShown: boolean): { secureContext?: SecureContext } {
  const client = isShown ? egress.client : undefined
  if (!egress.ca && !client) return {}
  const known = client ? contexts.shown : contexts.hidden
  const secureContext = known.get(egress) ?? trusting(egress, createSecureContext({ ...TLS, ...client }))
  known.set(egress, secureContext)
  return { secureContext }
}

/** Adds to the authorities that are trusted anyway, `NODE_EXTRA_CA_CERTS` among them; the option `ca` would replace them. */
function trusting({ ca }: Egress, secure: SecureContext): SecureContext {
  const context: { addCACert(pem: string): void } = secure.context
  if (ca !== undefined) context.addCACert(ca)
  return secure
}

/**
 * undici reads all that a socket has, and puts back what is left where its answer pauses. Reading all begins the next read of
 * the system: an answer that pauses before it has used as much would be kept whole, and copied as often as it pauses. With
 * `onread` any `read` of a socket begins it; that of streams does where little is left.
 */
function boundReading(socket: Socket): void {
  const { read } = socket
  socket.read = size =>
    size === undefined && socket.readableLength > MAX_READ_BYTES
      ? Duplex.prototype.read.call(socket, READ_BYTES)
      : read.call(socket, size)
}

/** Hosts that are kept; further ones are not noted. */
const MAX_HOSTS = 500

interface Shown {
  /** Unix seconds. */
  readonly end: number
  /** Unix milliseconds. */
  readonly seenAt: number
}

/** The certificates of this process, by host. */
const shown = new Map<string, Shown>()

/** Notes the certificate of a new connection; what has none is ignored. */
function noteCertificate(host: string, socket: Socket, now = Date.now()): void {
  const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined
  const end = Date.parse(certificate?.validTo ?? '') / 1000
  if (!Number.isNaN(end) && (shown.has(host) || shown.size < MAX_HOSTS)) shown.set(host, { end, seenAt: now })
}

/** Hosts that were connected to within a day, and when the certificate of each ends, in Unix seconds. */
export function certificateEnds(now = Date.now()): { readonly host: string; readonly end: number }[] {
  for (const [host, { seenAt }] of shown) if (now - seenAt > DAY_MS) shown.delete(host)
  return [...shown].map(([host, { end }]) => ({ host, end }))
}
