/** Fetches images from addresses that clients gave, for wires that take none. */
import { Client, type Dispatcher } from 'undici'
import { errors, GatewayError } from '../core/error.ts'
import { FairSlots } from '../core/fair-slots.ts'
import type { MediaFetcher } from '../core/ports.ts'
import { IMAGE_HEAD, imageType } from '../lib/image-type.ts'
import { Deadline } from '../lib/timer.ts'
import { fetchOptions, MAX_REDIRECTS, REDIRECTS } from './fetch-options.ts'
import { nameServers, type Resolve } from './guard.ts'

const TOTAL_MS = 10_000
const MAX_BYTES = 20 * 1024 * 1024
/** At the same time, for all requests together, so that no one is flooded through this gateway; shared by tenants. */
const MAX_FETCHES = 64

export interface ClientFetcherOptions {
  /** Origins that are fetched from though they are not public, not https or on another port. */
  readonly allowed: readonly string[]
  readonly resolve?: Resolve
  readonly totalMs?: number
  readonly maxBytes?: number
}

interface Fetch {
  readonly param: string
  readonly take: (bytes: number) => void
  readonly signal: AbortSignal
}

export class ClientFetcher implements MediaFetcher {
  readonly #allowed: ReadonlySet<string>
  readonly #resolve: Resolve
  readonly #totalMs: number
  readonly #maxBytes: number
  readonly #slots = new FairSlots(MAX_FETCHES)

  constructor({ allowed, resolve = nameServers(), totalMs = TOTAL_MS, maxBytes = MAX_BYTES }: ClientFetcherOptions) {
    this.#allowed = new Set(allowed.map(origin => new URL(origin).origin))
    this.#resolve = resolve
    this.#totalMs = totalMs
    this.#maxBytes = maxBytes
  }

  /**
   * All that keeps us from an address looks the same: a 400 `url_not_allowed`. What a public server gives that is no
   * image is `not_an_image` or `image_too_large`.
   */
  async image(
    url: string,
    param: string,
    take: (bytes: number) => void,
    signal: AbortSignal,
    tenant: string,
  ): Promise<string> {
    const deadline = new Deadline(this.#totalMs, signal)
    try {
      await this.#enter(tenant, deadline.signal)
      try {
        return await this.#follow(url, { param, take, signal: deadline.signal })
      } finally {
        this.#slots.leave(tenant)
      }
    } catch (thrown) {
      throw thrown instanceof GatewayError ? thrown : errors.urlNotFetched(param)
    } finally {
      deadline.end()
    }
  }

  async #follow(url: string, fetch: Fetch): Promise<string> {
    let address = new URL(url)
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      const got = await this.#get(address, fetch)
      if (typeof got === 'string') return got
      address = got
    }
    throw errors.urlNotFetched(fetch.param)
  }

  /** The image, or where it is said to be. A client for each: addresses that others choose are not kept. */
  async #get(url: URL, fetch: Fetch): Promise<string | URL> {
    const options = fetchOptions(url, this.#allowed, this.#resolve, this.#totalMs)
    if (!options) throw errors.urlNotFetched(fetch.param)
    const client = new Client(url.origin, options)
    try {
      const answer = await client.request({
        method: 'GET',
        path: url.pathname + url.search,
        headers: { accept: 'image/png, image/jpeg, image/gif, image/webp', 'accept-encoding': 'identity' },
        signal: fetch.signal,
      })
      const { location } = answer.headers
      if (REDIRECTS.has(answer.statusCode) && typeof location === 'string') return new URL(location, url)
      return await this.#read(answer, fetch)
    } finally {
      // What was left unread fails, and nothing awaits it.
      client.destroy().catch(() => undefined)
    }
  }

  async #read({ statusCode, headers, body }: Dispatcher.ResponseData, { param, take }: Fetch): Promise<string> {
    body.on('error', () => undefined)
    if (statusCode !== 200) throw errors.notAnImage(`its server answers ${statusCode}`, param)
    const coding = headers['content-encoding']
    if (coding !== undefined && coding !== 'identity') throw errors.notAnImage('it is compressed', param)
    if (Number(headers['content-length'] ?? 0) > this.#maxBytes) throw errors.imageTooLarge(this.#maxBytes, param)
    const chunks: Buffer[] = []
    let size = 0
    let type: string | undefined
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > this.#maxBytes) throw errors.imageTooLarge(this.#maxBytes, param)
      take(chunk.length)
      chunks.push(chunk)
      if (type === undefined && size >= IMAGE_HEAD) type = typeOf(Buffer.concat(chunks), param)
    }
    const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
    return `data:${type ?? typeOf(bytes, param)};base64,${bytes.toString('base64')}`
  }

  /** Resolves when the tenant has a slot; rejects when time is over. */
  #enter(tenant: string, limit: AbortSignal): Promise<void> | undefined {
    limit.throwIfAborted()
    if (this.#slots.take(tenant)) return undefined
    return new Promise((resolve, reject) => {
      const go = () => {
        limit.removeEventListener('abort', leave)
        resolve()
      }
      const leave = () => {
        this.#slots.ignore(tenant, go)
        reject(limit.reason)
      }
      limit.addEventListener('abort', leave, { once: true })
      this.#slots.wait(tenant, go)
    })
  }
}

function typeOf(bytes: Buffer, param: string): string {
  const type = imageType(bytes)
  if (type === undefined) throw errors.notAnImage('its first bytes are those of none', param)
  return type
}
