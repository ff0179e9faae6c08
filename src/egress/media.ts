/** Fetches images and audio at addresses of clients, for wires that take none (docs/contract.md#fetched-addresses). */
import type { Dispatcher } from 'undici'
import { errors, GatewayError } from '../core/error.ts'
import type { FetchedFile, MediaFetch, MediaFetcher } from '../core/ports.ts'
import { ByteBuffer } from '../lib/byte-buffer.ts'
import { Deadline } from '../lib/timer.ts'
import { urlOf } from '../lib/url.ts'
import { FairShare } from '../limits/share.ts'
import { imageType } from '../media/type.ts'
import { fetchOptions } from './fetch-options.ts'
import { nameServers, type Resolve } from './guard.ts'
import { MAX_REDIRECTS, REDIRECTS } from './redirects.ts'
import { SingleClient } from './single-client.ts'

/** `server.fetch` of gateway.yaml: sizes in bytes, times in milliseconds. */
export interface FetchBounds {
  /** Fetches at a time of all requests together, so that no host is flooded through this gateway; shared by tenants. */
  readonly concurrency: number
  readonly image_size: number
  readonly image_time: number
  readonly audio_size: number
  readonly audio_time: number
}

/** Which addresses are allowed, how names are resolved, and the bounds of fetches. */
interface ClientFetcherOptions {
  /** Origins that are fetched from though they are not public, not https or on another port. */
  readonly allowed: readonly string[]
  readonly resolve?: Resolve
  readonly bounds: FetchBounds
}

type Answer = Dispatcher.ResponseData

/** What images and audio differ in. */
interface Kind<T> {
  readonly totalMs: number
  readonly accept: string
  /** Reads the content of an answer. Throws a GatewayError for the wrong type. */
  readonly read: (answer: Answer) => Promise<T>
}

/** Chunks as they come. Throws `tooLarge` beyond `maxBytes`, and what `take` throws. */
interface Reading {
  readonly maxBytes: number
  readonly tooLarge: () => GatewayError
  readonly take: (bytes: number) => void
}

/** Where an answer says that its content is; undefined for a place that is no address. */
class Redirect {
  readonly to: URL | undefined

  constructor(to: URL | undefined) {
    this.to = to
  }
}

/** The `MediaFetcher` of the gateway; fetches at the same time are bounded, with a share for each organization. */
export class ClientFetcher implements MediaFetcher {
  readonly #allowed: ReadonlySet<string>
  readonly #resolve: Resolve
  readonly #bounds: FetchBounds
  readonly #slots: FairShare

  constructor({ allowed, resolve = nameServers(), bounds }: ClientFetcherOptions) {
    this.#allowed = new Set(allowed.map(origin => new URL(origin).origin))
    this.#resolve = resolve
    this.#bounds = bounds
    this.#slots = new FairShare(bounds.concurrency)
  }

