/** Requests to addresses that others gave: clients, providers, registrants (docs/contract.md#fetched-addresses). */
import { ByteBuffer } from '../lib/byte-buffer.ts'
import type { Egress } from '../lib/egress.ts'
import { Deadline } from '../lib/timer.ts'
import { guardedConnector, nameServers, type Resolve } from './guard.ts'
import { plainConnector } from './paused-answers.ts'
import { AddressNotAllowed, isRedirect } from './redirects.ts'
import { SingleClient } from './single-client.ts'
import type { SocketClientOptions } from './socket.ts'

const CONNECT_MS = 5_000
const MAX_HEADER_BYTES = 16 * 1024
const NOTHING = Buffer.alloc(0)

/** Status and headers of an answer; a header by its name in lower case. */
export interface Head {
  readonly status: number
  header(name: string): string | undefined
}

/** An answer whose content comes while it is read. */
interface OpenAnswer extends Head {
  readonly chunks: AsyncIterable<Buffer>
  /** Ends the connection. Must be called. */
  destroy(): void
}

/** A whole answer; of a redirect, without its content. */
export interface Fetched extends Head {
  readonly content: Buffer
}

/** How one connection leaves. */
interface ConnectionOptions {
  /** In place of the fetcher's. */
  readonly egress?: Egress | undefined
  /** The operator has chosen the address: it is as good as one that is allowed. */
  readonly isTrusted?: boolean
}

/** A request to send, GET by default, with the time limit of its answer. */
type OpenRequest = {
  readonly method?: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Until the head of the answer has come. */
  readonly timeoutMs: number
  /** Between two chunks of the answer; `timeoutMs` by default. */
  readonly idleMs?: number
  readonly signal: AbortSignal
  /** Tries public addresses on other ports, too. */
  readonly anyPort?: boolean
} & ConnectionOptions

/** How `read` is bounded, and what it accepts. */
export interface FetchPolicy extends ConnectionOptions {
  readonly accept: string
  /** Sent by POST. */
  readonly form?: { readonly body: string; readonly headers: Readonly<Record<string, string>> }
  /** From the connection to the last byte. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  readonly maxBytes: number
  readonly tooLarge: () => Error
  /** Called with the head before the content is read; throws where that is not wanted. */
  readonly check?: (head: Head) => void
  /** Called with the number of bytes before they are stored; may throw. */
  readonly take?: (bytes: number) => void
}

/** Makes each request on a connection of its own, through the guard unless its origin is allowed. Follows no redirect. */
export class Fetcher {
  readonly #allowed: ReadonlySet<string>
  readonly #egress: () => Egress | undefined
  readonly #resolve: Resolve

  /** `allowed`: origins that are fetched from though they are not public, not https or on another port. */
  constructor(
    allowed: readonly string[],
    resolve: Resolve = nameServers(),
    egress: () => Egress | undefined = () => undefined,
  ) {
    this.#egress = egress
    this.#allowed = new Set(allowed.map(origin => new URL(origin).origin))
    this.#resolve = resolve
  }

  /** Whether the operator allows the origin of an address. */
  allows(url: URL): boolean {
    return this.#allowed.has(url.origin)
  }

  /** Resolves when the head has come. Rejects with an AddressNotAllowed, and with what breaks the connection. */
  async open(url: URL, request: OpenRequest): Promise<OpenAnswer> {
    const client = new SingleClient(url, this.#options(url, request), request.signal)
    try {
      const { statusCode, headers, body } = await client.request(request)
      const header = (name: string) => {
        const value = headers[name]
        return Array.isArray(value) ? value[0] : value
      }
      return { status: statusCode, header, chunks: body, destroy: () => client.destroy() }
    } catch (thrown) {
      client.destroy()
      throw thrown
    }
  }

  /** Resolves with the whole answer. Rejects like `open`, and with what the functions of the policy throw. */
  async read(url: URL, policy: FetchPolicy): Promise<Fetched> {
    const { accept, form, timeoutMs, check, egress, isTrusted } = policy
    const deadline = new Deadline(timeoutMs, policy.signal)
    const headers = { accept, 'accept-encoding': 'identity', ...form?.headers }
    try {
      const answer = await this.open(url, {
        ...{ headers, timeoutMs, signal: deadline.signal, egress },
        ...(isTrusted && { isTrusted }),
        ...(form && { method: 'POST', body: form.body }),
      })
      try {
        const { status, header } = answer
        check?.(answer)
        return { status, header, content: isRedirect(answer) ? NOTHING : await contentOf(answer, policy) }
      } finally {
        answer.destroy()
      }
    } finally {
      deadline.end()
    }
  }

  #options(
    url: URL,
    { timeoutMs, idleMs = timeoutMs, anyPort = false, isTrusted = false, egress = this.#egress() }: OpenRequest,
  ): SocketClientOptions {
    const isAllowed = isTrusted || this.allows(url)
    const isTried = isAllowed || (url.protocol === 'https:' && (anyPort || url.port === ''))
    if (url.username !== '' || url.password !== '' || !isTried) throw new AddressNotAllowed()
    return {
      connect: isAllowed
        ? plainConnector({ timeout: CONNECT_MS, egress })
        : guardedConnector({ timeoutMs: CONNECT_MS, resolve: this.#resolve, egress }),
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: timeoutMs,
      bodyTimeout: idleMs,
    }
  }
}

async function contentOf({ header, chunks }: OpenAnswer, { maxBytes, tooLarge, take }: FetchPolicy): Promise<Buffer> {
  if (Number(header('content-length') ?? 0) > maxBytes) throw tooLarge()
  const content = new ByteBuffer()
  for await (const chunk of chunks) {
    if (content.size + chunk.length > maxBytes) throw tooLarge()
    take?.(chunk.length)
    content.add(chunk)
  }
  return content.take()
}
