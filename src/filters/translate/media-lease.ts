/** Holds memory for the files of one request, ends their fetches, and remembers those that failed. */
import { setMaxListeners } from 'node:events'
import type { Exchange } from '../../core/exchange.ts'
import type { Target } from '../../core/translator.ts'
import { errors, GatewayError } from '../../lib/error.ts'
import type { MemoryBudget, MemoryLease } from '../../limits/memory.ts'

/** At the same time for one request; each fetch listens to the signal. */
const MAX_FETCHES = 20

/** Memory of fetched files. The caller must `release` it at the end of the exchange. */
export class MediaLease {
  /** Organization whose share of memory and fetches is used. */
  readonly tenant: string
  readonly #stop = new AbortController()
  readonly #lease: MemoryLease

  constructor({ caller: { tenant } }: Exchange, memory: Pick<MemoryBudget, 'lease'>) {
    this.tenant = tenant
    this.#lease = memory.lease(tenant)
    setMaxListeners(MAX_FETCHES, this.#stop.signal)
  }

  /** Ends what is fetched. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** Throws 529 where there is no memory for so many bytes more, and once fetching has ended. */
  take(bytes: number): void {
    if (this.#stop.signal.aborted || !this.#lease.grow(bytes)) throw errors.overloaded()
  }

  /** Runs `work`. Its fetches are cancelled when it ends or the client disconnects. */
  async during<T>({ signal }: Exchange, work: () => Promise<T>): Promise<T> {
    const stop = () => this.#stop.abort()
    signal.listen(stop)
    try {
      return await work()
    } finally {
      stop()
      signal.ignore(stop)
    }
  }

  /** The files are not needed any more. */
  release(): void {
    this.#stop.abort()
    this.#lease.release()
  }
}

/** The media type of a header without its parameters; '' where it holds none. */
export const mediaTypeIn = (contentType: string): string =>
  /^\s*([a-z0-9.+-]{1,64}\/[a-z0-9.+-]{1,64})\s*(?:;|$)/i.exec(contentType)?.[1]?.toLowerCase() ?? ''

/**
 * `thrown` as an attempt's end. Where the provider gets data alone by its manifest, another target may take the address
 * itself. Missing memory ends the request, as elsewhere.
 */
export function forTarget(thrown: unknown, { provider }: Target): unknown {
  if (!(thrown instanceof GatewayError)) return thrown
  return thrown.with({ failover: provider.inlineMedia === true && thrown.status < 500 })
}

/** Keeps the first refusal of each request, so that nothing is fetched twice. */
export class Refusals {
  readonly #kept = new WeakMap<Exchange, GatewayError>()

  /** Throws where the request's media was refused before. */
  check(ex: Exchange, target: Target): void {
    const kept = this.#kept.get(ex)
    if (kept) throw forTarget(kept, target)
  }

  /** Keeps what was thrown, and gives it for `target`. */
  keep(ex: Exchange, thrown: unknown, target: Target): unknown {
    if (thrown instanceof GatewayError) this.#kept.set(ex, thrown)
    return forTarget(thrown, target)
  }
}
