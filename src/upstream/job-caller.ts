/** Requests about jobs to their providers: answers are read as they come, and no length of time bounds the whole. */
import { isPublicHost } from '../core/address.ts'
import type { JobAnswer, JobCall, JobCaller } from '../core/ports.ts'
import type { Target } from '../core/translator.ts'
import type { WireRequest } from '../core/wire.ts'
import type { Fetcher } from '../egress/fetcher.ts'
import { AddressNotAllowed, followRedirects, providerAddressError } from '../egress/redirects.ts'
import { errors } from '../lib/error.ts'
import { bodyOf } from './content.ts'
import { decoded, isCoded, type PlainSource } from './encoding.ts'
import type { RenewCredential } from './provider-call.ts'
import { maskOfSent, sign, waitFor } from './sign.ts'
import type { Transport } from './transport.ts'

/** The `JobCaller` of jobs: `own` calls the provider's API, `at` gets an address that the provider has given. */
export class UpstreamJobCaller implements JobCaller {
  readonly #transport: Transport
  readonly #fetcher: Fetcher

  readonly #renewed: RenewCredential | undefined

  constructor(transport: Transport, fetcher: Fetcher, renewed?: RenewCredential) {
    this.#transport = transport
    this.#fetcher = fetcher
    this.#renewed = renewed
  }

  async own(target: Target, request: WireRequest, call: JobCall): Promise<JobAnswer> {
    const { provider } = target
    const { signal, headMs, idleMs } = call
    const wired = call.headers ? { ...request, headers: { ...request.headers, ...call.headers } } : request
    const isEmpty = request.method === 'GET' || request.method === 'DELETE'
    const content = isEmpty ? { type: undefined, body: undefined } : bodyOf(wired)
    const signing = sign(target, wired, call.requestId, content)
    const signed = signing instanceof Promise ? await waitFor(signing, headMs, signal) : signing
    const { method, baseUrl, path, headers, body } = signed
    const incoming = await this.#transport.send({
      provider,
      ...{ method, baseUrl, path, headers, body },
      timeouts: { connect: provider.timeouts.connect, idle: idleMs },
      firstEventMs: headMs,
      remainingMs: Number.POSITIVE_INFINITY,
      signal,
      receipt: { atProvider: false },
      tenant: call.tenant,
    })
    // The next poll takes the credential that is read now.
    if (incoming.status === 401 || incoming.status === 403) void this.#renewed?.(target)
    // From now on only silence is timed.
    incoming.committed(false)
    const mask = maskOfSent(signed, provider)
    return plainAnswer({
      masked: mask && (text => mask.strict(text)),
      status: incoming.status,
      header: name => incoming.header(name),
      chunks: chunksOf(incoming),
      destroy: () => incoming.destroy(),
    })
  }

  /** The credential goes to the provider's own origin alone; every place is checked anew. */
  at(target: Target, address: string, call: JobCall): Promise<JobAnswer> {
    const { baseUrl = target.provider.baseUrl } = target
    const { sharesCredentialWith: shared = [] } = target.translator.job ?? {}
    const get = (url: URL) => {
      const isKnown = url.origin === new URL(baseUrl).origin || shared.includes(url.origin)
      if (!isKnown || url.username !== '' || url.password !== '') return this.#foreign(url, target, call)
      const there = { ...target, baseUrl: url.origin }
      return this.own(there, { method: 'GET', path: url.pathname + url.search, body: {} }, call)
    }
    return followRedirects(address, get)
  }

  async #foreign(
    url: URL,
    { provider: { egress } }: Target,
    { signal, headers, headMs: timeoutMs, idleMs }: JobCall,
  ): Promise<JobAnswer> {
    // No later attempt makes another address of one that stands in the URL.
    const isReachable = this.#fetcher.allows(url) || isPublicHost(url.hostname)
    if (!isReachable) throw providerAddressError(new AddressNotAllowed())
    const controller = new AbortController()
    const abort = () => controller.abort()
    signal.listen(abort)
    try {
      const {
        status,
        header,
        chunks,
        destroy: end,
      } = await this.#fetcher.open(url, {
        headers: { accept: '*/*', 'accept-encoding': 'identity', ...headers },
        ...{ timeoutMs, idleMs, signal: controller.signal, egress },
      })
      const destroy = () => {
        signal.ignore(abort)
        end()
      }
      return plainAnswer({ status, header, chunks, destroy })
    } catch (thrown) {
      signal.ignore(abort)
      throw signal.reason ?? providerAddressError(thrown)
    }
  }
}

/** Headers that count packed bytes. */
const OF_PACKED: ReadonlySet<string> = new Set(['content-encoding', 'content-length', 'accept-ranges'])

/**
 * Returns the answer with decoded bytes. An unknown coding, or a part of a coded answer, ends it with a GatewayError.
 */
export function plainAnswer(answer: JobAnswer): JobAnswer {
  const coding = answer.header('content-encoding')
  if (!isCoded(coding)) return answer
  try {
    if (answer.status === 206) throw errors.invalidAnswer('a part of it is compressed', 206)
    const packed = answer.chunks[Symbol.asyncIterator]()
    const take = async () => {
      const { done, value } = await packed.next()
      return done ? undefined : [value]
    }
    const source = decoded({ take }, coding)
    return {
      status: answer.status,
      masked: answer.masked,
      header: name => (OF_PACKED.has(name) ? undefined : answer.header(name)),
      chunks: chunksOf(source),
      destroy: () => {
        source.free?.()
        answer.destroy()
      },
    }
  } catch (thrown) {
    answer.destroy()
    throw thrown
  }
}

/** Yields each batch as one chunk: a write to a client costs more than a copy. */
export async function* chunksOf(source: PlainSource): AsyncGenerator<Buffer> {
  try {
    for (let batch = await source.take(); batch; batch = await source.take()) {
      yield batch.length === 1 ? batch[0]! : Buffer.concat(batch)
    }
  } finally {
    source.free?.()
  }
}