  /**
   * All that keeps us from an address looks the same: a 400 `url_not_allowed`. What a public server gives that is no
   * image is `not_an_image` or `image_too_large`.
   */
  image(fetch: MediaFetch): Promise<string> {
    const { param, take } = fetch
    const { image_size: maxBytes, image_time: totalMs } = this.#bounds
    const tooLarge = () => errors.imageTooLarge(maxBytes, param)
    return this.#fetch(fetch, {
      totalMs,
      accept: 'image/png, image/jpeg, image/gif, image/webp',
      read: answer => readImage(answer, param, { maxBytes, tooLarge, take }),
    })
  }

  /** The same of audio, by which any file is meant: providers know more formats than we. Too large is a 413. */
  audio(fetch: MediaFetch): Promise<FetchedFile> {
    const { param, take } = fetch
    const { audio_size: maxBytes, audio_time: totalMs } = this.#bounds
    const tooLarge = () => errors.fileTooLarge(maxBytes, param)
    return this.#fetch(fetch, {
      totalMs,
      accept: 'audio/*, video/*, application/octet-stream',
      read: answer => readFile(answer, param, { maxBytes, tooLarge, take }),
    })
  }

  async #fetch<T>(fetch: MediaFetch, kind: Kind<T>): Promise<T> {
    const { param, signal, tenant } = fetch
    const deadline = new Deadline(kind.totalMs, signal)
    try {
      if (!(await this.#slots.enter(tenant, { signal: leaving(deadline.signal) }))) throw deadline.signal.reason
      try {
        return await this.#follow(fetch, kind, deadline.signal)
      } finally {
        this.#slots.release(tenant)
      }
    } catch (thrown) {
      throw thrown instanceof GatewayError ? thrown : errors.urlNotFetched(param)
    } finally {
      deadline.end()
    }
  }

  async #follow<T>(fetch: MediaFetch, kind: Kind<T>, signal: AbortSignal): Promise<T> {
    const { url, param } = fetch
    let address = urlOf(url)
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      if (!address) break
      const got: T | Redirect = await this.#get(address, fetch, kind, signal)
      if (!(got instanceof Redirect)) return got
      address = got.to
    }
    throw errors.urlNotFetched(param)
  }

  /** What is there, or where it is said to be. */
  async #get<T>(
    url: URL,
    { param }: MediaFetch,
    { totalMs, accept, read }: Kind<T>,
    signal: AbortSignal,
  ): Promise<T | Redirect> {
    const options = fetchOptions(url, this.#allowed, this.#resolve, totalMs)
    if (!options) throw errors.urlNotFetched(param)
    const client = new SingleClient(url, options, signal)
    try {
      const answer = await client.request({ headers: { accept, 'accept-encoding': 'identity' } })
      const { location } = answer.headers
      if (REDIRECTS.has(answer.statusCode) && typeof location === 'string') return new Redirect(urlOf(location, url))
      return await read(answer)
    } finally {
      client.destroy()
    }
  }
}

/** Listens to `signal`, also where it has aborted already. */
const leaving = (signal: AbortSignal) => ({
  listen(left: () => void) {
    signal.addEventListener('abort', left, { once: true })
    if (signal.aborted) left()
  },
  ignore: (left: () => void) => signal.removeEventListener('abort', left),
})

async function readImage(answer: Answer, param: string, reading: Reading): Promise<string> {
  const { statusCode, headers } = answer
  if (statusCode !== 200) throw errors.notAnImage(`its server answers ${statusCode}`, param)
  if (isCompressed(headers)) throw errors.notAnImage('it is compressed', param)
  const bytes = await readAll(answer, reading)
  return `data:${typeOf(bytes, param)};base64,${bytes.toString('base64')}`
}

/** An empty file, a compressed one and a refusal of the server are nothing that could be fetched. */
async function readFile(answer: Answer, param: string, reading: Reading): Promise<FetchedFile> {
  const { statusCode, headers } = answer
  if (statusCode !== 200 || isCompressed(headers)) throw errors.urlNotFetched(param)
  const bytes = await readAll(answer, reading)
  if (bytes.length === 0) throw errors.urlNotFetched(param)
  const { 'content-type': type } = headers
  return { pieces: [bytes], contentType: typeof type === 'string' ? type : '' }
}

const isCompressed = ({ 'content-encoding': coding }: Answer['headers']): boolean =>
  coding !== undefined && coding !== 'identity'

async function readAll({ headers, body }: Answer, { maxBytes, tooLarge, take }: Reading): Promise<Buffer> {
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge()
  const bytes = new ByteBuffer()
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (bytes.size + chunk.length > maxBytes) throw tooLarge()
    take(chunk.length)
    bytes.add(chunk)
  }
  return bytes.take()
}

function typeOf(bytes: Buffer, param: string): string {
  const type = imageType(bytes)
  if (type === undefined) throw errors.notAnImage('its first bytes are those of none', param)
  return type
}
