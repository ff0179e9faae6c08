/** Fetches images and audio at addresses of clients, for wires that take none (docs/contract.md#fetched-addresses). */

import type { FetchedFile, MediaFetch, MediaFetcher } from '../core/ports.ts'
import { errors, GatewayError } from '../lib/error.ts'
import { Deadline } from '../lib/timer.ts'
import { FairShare } from '../limits/share.ts'
import { imageType } from '../media/type.ts'
import type { Fetched, Fetcher, FetchPolicy, Head } from './fetcher.ts'
import { followRedirects, isRedirect } from './redirects.ts'

/** `server.fetch` of gateway.yaml: sizes in bytes, times in milliseconds. */
export interface FetchBounds {
  /** Fetches at a time of all requests together, so that no host is flooded through this gateway; shared by tenants. */
  readonly concurrency: number
  readonly image_size: number
  readonly image_time: number
  readonly audio_size: number
  readonly audio_time: number
}

/** The `MediaFetcher` of the gateway; fetches at the same time are bounded, with a share for each organization. */
export class ClientFetcher implements MediaFetcher {
  readonly #fetcher: Fetcher
  readonly #bounds: FetchBounds
  readonly #places: FairShare

  constructor(fetcher: Fetcher, bounds: FetchBounds) {
    this.#fetcher = fetcher
    this.#bounds = bounds
    this.#places = new FairShare(bounds.concurrency)
  }

  /**
   * Rejects with the same 400 `url_not_allowed` for all that keeps us from an address. What a public server gives that is no
   * image is `not_an_image` or `image_too_large`.
   */
  async image(fetch: MediaFetch): Promise<string> {
    const { param } = fetch
    const { image_size: maxBytes, image_time: timeoutMs } = this.#bounds
    const { content } = await this.#fetch(fetch, {
      maxBytes,
      timeoutMs,
      accept: 'image/png, image/jpeg, image/gif, image/webp',
      tooLarge: () => errors.imageTooLarge(maxBytes, param),
      check(head) {
        if (head.status !== 200) throw errors.notAnImage(`its server answers ${head.status}`, param)
        if (isCompressed(head)) throw errors.notAnImage('it is compressed', param)
      },
    })
    const type = imageType(content)
    if (type === undefined) throw errors.notAnImage('its first bytes are those of none', param)
    return `data:${type};base64,${content.toString('base64')}`
  }

  /** Gets audio, by which any file is meant: providers know more formats than we. Too large is a 413. */
  async audio(fetch: MediaFetch): Promise<FetchedFile> {
    const { param } = fetch
    const { audio_size: maxBytes, audio_time: timeoutMs } = this.#bounds
    const { content, header } = await this.#fetch(fetch, {
      maxBytes,
      timeoutMs,
      accept: 'audio/*, video/*, application/octet-stream',
      tooLarge: () => errors.fileTooLarge(maxBytes, param),
      check(head) {
        if (head.status !== 200 || isCompressed(head)) throw errors.urlNotFetched(param)
      },
    })
    if (content.length === 0) throw errors.urlNotFetched(param)
    return { pieces: [content], contentType: header('content-type') ?? '' }
  }

  async #fetch({ url, param, signal, tenant, take }: MediaFetch, policy: FetchPolicy): Promise<Fetched> {
    const deadline = new Deadline(policy.timeoutMs, signal)
    const refuse = () => errors.urlNotFetched(param)
    const check = (head: Head) => {
      if (!isRedirect(head)) policy.check?.(head)
    }
    const bounded: FetchPolicy = { ...policy, check, take, signal: deadline.signal }
    try {
      const fetched = await this.#places.during(tenant, { signal: leaving(deadline.signal) }, () =>
        followRedirects(url, address => this.#fetcher.read(address, bounded), refuse),
      )
      if (!fetched) throw deadline.signal.reason
      return fetched
    } catch (thrown) {
      throw thrown instanceof GatewayError ? thrown : refuse()
    } finally {
      deadline.end()
    }
  }
}

const isCompressed = ({ header }: Head): boolean => (header('content-encoding') ?? 'identity') !== 'identity'

/** Listens to `signal`, also where it has aborted already. */
const leaving = (signal: AbortSignal) => ({
  listen(left: () => void) {
    signal.addEventListener('abort', left, { once: true })
    if (signal.aborted) left()
  },
  ignore: (left: () => void) => signal.removeEventListener('abort', left),
})
