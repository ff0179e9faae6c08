/** Types of a provider's wire: requests, frames of answers, and facts read from both. */

import type { Json } from '../json/json.ts'
import type { Event } from './event.ts'
import type { Op, Ops } from './ops.ts'
import type { JobError, JobState } from './ports/jobs.ts'
import type { Usage } from './usage.ts'

/** One unit of a framed answer: an SSE event's data, one whole JSON body, or bytes as they came. */
export interface Frame {
  readonly data: string
  readonly name?: string | undefined
  /** The bytes of a whole body, for decoders that can do without its text, or a chunk of what is no text. */
  readonly bytes?: Buffer
}

/** How an answer is bounded as it was sent, where that differs from the request: money is held for what may come. */
export interface SentOutput {
  /** The output limit of each choice, where another one is sent than the request has; Infinity where none is. */
  readonly limit?: number
  /** Limits that bound each choice, one after another: 2 where its reasoning has one of its own. 1 where it is left out. */
  readonly limits?: 2
  /** Tokens without which an answer is of no use: no lower limit is sent. */
  readonly least?: number
  /** The answer comes whole, though a stream was asked for. */
  readonly whole?: true
}

/** How long a provider keeps what a request marks for its cache. */
export type CacheMark = '5m' | '1h'

/** A request to the provider. */
export interface WireRequest {
  /** Added to the provider's base address; may hold a query. */
  path: string
  /** POST where nothing is said. A GET or DELETE sends no body. */
  method?: 'GET' | 'POST' | 'DELETE'
  /** The fields: of a JSON object or, beside `files`, texts of a form. There a list is one part for each of its items. */
  body: Record<string, unknown>
  /** Makes the body multipart/form-data (RFC 7578); files stand behind the fields. */
  files?: readonly FilePart[]
  /** Sent in place of fields, with the content type that `headers` name. */
  bytes?: readonly Buffer[]
  headers?: Record<string, string>
  /** Undefined where the answer is bounded as the request says. */
  output?: SentOutput
  /** The longest of its marks, on wires with `Translator.cacheMarks`; undefined without any. */
  cacheMark?: CacheMark
}

/** One of several provider requests that serve one client request, with its canonical form. */
export interface RequestPart {
  readonly request: WireRequest
  readonly input: Ops[Op]
  /** Approximate length of the body as JSON, without the content of uploaded files. */
  readonly characters: number
}

/** A file of a form that is sent. */
export interface FilePart {
  readonly name: string
  /** Made up: no client's name reaches a provider. */
  readonly filename: string
  readonly contentType: string
  readonly pieces: readonly Buffer[]
}

/** Reads one answer. Sync and stateful; one per attempt. */
export interface Decoder {
  /** The events of one frame; an in-band error comes as an `error` event. */
  frame(frame: Frame): Event[]
  /** Called once at the end of the bytes; must add an `error` event when the answer was cut short. */
  end(): Event[]
  /** True once the wire's own terminator was seen; what follows is ignored. */
  readonly done: boolean
  /**
   * True once `end` would give no error, on wires whose terminator or report follows the finish reason: what breaks the
   * answer from here on took nothing away. Absent where `done` says as much.
   */
  readonly complete?: boolean
  /**
   * Characters that it keeps for later events, beside those of events so far. Without it, all that a frame holds beside
   * its events counts as kept.
   */
  readonly kept?: number | undefined
}

/** A client's request in the words of its own wire. */
export interface NativeRequest {
  readonly wire: string
  readonly body: Readonly<Record<string, unknown>>
  /** Headers of the wire that go with the body, by their names in lower case. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Path of a field that changes the request, and that no other wire can carry; undefined when there is none. */
  readonly only?: string | undefined
  /** Pages that tools of the provider may read, which stand nowhere in the body; at least one where a tool reads any. */
  readonly pages?: number
  /** A tool runs at the provider, which may read the whole prompt again after each of its calls. */
  readonly loops?: boolean
  /** Bytes of the body that providers of the wire read, and the canonical request does not hold. */
  readonly size?: number
}

/** A file that was fetched for a request. */
export interface LoadedMedia {
  /** The media type that its first bytes prove, else the one that its server said. */
  readonly type: string
  readonly base64: string
  /** The last part of its address, where that has one. */
  readonly name?: string | undefined
  /** The format of audio that its bytes prove. */
  readonly audio?: string | undefined
}

/** The files of a request, by addresses as its parts have them. */
export type MediaByAddress = ReadonlyMap<string, LoadedMedia>

/** A provider's answer about the tokens of a request. */
export interface TokenCount {
  readonly tokens: number
}

/** Identifies a job at its wire. `params`: see `JobOperation.params`. */
export interface UpstreamJob {
  readonly upstreamId: string
  readonly params: unknown
}

/** Where the provider has a result: at an address, behind a request of its wire, or in the field `JobForm.inlineResult`. */
export type FoundResult =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'own' }
  | { readonly kind: 'inline' }

/** The provider's report about a job. */
export interface JobReport {
  /** Undefined for a word that is not known: nothing changes. */
  readonly state?: Exclude<JobState, 'creating'> | undefined
  /** 0 to 100. */
  readonly progress?: number | undefined
  readonly error?: Pick<JobError, 'code' | 'message'> | undefined
  readonly result?: FoundResult | undefined
  readonly usage?: Usage | undefined
  /** When the provider drops the result, Unix milliseconds. */
  readonly expiresAt?: number | undefined
  /** How long to wait before the next question. */
  readonly afterMs?: number | undefined
}

/** A wire's reading of its providers' sessions. */
export interface RealtimeForm {
  /** Returns the usage of a finished response; undefined when it cannot be read. */
  usage(response: Readonly<Json>): Usage | undefined
  /** Returns the usage of the transcript of a user's audio. */
  transcriptUsage(event: Readonly<Json>): Usage | undefined
  /** Members of a session's or a response's settings that a credential of the operator's may carry. */
  readonly settings: ReadonlySet<string>
  /** Events of clients, likewise. */
  readonly events: ReadonlySet<string>
  /** Tokens of the highest `max_output_tokens` that providers take; undefined where they take none. */
  readonly mostOutput?: number
}
