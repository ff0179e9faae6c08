/** Holds the request that an exchange sends to the target of its attempt. */
import type { FanOut } from './translator.ts'
import type { CacheMark, RequestPart, SentOutput, WireRequest } from './wire.ts'

/** Ends an answer early: the organization's credits or plan, or a limit of its own. */
export type StoppedBy = 'credit' | 'limit'

/** The output limit per choice, in tokens, that replaces the caller's, and its origin. */
interface OutputLimit {
  readonly tokens: number
  readonly by: StoppedBy
}

/** Encodes the request of an attempt within the output limit that is in force, and calls `send` or `sendParts`. */
export interface RequestEncoding {
  encode(): void
}

/** One request to the provider, or several that stand for it; and how it bounds the answer, which stays once it is released. */
export class Outbound {
  /** The first of `parts` where there are some; undefined once it is released. */
  request: WireRequest | undefined = undefined
  /** All requests that are sent instead of one; undefined for a single one. */
  parts: readonly RequestPart[] | undefined = undefined
  /** Joins the answers of `parts`. */
  fanOut: FanOut | undefined = undefined
  /** Output limit in the request that was sent. */
  output: SentOutput | undefined = undefined
  /** The longest mark of the request for its provider's cache. */
  cacheMark: CacheMark | undefined = undefined
  /** The gateway marked the prompt for the provider's cache. */
  autoCached = false
  /** The provider has received the whole request. */
  atProvider = false
  /** Milliseconds until the request had a connection; undefined until then, and for several requests. */
  connectMs: number | undefined = undefined
  /** Undefined when the caller's limit applies. */
  limit: OutputLimit | undefined = undefined
  /** Headers that name the trace to the provider: names and values in turn. */
  trace: readonly string[] | undefined = undefined
  #encoding: RequestEncoding | undefined = undefined

  /** Before an attempt: its money is held anew. */
  begin(): void {
    this.#encoding = undefined
    this.limit = undefined
    this.connectMs = undefined
  }

  /** The encoding of the attempt, for as long as its request may change. */
  encode(encoding: RequestEncoding): void {
    this.#encoding = encoding
    encoding.encode()
  }

  /** Encodes the request again, with a lower output limit. */
  limitTo(limit: OutputLimit): void {
    this.limit = limit
    this.#encoding?.encode()
  }

  send(request: WireRequest): void {
    this.request = request
    this.parts = undefined
    this.output = request.output
    this.cacheMark = request.cacheMark
  }

  /** At least one request, and the rule by which they stand for one. */
  sendParts(parts: readonly RequestPart[], fanOut: FanOut): void {
    this.send(parts[0]!.request)
    this.parts = parts
    this.fanOut = fanOut
  }

  /** One part of another exchange's request, within the same bounds. */
  partOf({ output, cacheMark, limit }: Outbound, part: RequestPart): void {
    this.parts = [part]
    this.output = output
    this.cacheMark = cacheMark
    this.limit = limit
  }

  /** An answer has begun, so that no further target is tried. */
  release(): void {
    this.request = undefined
    this.parts = undefined
    this.#encoding = undefined
  }
}
