/** One request to an address that others gave: on a connection of its own, which ends with it. */
import { Client, type Dispatcher } from 'undici'
import { type SocketClientOptions, UpstreamSocket } from './socket.ts'

/** Interim answers (1xx) before an answer that is read: clients bound the head of each, and not how many there are. */
export const MAX_INTERIM = 16

/** A request to send; by default a GET without a body. */
interface SingleRequest {
  readonly method?: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** A client for one request; `destroy` must be called. No socket is kept: strangers choose the addresses. */
export class SingleClient {
  readonly #url: URL
  readonly #signal: AbortSignal
  readonly #line: UpstreamSocket
  readonly #client: Client

  /** When `signal` aborts the client is destroyed: by itself undici would wait for a socket that connects. */
  constructor(url: URL, { connect, ...options }: SocketClientOptions, signal: AbortSignal) {
    this.#url = url
    this.#signal = signal
    this.#line = new UpstreamSocket(connect)
    this.#client = new Client(url.origin, { ...options, pipelining: 0, connect: this.#line.connect })
    signal.addEventListener('abort', this.#abort, { once: true })
  }

  /**
   * Resolves with the answer. That, and its body, fail with the reason of `signal` when it aborts.
   */
  async request({ method = 'GET', headers, body }: SingleRequest): Promise<Dispatcher.ResponseData> {
    this.#signal.throwIfAborted()
    const { pathname, search } = this.#url
    const answer = await this.#client.request({
      method,
      path: pathname + search,
      headers,
      ...(body !== undefined && { body }),
      onInfo: interimBound(),
    })
    // The unread rest fails, and nothing awaits it.
    answer.body.on('error', () => undefined)
    return answer
  }

  destroy(): void {
    this.#signal.removeEventListener('abort', this.#abort)
    this.#end(new Error('the request has ended'))
  }

  readonly #abort = (): void => {
    const { reason } = this.#signal
    this.#end(reason instanceof Error ? reason : new Error('the request was aborted', { cause: reason }))
  }

  #end(reason: Error): void {
    this.#client.destroy(reason).catch(() => undefined)
    this.#line.cancelConnect(reason)
  }
}

/** The `onInfo` of one request of undici; throws, which ends the request, beyond `MAX_INTERIM`. */
function interimBound(): () => void {
  let count = 0
  return () => {
    if (++count > MAX_INTERIM) throw new Error('the server sends too many interim answers')
  }
}
