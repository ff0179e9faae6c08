/** Tunnels through HTTP proxies (RFC 9110 section 9.3.6). */
import { request } from 'node:http'
import { Socket } from 'node:net'
import type { buildConnector } from 'undici'
import type { HttpProxy } from '../lib/egress.ts'
import { guarded } from '../lib/guarded.ts'

/** Maximum of a proxy's answer; what is larger breaks the connection. */
const MAX_HEADER_BYTES = 16 * 1024

/** The proxy opened no connection. The message names the proxy, and nothing secret of it. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError'
  /** Status of its refusal; undefined where it answered nothing. */
  readonly status: number | undefined

  constructor(message: string, { status, ...options }: ErrorOptions & { readonly status?: number | undefined } = {}) {
    super(message, options)
    this.status = status
  }
}

/** One tunnel to open. */
interface Tunnel {
  readonly proxy: HttpProxy
  /** `host:port` of the target; a promise where the host is looked up and checked first. */
  readonly to: string | Promise<string>
  /** For connection and answer together. */
  readonly timeoutMs: number
  /** To the proxy. */
  readonly connect: buildConnector.connector
}

type Failed = (why: string, cause?: unknown, status?: number) => void
type Done = (...result: [Error, null] | [null, Socket]) => void

/** Calls `done` once. Returns the connection to the proxy; destroying it ends the attempt. */
export function openTunnel({ proxy, to, timeoutMs, connect }: Tunnel, done: Done): Socket | undefined {
  let isDone = false
  const end: Done = (...result) => {
    if (isDone) return result[1]?.destroy() && undefined
    isDone = true
    clearTimeout(timer)
    done(...result)
  }
  const failed: Failed = (why, cause, status) => {
    end(new ProxyError(`the proxy ${proxy.name} ${why}`, { cause, status }), null)
    connecting?.destroy()
  }
  const timer = setTimeout(() => failed('did not answer in time'), timeoutMs)
  const refused = (thrown: unknown) => {
    end(thrown instanceof Error ? thrown : new Error('no address', { cause: thrown }), null)
    connecting?.destroy()
  }
  const target = typeof to === 'string' ? to : to.catch(refused)
  const { protocol, hostname, port } = proxy
  const host = proxy.name
  // The types of undici leave out that it returns the socket.
  const returned: unknown = connect({ protocol, hostname, host, port }, (error, socket) => {
    if (!socket) return failed(`cannot be reached${codeOf(error)}`, error)
    if (typeof target === 'string') return ask(socket, proxy, target, failed, end)
    void target.then(checked => checked !== undefined && ask(socket, proxy, checked, failed, end))
  })
  const connecting = returned instanceof Socket ? returned : undefined
  return connecting
}

function ask(socket: Socket, { authorization }: HttpProxy, target: string, failed: Failed, end: Done): void {
  const headers = {
    host: target,
    connection: 'keep-alive',
    ...(authorization !== undefined && { 'proxy-authorization': authorization }),
  }
  const asked = request({
    ...{ method: 'CONNECT', path: target, headers, maxHeaderSize: MAX_HEADER_BYTES },
    createConnection: () => socket,
  })
  const broken = (error: unknown) => failed(`broke the connection${codeOf(error)}`, error)
  asked.on('error', guarded(broken, broken))
  const answered = ({ statusCode = 0 }: { statusCode?: number }, opened: Socket, first: Buffer) => {
    if (statusCode < 200 || statusCode > 299) {
      return failed(`refused the connection with status ${statusCode}`, undefined, statusCode)
    }
    if (first.length > 0) opened.unshift(first)
    end(null, opened)
  }
  asked.once('connect', guarded(answered, broken))
  asked.end()
}

function codeOf(error: unknown): string {
  const code: unknown = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && !code.startsWith('UND_ERR') ? `: ${code}` : ''
}
