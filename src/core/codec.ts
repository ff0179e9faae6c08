/** The client side of the gateway: decodes requests and encodes events of one client wire. */

import type { Json } from '../json/json.ts'
import type { Place } from '../json/lossless.ts'
import type { GatewayError } from '../lib/error.ts'
import type { Event } from './event.ts'
import type { Exchange } from './exchange.ts'
import type { Headers } from './http-request.ts'
import type { Op, Ops } from './ops.ts'
import type { JsonSchema, Schema } from './schema.ts'
import type { StoredForm } from './stored-responses.ts'

/** One client wire: reads requests of an operation, and makes the encoder of its answers. */
export interface Codec<O extends Op = Op> {
  readonly wire: string
  /** The members of a body whose numbers go on as they were written; others are rounded. */
  readonly exact?: Place
  /** Describes a JSON body to clients, as `decode` checks it. */
  readonly requestSchema?: JsonSchema
  /** Validates a parsed body into the canonical request; throws a GatewayError that names the field. */
  decode(body: unknown, ex: Exchange): Ops[O]
  /** Reads fields that an operator sets, as canonical ones; throws as `decode` does. Absent on secondary client wires. */
  readonly preset?: PresetFields
  encoder(ex: Exchange): Encoder
  /** All of a stream is kept until its end, since its last event repeats or cites it. */
  readonly holdsAnswers?: true
  /** Requests may continue stored responses. */
  readonly stored?: StoredForm
  /** Bytes that keep a streamed answer alive; allowed at any time, even before its first event. */
  readonly heartbeat?: {
    readonly contentType: string
    readonly text: string
    /** Absent where every streamed answer has them. */
    isFor?(ex: Exchange): boolean
  }
  /** Does at start what the first request would have to wait for. */
  prepare?(): void
  /** Options for `compat` of the endpoint in gateway.yaml; undefined for a codec without choices. */
  readonly compat?: Compat<O>
  /** Credentials that clients of the wire send elsewhere than in the headers that every endpoint reads. */
  credentials?(headers: Headers, query: string): readonly string[]
  /** Many clients of this wire drop unknown fields of an answer, including reasoning that providers require back. */
  readonly dropsReasoning?: true
  /** The header in which a client looks for the request's id, besides `x-request-id`. */
  idHeader?(headers: Headers): string | undefined
  /** Translates the path of a canonical field to this wire, for errors that name the field. */
  fieldOf?(path: string, ex: Exchange): string
  /** The body of an error answer, to a client that sent `headers`; `logId` is of its exchange, where there is one. */
  error(error: GatewayError, headers?: Headers, logId?: string): unknown
}

/** Names of fields that an operator may set, and their reading. A null stands for a field that is to be absent. */
export interface PresetFields {
  readonly names: readonly string[]
  read(fields: Readonly<Json>): Readonly<Json>
  /** Canonical requests lack what their client left out. */
  readonly isCanonical?: true
}

/** The choices of a codec about what its clients expect. */
interface Compat<O extends Op = Op, T = unknown> {
  readonly options: Schema<T>
  /** The codec that keeps to them. */
  create(options: T): Codec<O>
}

/** Bytes may come in pieces, which spares a copy of what is large. */
export type Encoded = string | Buffer | readonly Buffer[]

/** Writes one answer: `write` returns bytes for a stream, nothing while it folds a whole answer. */
export interface Encoder {
  /** Read when the first bytes are sent, as are `headers`: names and values in turn. */
  readonly contentType: string
  headers?(): readonly string[]
  write(batch: readonly Event[]): Encoded | undefined
  /**
   * Called before `end`, or with the error before `fail`; what it returns is awaited, and does not reject. For what must be
   * done before the last of an answer is written.
   */
  conclude?(error?: GatewayError): Promise<void> | undefined
  /** Returns the rest of the stream. */
  end(): Encoded
  /**
   * Returns the error to write into a stream that fails after its first byte; undefined when the wire has no such form.
   */
  fail(error: GatewayError): Encoded | undefined
}
