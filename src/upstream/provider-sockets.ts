/** WebSockets to providers: signed, connected and guarded as any request to them. */
import type { Socket } from 'node:net'
import type { MessageSocket } from '../core/message-socket.ts'
import type { InProcessProviders, ProviderSocket, ProviderSockets, SocketCall } from '../core/ports.ts'
import type { Provider, Target } from '../core/translator.ts'
import { boundedConnector, type Connector } from '../egress/connector.ts'
import { guardedConnector, nameServers, type Resolve, sharedLookup } from '../egress/guard.ts'
import { socketConnector, UpstreamSocket } from '../egress/socket.ts'
import { ProxyError } from '../egress/tunnel.ts'
import { errors, type GatewayError } from '../lib/error.ts'
import type { Mask } from '../secrets/mask.ts'
import { InFlightCounts } from './in-flight-count.ts'
import { providerError, type RenewCredential, refusesCredential } from './provider-call.ts'
import { maskOfSent, sign, waitFor } from './sign.ts'
import { HandshakeTimeout, openWebSocket, type RefusedUpgrade } from './web-socket.ts'

/** For the handshake, beside the connection. */
const HANDSHAKE_MS = 15_000

/** Services that the sockets share with calls to providers; all are optional. */
export interface ProviderSocketsOptions {
  /** See `TransportOptions`. */
  readonly allowPrivate?: boolean
  readonly inFlight?: InFlightCounts
  readonly resolve?: Resolve
  readonly inProcess?: InProcessProviders
  readonly renewed?: RenewCredential
}

/** The `ProviderSockets` of the gateway: each open socket counts as a call to its provider. */
export class UpstreamSockets implements ProviderSockets {
  readonly #allowPrivate: boolean
  readonly #inFlight: InFlightCounts
  readonly #resolve: Resolve
  readonly #inProcess: InProcessProviders | undefined
  readonly #renewed: RenewCredential | undefined
  readonly #lookup = sharedLookup()

  constructor(options: ProviderSocketsOptions = {}) {
    const { allowPrivate = false, inFlight, resolve = nameServers(), inProcess, renewed } = options
    this.#renewed = renewed
    this.#allowPrivate = allowPrivate
    this.#inFlight = inFlight ?? new InFlightCounts()
    this.#resolve = resolve
    this.#inProcess = inProcess
  }

  async open(call: SocketCall): Promise<ProviderSocket> {
    const end = this.#begin(call.target.provider, call.tenant)
    try {
      return await this.#open(call, end)
    } catch (thrown) {
      end()
      throw thrown
    }
  }

  /** Counts a call to the provider, until the first call of what is returned. */
  #begin(provider: Provider, tenant: string): () => void {
    const count = this.#inFlight.begin(tenant, provider)
    if (!count) throw errors.providerBusy(provider.id)
    let isOpen = true
    return () => {
      if (isOpen) count.end(tenant)
      isOpen = false
    }
  }

  async #open(call: SocketCall, end: () => void): Promise<ProviderSocket> {
    const { id, target, signal } = call
    const { timeouts } = target.provider
    const handshakeMs = Math.min(timeouts.firstEvent ?? HANDSHAKE_MS, HANDSHAKE_MS)
    const request = sign(target, call.request, id, { type: undefined, body: undefined })
    const signed = request instanceof Promise ? await waitFor(request, timeouts.connect + handshakeMs, signal) : request
    if (call.trace) signed.headers.push(...call.trace)
    const mask = maskOfSent(signed, target.provider)
    const { origin, pathname } = new URL(signed.baseUrl)
    const local = this.#inProcess?.get(origin)
    if (local) {
      const socket = local.connect(pathname.replace(/\/$/, '') + signed.path)
      if (!socket) throw errors.invalidAnswer('its status is 404, in place of a WebSocket', 404)
      return { socket, mask }
    }
    const line = new UpstreamSocket(this.#connector(target.provider))
    const left = () => {
      line.cancelConnect(signal.reason ?? errors.aborted())
      line.socket?.destroy()
    }
    signal.listen(left)
    let answer: MessageSocket | RefusedUpgrade
    try {
      answer = await openWebSocket({
        url: `${signed.baseUrl.replace(/\/$/, '').replace(/^http/, 'ws')}${signed.path}`,
        headers: asRecord(signed.headers),
        limit: call.maxMessageBytes,
        timeoutMs: handshakeMs,
        socket: (await connected(line, new URL(signed.baseUrl))).once('close', end),
      })
    } catch (thrown) {
      if (signal.reason) throw signal.reason
      if (thrown instanceof HandshakeTimeout) throw errors.upstreamTimeout('no WebSocket was opened in time')
      const why = thrown instanceof ProxyError ? `: ${thrown.message}` : ''
      throw errors.unreachable(`no WebSocket could be opened${why}`, thrown)
    } finally {
      signal.ignore(left)
    }
    if ('status' in answer) {
      if (signal.reason) throw signal.reason
      const error = errorOf(answer, target, mask)
      const credential = refusesCredential(answer.status, error) ? await this.#renewed?.(target) : undefined
      if (!credential) throw error
      return this.#open({ ...call, target: { ...target, credential } }, end)
    }
    return { socket: answer, mask }
  }

  #connector({ owner, timeouts, egress }: Provider): Connector {
    if (owner === undefined) return boundedConnector({ timeout: timeouts.connect, lookup: this.#lookup, egress })
    if (!this.#allowPrivate) return guardedConnector({ timeoutMs: timeouts.connect, resolve: this.#resolve, egress })
    return socketConnector({ timeout: timeouts.connect, lookup: this.#lookup, egress })
  }
}

function connected(line: UpstreamSocket, { hostname, host, protocol, port }: URL): Promise<Socket> {
  const options = {
    ...{ hostname, host, protocol, port: port || (protocol === 'https:' ? '443' : '80') },
    servername: hostname.replace(/^\[|\]$/g, ''),
  }
  return new Promise((resolve, reject) => {
    line.connect(options, (error, socket) => (error ? reject(error) : resolve(socket)))
  })
}

const asRecord = (headers: readonly string[]): Record<string, string> => {
  const record: Record<string, string> = {}
  for (let at = 0; at < headers.length; at += 2) record[headers[at]!] = headers[at + 1]!
  return record
}

function errorOf({ status, headers, body }: RefusedUpgrade, target: Target, mask: Mask | undefined): GatewayError {
  if (status < 400) return errors.invalidAnswer(`its status is ${status}, in place of a WebSocket`, status)
  const header = (name: string) => {
    const value = headers[name]
    return typeof value === 'string' ? value : undefined
  }
  return providerError({ status, header }, body, target, mask)
}
