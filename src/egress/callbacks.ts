/** Posts to addresses that clients gave: public ones, over https, each resolved once and connected to as it was checked. */
import { isPublicHost } from '../core/address.ts'
import type { CallbackPoster } from '../core/ports.ts'
import type { Egress } from '../lib/egress.ts'
import { errors } from '../lib/error.ts'
import { Deadline } from '../lib/timer.ts'
import { urlOf } from '../lib/url.ts'
import { Fetcher } from './fetcher.ts'
import { nameServers, type Resolve } from './guard.ts'

const MAX_URL_CHARACTERS = 2048
const MAX_ANSWER_CHARACTERS = 4_000
/** UTF-8 has up to four bytes for a character. */
const MAX_ANSWER_BYTES = 4 * MAX_ANSWER_CHARACTERS
const HTTPS = 443
const FIRST_FREE_PORT = 1024
const INTERNAL = /(?:^|\.)(?:localhost|local|internal)\.?$/i

/** The `CallbackPoster` of jobs, with a connection of its own for each post. */
export class HttpCallbackPoster implements CallbackPoster {
  readonly #egress: () => Egress | undefined
  readonly #resolve: Resolve

  constructor(resolve: Resolve = nameServers(), egress: () => Egress | undefined = () => undefined) {
    this.#egress = egress
    this.#resolve = resolve
  }

  /** Throws a 400 `url_not_allowed`, which looks the same for every cause. */
  check(url: string, allowed: readonly string[]): void {
    if (!isCallbackAllowed(url, allowed)) throw errors.callbackNotAllowed()
  }

  /** Rejects with an Error whose message shows nothing of what is inside. Redirects are not followed. */
  async post(given: string, allowed: readonly string[], headers: Record<string, string>, body: string, ms: number) {
    this.check(given, allowed)
    const origins = isAllowed(given, allowed) ? allowed : []
    const deadline = new Deadline(ms)
    try {
      const answer = await new Fetcher(origins, this.#resolve, this.#egress).open(new URL(given), {
        ...{ method: 'POST', headers, body, timeoutMs: ms, signal: deadline.signal, anyPort: true },
      })
      try {
        return { status: answer.status, text: await beginningOf(answer.chunks) }
      } finally {
        answer.destroy()
      }
    } catch (cause) {
      throw new Error(deadline.signal.aborted ? 'it did not answer in time' : 'it could not be reached', { cause })
    } finally {
      deadline.end()
    }
  }
}

/** Whether callbacks may go to an address. `allowed` are the origins that may be private or plain http. */
export const isCallbackAllowed = (url: string, allowed: readonly string[]): boolean =>
  isAllowed(url, allowed) || isPublicTarget(url)

function isAllowed(given: string, allowed: readonly string[]): boolean {
  const url = given.length > MAX_URL_CHARACTERS ? undefined : urlOf(given)
  if (!url) return false
  const { origin, username, password, hash } = url
  return username === '' && password === '' && hash === '' && allowed.some(one => new URL(one).origin === origin)
}

function isPublicTarget(given: string): boolean {
  const url = given.length > MAX_URL_CHARACTERS ? undefined : urlOf(given)
  if (!url) return false
  const { protocol, username, password, hash, hostname, port } = url
  const isPortFree = port === '' || Number(port) === HTTPS || Number(port) >= FIRST_FREE_PORT
  const isPlain = username === '' && password === '' && hash === '' && !given.endsWith('#')
  return protocol === 'https:' && isPlain && isPortFree && !INTERNAL.test(hostname) && isPublicHost(hostname)
}

async function beginningOf(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of body) {
      chunks.push(chunk)
      size += chunk.length
      if (size >= MAX_ANSWER_BYTES) break
    }
  } catch {
    // The part that was read before the break is enough.
  }
  return Buffer.concat(chunks).subarray(0, MAX_ANSWER_BYTES).toString('utf8').slice(0, MAX_ANSWER_CHARACTERS)
}
