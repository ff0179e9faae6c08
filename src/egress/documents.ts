/** Reads small JSON documents at addresses of strangers: public ones, by https, without redirects. */
import { LRUCache } from 'lru-cache'
import type { Dispatcher } from 'undici'
import { errors, GatewayError } from '../core/error.ts'
import type { DocumentSource } from '../core/ports.ts'
import { Deadline } from '../lib/timer.ts'
import { fetchOptions } from './fetch-options.ts'
import { nameServers, type Resolve } from './guard.ts'
import { SingleClient } from './single-client.ts'

const TOTAL_MS = 5_000
const MAX_BYTES = 5 * 1024
const MAX_KEPT = 1_000
/** At the same time: of all strangers together, and for one reader. */
const MAX_FETCHES = 16
const MAX_OF_READER = 4
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;.*)?$/i

/** Which addresses are allowed, how names are resolved, and the clock of the cache. */
interface DocumentFetcherOptions {
  /** Origins that are fetched from though they are not public, not https or on another port. */
  readonly allowed: readonly string[]
  readonly resolve?: Resolve
  /** Monotonic, in milliseconds: a document is kept for a time, whatever becomes of the wall clock. */
  readonly now?: () => number
}

/** A document, or what kept it from being read. */
interface Kept {
  readonly text: string | GatewayError
  /** In the fetcher's clock. */
  readonly until: number
}

/** The `DocumentSource` of OAuth client metadata; keeps documents, and failures for a minute. */
export class DocumentFetcher implements DocumentSource {
  readonly #allowed: ReadonlySet<string>
  readonly #resolve: Resolve
  readonly #now: () => number
  readonly #kept = new LRUCache<string, Kept>({ max: MAX_KEPT })
  /** One fetch of an address at a time. */
  readonly #running = new Map<string, { readonly reader: string; readonly kept: Promise<Kept> }>()

  constructor({ allowed, resolve = nameServers(), now = () => performance.now() }: DocumentFetcherOptions) {
    this.#allowed = new Set(allowed.map(origin => new URL(origin).origin))
    this.#resolve = resolve
    this.#now = now
  }

  async read(url: string, reader: string): Promise<string> {
    const kept = this.#kept.get(url)
    const { text } = kept && kept.until > this.#now() ? kept : await this.#fetch(url, reader)
    if (typeof text === 'string') return text
    throw text
  }

  #fetch(url: string, reader: string): Promise<Kept> {
    const running = this.#running.get(url)
    if (running) return running.kept
    const own = [...this.#running.values()].filter(one => one.reader === reader).length
    if (this.#running.size >= MAX_FETCHES || own >= MAX_OF_READER) return Promise.reject(errors.overloaded())
    const kept = this.#get(new URL(url))
      .catch((thrown: unknown): Kept => {
        const text = thrown instanceof GatewayError ? thrown : unread('its server cannot be reached')
        return { text, until: this.#now() + MINUTE_MS }
      })
      .then(kept => {
        this.#kept.set(url, kept)
        return kept
      })
      .finally(() => this.#running.delete(url))
    this.#running.set(url, { reader, kept })
    return kept
  }

  async #get(url: URL): Promise<Kept> {
    const options = fetchOptions(url, this.#allowed, this.#resolve, TOTAL_MS)
    if (!options) throw unread('it is at no public https address')
    const deadline = new Deadline(TOTAL_MS)
    const client = new SingleClient(url, options, deadline.signal)
    try {
      const answer = await client.request({
        headers: { accept: 'application/json', 'accept-encoding': 'identity' },
      })
      const text = await readText(answer)
      return { text, until: this.#now() + lifeOf(answer.headers['cache-control']) }
    } finally {
      deadline.end()
      client.destroy()
    }
  }
}

async function readText({ statusCode, headers, body }: Dispatcher.ResponseData): Promise<string> {
  if (statusCode !== 200) throw unread(`its server answers ${statusCode}`)
  const { 'content-type': type, 'content-encoding': coding = 'identity' } = headers
  if (typeof type !== 'string' || !JSON_TYPE.test(type) || coding !== 'identity') throw unread('it is no plain JSON')
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MAX_BYTES) throw unread(`it is larger than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** As its server says, between a minute and a day. */
function lifeOf(control: string | string[] | undefined): number {
  const text = String(control ?? '').toLowerCase()
  if (/\bno-(?:store|cache)\b/.test(text)) return MINUTE_MS
  const seconds = Number(/\bmax-age=(\d{1,9})/.exec(text)?.[1] ?? 0)
  return Math.min(DAY_MS, Math.max(MINUTE_MS, seconds * 1000))
}

const unread = (why: string) =>
  new GatewayError({ status: 502, type: 'upstream_error', code: 'document_unread', message: `It is not read: ${why}.` })
