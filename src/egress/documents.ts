/** Reads small JSON documents at addresses of strangers: public ones, by https, without redirects. */
import { LRUCache } from 'lru-cache'
import type { DocumentSource } from '../core/ports.ts'
import { errors, GatewayError } from '../lib/error.ts'
import { DAY_MS, MINUTE_MS } from '../lib/period.ts'
import { FairShare } from '../limits/share.ts'
import type { Fetcher } from './fetcher.ts'
import { AddressNotAllowed } from './redirects.ts'

const TOTAL_MS = 5_000
const MAX_DOCUMENT_BYTES = 5 * 1024
/** Key sets of an identity provider. */
const MAX_TRUSTED_BYTES = 1024 * 1024
const MAX_CACHED_DOCUMENTS = 1_000
/** At the same time, of all strangers together; and what one reader may have of those. */
const MAX_FETCHES = 16
const TENANT_SHARE = 1 / 4
const FORM_TYPE = 'application/x-www-form-urlencoded'
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;.*)?$/i

/** A document, or what kept it from being read. */
interface Kept {
  readonly text: string | GatewayError
  /** In the fetcher's clock. */
  readonly until: number
}

/** The `DocumentSource` of OAuth client metadata; keeps documents, and failures for a minute. */
export class DocumentFetcher implements DocumentSource {
  readonly #fetcher: Fetcher
  readonly #now: () => number
  readonly #kept = new LRUCache<string, Kept>({ max: MAX_CACHED_DOCUMENTS })
  /** One fetch of an address at a time. */
  readonly #running = new Map<string, Promise<Kept>>()
  readonly #places = new FairShare(MAX_FETCHES, undefined, { alone: TENANT_SHARE, contended: TENANT_SHARE })

  /** `now` is monotonic, in milliseconds: a document is kept for a time, whatever becomes of the wall clock. */
  constructor(fetcher: Fetcher, now: () => number = () => performance.now()) {
    this.#fetcher = fetcher
    this.#now = now
  }

  async read(url: string, reader: string): Promise<string> {
    const kept = this.#kept.get(url)
    const { text } = kept && kept.until > this.#now() ? kept : await this.#fetch(url, reader)
    if (typeof text === 'string') return text
    throw text
  }

  async readTrusted(
    url: string,
    timeoutMs: number,
    form?: string,
    basic?: string,
  ): Promise<{ status: number; text: string }> {
    const authorization = basic === undefined ? {} : { authorization: `Basic ${Buffer.from(basic).toString('base64')}` }
    const { status, content } = await this.#fetcher.read(new URL(url), {
      ...(form !== undefined && { form: { body: form, headers: { 'content-type': FORM_TYPE, ...authorization } } }),
      ...{ accept: 'application/json', timeoutMs, isTrusted: true, maxBytes: MAX_TRUSTED_BYTES },
      tooLarge: () => new Error(`${url} holds more than ${MAX_TRUSTED_BYTES} bytes`),
    })
    return { status, text: content.toString('utf8') }
  }

  #fetch(url: string, reader: string): Promise<Kept> {
    const running = this.#running.get(url)
    if (running) return running
    if (!this.#places.acquire(reader)) return Promise.reject(errors.overloaded())
    const kept = this.#get(new URL(url))
      .catch((thrown: unknown): Kept => {
        const isAllowed = !(thrown instanceof AddressNotAllowed)
        const why = isAllowed ? 'its server cannot be reached' : 'it is at no public https address'
        return { text: thrown instanceof GatewayError ? thrown : unread(why), until: this.#now() + MINUTE_MS }
      })
      .then(kept => {
        this.#kept.set(url, kept)
        return kept
      })
      .finally(() => {
        this.#running.delete(url)
        this.#places.release(reader)
      })
    this.#running.set(url, kept)
    return kept
  }

  async #get(url: URL): Promise<Kept> {
    const { content, header } = await this.#fetcher.read(url, {
      accept: 'application/json',
      timeoutMs: TOTAL_MS,
      maxBytes: MAX_DOCUMENT_BYTES,
      tooLarge: () => unread(`it is larger than ${MAX_DOCUMENT_BYTES} bytes`),
      check({ status, header }) {
        if (status !== 200) throw unread(`its server answers ${status}`)
        const isPlain = (header('content-encoding') ?? 'identity') === 'identity'
        if (!isPlain || !JSON_TYPE.test(header('content-type') ?? '')) throw unread('it is no plain JSON')
      },
    })
    return { text: content.toString('utf8'), until: this.#now() + lifeOf(header('cache-control')) }
  }
}

/** As its server says, between a minute and a day. */
function lifeOf(control = ''): number {
  const text = control.toLowerCase()
  if (/\bno-(?:store|cache)\b/.test(text)) return MINUTE_MS
  const seconds = Number(/\bmax-age=(\d{1,9})/.exec(text)?.[1] ?? 0)
  return Math.min(DAY_MS, Math.max(MINUTE_MS, seconds * 1000))
}

const unread = (why: string) =>
  new GatewayError({ status: 502, type: 'upstream_error', code: 'document_unread', message: `It is not read: ${why}.` })
