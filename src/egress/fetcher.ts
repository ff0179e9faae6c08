/** Gets what stands at addresses that providers gave, on origins of others: through the guard, and without credentials. */
import { errors, GatewayError } from '../core/error.ts'
import { ByteBuffer } from '../lib/byte-buffer.ts'
import { Deadline } from '../lib/timer.ts'
import { fetchOptions } from './fetch-options.ts'
import { nameServers, type Resolve } from './guard.ts'
import { SingleClient } from './single-client.ts'

/** What an address gave. */
export interface Fetched {
  readonly status: number
  /** Of a redirect: where to. */
  readonly location: string | undefined
  readonly retryAfter: string | undefined
  readonly content: Buffer
}

/** The bounds of one fetch. */
interface ProviderFetch {
  readonly maxBytes: number
  /** Called with the number of bytes before they are stored; may throw. */
  readonly take: (bytes: number) => void
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** Fetches with a connection of its own each, to public https addresses and allowed origins only. */
export class ProviderFetcher {
  readonly #allowed: ReadonlySet<string>
  readonly #resolve: Resolve

  /** `allowed`: origins that are fetched from though they are not public, or not https. */
  constructor(allowed: readonly string[], resolve: Resolve = nameServers()) {
    this.#allowed = new Set(allowed.map(origin => new URL(origin).origin))
    this.#resolve = resolve
  }

  /** One request, without following. Rejects with a 502 that shows nothing of the address. */
  async get(url: URL, { maxBytes, take, timeoutMs, signal }: ProviderFetch): Promise<Fetched> {
    const options = fetchOptions(url, this.#allowed, this.#resolve, timeoutMs)
    if (!options) throw errors.invalidAnswer('an address in it is not one that may be fetched from')
    const deadline = new Deadline(timeoutMs, signal)
    const client = new SingleClient(url, options, deadline.signal)
    try {
      const { statusCode, headers, body } = await client.request({
        headers: { accept: '*/*', 'accept-encoding': 'identity' },
      })
      const content = new ByteBuffer()
      for await (const chunk of body as AsyncIterable<Buffer>) {
        if (content.size + chunk.length > maxBytes) throw tooLarge(maxBytes)
        take(chunk.length)
        content.add(chunk)
      }
      const { location, 'retry-after': retryAfter } = headers
      return {
        status: statusCode,
        location: textOf(location),
        retryAfter: textOf(retryAfter),
        content: content.take(),
      }
    } catch (thrown) {
      throw thrown instanceof GatewayError ? thrown : errors.unreachable('an address in its answer cannot be reached')
    } finally {
      deadline.end()
      client.destroy()
    }
  }
}

/** The 502 for a file or state that is larger than may be fetched. */
export const tooLarge = (maxBytes: number): GatewayError =>
  errors.invalidAnswer(`the content at an address in it is larger than ${maxBytes} bytes`)

const textOf = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header[0] : header
