/** Which web pages may read the answers of the public API (Fetch standard, section 3.3). Never with cookies. */
import type { IncomingMessage } from 'node:http'

/** Paths that web pages may call. */
const PREFIXES = ['/v1/', '/v1beta/', '/v2/ai/', '/v3/ai/', '/v4/ai/'] as const
const isOpen = (path: string): boolean => PREFIXES.some(prefix => path.startsWith(prefix))
const ANY = '*'
/** Seconds for which a browser may cache a preflight answer. */
const MAX_AGE = '86400'

/** Response headers that a page may read besides the always readable ones. */
const EXPOSED = [
  'x-request-id',
  'request-id',
  'retry-after',
  'x-should-retry',
  'ratelimit-policy',
  'ratelimit',
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-gateway-cache',
  'x-gateway-log-id',
  'x-gateway-provider',
  'x-gateway-model',
  'x-gateway-cost',
].join(', ')
/** For preflights that do not say which headers will be sent. */
const USUAL_HEADERS = 'authorization, content-type, x-api-key, x-request-id'
const HEADER_NAMES = /^[\w!#$%&'*+.^`|~, -]{1,4096}$/

/** Names and values in turn. */
type HeaderList = readonly string[]
const none: HeaderList = []
const byOrigin: HeaderList = ['vary', 'origin']

/** Headers for an allowed origin. `page` applies when the request names its origin, as browsers do for other sites. */
interface Permission {
  readonly plain: HeaderList
  readonly page: HeaderList
}

function permission(origin: string, vary: HeaderList): Permission {
  const plain = ['access-control-allow-origin', origin, ...vary]
  return { plain, page: [...plain, 'access-control-expose-headers', EXPOSED] }
}

/**
 * Headers for browsers, for paths of the public API alone; the server adds them to answers, refusals and preflights.
 */
export class Cors {
  readonly #on: boolean
  readonly #all: Permission | undefined
  readonly #listed: ReadonlyMap<string, Permission>
  /** Headers for origins that are not allowed. */
  readonly #refused: HeaderList

  /** `*` stands for every origin; an empty list turns all of it off. */
  constructor(origins: readonly string[]) {
    const listed = origins.map(origin => origin.toLowerCase())
    this.#on = origins.length > 0
    this.#all = origins.includes(ANY) ? permission(ANY, none) : undefined
    this.#listed = new Map(listed.map(origin => [origin, permission(origin, byOrigin)]))
    this.#refused = this.#on ? byOrigin : none
  }

  /** Returns the headers of every answer at `path`, errors included. */
  headers(path: string, { headers: { origin } }: IncomingMessage): HeaderList {
    if (!isOpen(path)) return none
    const allowed = this.#permissionOf(origin)
    if (!allowed) return this.#refused
    return origin === undefined ? allowed.plain : allowed.page
  }

  /** Headers of the answer to an unreadable request, whose path and origin are unknown. */
  get unread(): HeaderList {
    return this.#all?.plain ?? none
  }

  /** Whether the request is a browser's preflight for `path`. */
  isPreflight(path: string, { method, headers }: IncomingMessage): boolean {
    return method === 'OPTIONS' && this.#on && headers['access-control-request-method'] !== undefined && isOpen(path)
  }

  /** Returns the headers of a preflight answer; `methods` are those of the path. */
  preflight({ headers }: IncomingMessage, methods: readonly string[]): HeaderList {
    const varies = ['vary', 'access-control-request-headers']
    const allowed = this.#permissionOf(headers.origin)
    if (!allowed) return [...this.#refused, ...varies]
    const wanted = headers['access-control-request-headers'] ?? ''
    return [
      ...[...allowed.plain, ...varies],
      ...['access-control-allow-methods', methods.join(', ')],
      ...['access-control-allow-headers', HEADER_NAMES.test(wanted) ? wanted : USUAL_HEADERS],
      ...['access-control-max-age', MAX_AGE],
    ]
  }

  #permissionOf(origin: string | undefined): Permission | undefined {
    return this.#all ?? (origin === undefined ? undefined : this.#listed.get(origin))
  }
}
