/** Fetches a request's audio for targets that take files only (docs/contract.md#fetched-addresses). */

import type { Exchange } from '../../core/exchange.ts'
import type { Ops } from '../../core/ops.ts'
import type { Services } from '../../core/ports.ts'
import type { Target } from '../../core/translator.ts'
import { Upload } from '../../lib/body.ts'
import { errors } from '../../lib/error.ts'
import { AUDIO_HEAD_BYTES, fileTypeOf } from '../../media/audio-type.ts'
import { isPublicUrl } from './addresses.ts'
import { MediaLease, mediaTypeIn, Refusals } from './media-lease.ts'

const PARAM = 'url'

type Request = Ops['transcriptions']

/** Fetches an address once for all attempts of a request, and keeps the file until the request ends. */
export class Audio {
  readonly #services: Pick<Services, 'media' | 'memory'>
  readonly #refusals = new Refusals()
  readonly #leases = new WeakMap<Exchange, MediaLease>()

  constructor(services: Pick<Services, 'media' | 'memory'>) {
    this.#services = services
  }

  /**
   * Undefined when `target` takes the request as it is. Else the exchange's request gets the file in the place of its
   * address, for this attempt and those after it. Rejects with the 400 or 413 that names the address.
   */
  fetched(ex: Exchange, target: Target): Promise<void> | undefined {
    const request = ex.request!
    if (!('file' in request)) return undefined
    if (request.url === undefined) {
      if (this.#leases.has(ex)) assertFits(request, target)
      return undefined
    }
    const takesUrls = target.translator.takesUrls && !target.provider.inlineMedia
    if (takesUrls && /^https:/i.test(request.url) && isPublicUrl(request.url)) return undefined
    return this.#fetch(ex, request, target)
  }

  /** The request has ended. */
  release(ex: Exchange): void {
    this.#leases.get(ex)?.release()
  }

  async #fetch(ex: Exchange, request: Request, target: Target): Promise<void> {
    this.#refusals.check(ex, target)
    const { media, memory } = this.#services
    const lease = new MediaLease(ex, memory)
    this.#leases.set(ex, lease)
    const { tenant, signal } = lease
    const fetch = { url: request.url!, param: PARAM, tenant, signal, take: (bytes: number) => lease.take(bytes) }
    try {
      const { pieces, contentType } = await lease.during(ex, () => media.audio(fetch))
      const file = new Upload(pieces, mediaTypeIn(contentType), extensionOf(fetch.url))
      const fileType = fileTypeOf(file.head(AUDIO_HEAD_BYTES), file.extension, file.contentType)
      const fetched: Request = { ...request, url: undefined, file, fileType }
      await ex.operation.inspect?.(fetched)
      ex.request = fetched
    } catch (thrown) {
      lease.release()
      throw this.#refusals.keep(ex, thrown, target)
    }
    assertFits(ex.request as Request, target)
  }
}

function assertFits({ file }: Request, { mapping: { maxFile = Infinity } }: Target): void {
  if (file!.size > maxFile) throw errors.fileTooLarge(maxFile, PARAM).with({ failover: true })
}

/** Returns the file extension of an address. */
const extensionOf = (url: string): string => /\.([a-z0-9]{1,8})$/i.exec(new URL(url).pathname)?.[1]?.toLowerCase() ?? ''
