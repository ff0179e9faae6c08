/** The provider side of one wire. Translators do no I/O and have no state beyond a decoder's. */

import type { GatewayError } from '../lib/error.ts'
import type { Credential, Mapping, Provider } from './catalog.ts'
import type { Event } from './event.ts'
import type { JobForm } from './job.ts'
import type { Price } from './money.ts'
import type { Op, Ops } from './ops.ts'
import type { RealtimeForm } from './realtime.ts'

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

/** One possible destination. */
export interface Target {
  readonly mapping: Mapping
  readonly provider: Provider
  readonly credential: Credential | undefined
  readonly translator: Translator
  /** Fixed when the request was admitted; undefined when unknown. */
  readonly price: Price | undefined
  readonly region?: string
  /** The provider's address in that region; undefined for a provider that has but one. */
  readonly baseUrl?: string | undefined
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

/** For wires that are also client wires: forwards a client's body unchanged. */
interface NativeForm<O extends Op = Op> {
  /** The client wire whose bodies it takes. */
  readonly wire: string
  /** Headers of clients, in lower case, whose tokens it passes on: those of a list of its own, and of the manifest's. */
  readonly headers?: readonly string[]
  /**
   * For a provider, or a wire, that gets data alone: the body with files in the place of their addresses. Shares with it
   * what does not change. Throws a 400 for an address that is not among `media`, unless `partial`.
   */
  withMedia(
    body: Readonly<Record<string, unknown>>,
    media: MediaByAddress,
    partial: boolean,
  ): Readonly<Record<string, unknown>>
  /** `input` is the canonical reading of the same body; `headers` are the client's. Mutates none of them. */
  encode(
    body: Readonly<Record<string, unknown>>,
    input: Readonly<Ops[O]>,
    target: Target,
    stream: boolean,
    headers?: NativeRequest['headers'],
  ): WireRequest
  /** Where its answers are read differently. */
  decoder?(mode: 'stream' | 'unary', target: Target): Decoder
}

/** For wires that also answer with what is neither events nor JSON: audio, images, films. */
interface BytesForm<O extends Op = Op> {
  /** Prefixes of the media types of such answers, in lower case. */
  readonly types: readonly string[]
  /** Each frame is a chunk as it came. */
  decoder(contentType: string, target: Target, input?: Readonly<Ops[O]>): Decoder
}

/** For providers that count the tokens of a prompt by themselves, for nothing. */
export interface CountForm {
  /** Builds the request that counts the prompt of `request`. Mutates nothing. */
  encode(request: WireRequest, target: Target): WireRequest
  /** Gives one `result`, a `TokenCount`. */
  decoder(target: Target): Decoder
}

/** A provider's answer about the tokens of a request. */
export interface TokenCount {
  readonly tokens: number
}

/** Maximum concurrent requests that together serve one. */
export const PARTS_AT_ONCE = 4

/**
 * For wires whose answers hold less than a request may ask for: several requests to one target, joined to one answer.
 */
export interface FanOut<O extends Op = Op> {
  /** The requests that stand for one; itself alone where one is enough. */
  split(input: Readonly<Ops[O]>, target: Target): readonly Ops[O][]
  /** How many these are. */
  count(input: Readonly<Ops[O]>, target: Target): number
  /** One answer of the events of each, without usage and in order. */
  join(answers: readonly (readonly Event[])[]): Event[]
  /** Each holds the whole prompt, which is paid as often; otherwise they share it out. */
  readonly repeats?: true
  /** Each answer has its place: what a provider refuses to make for one request, it refuses for all. */
  readonly ordered?: true
}

/** One provider wire of one operation: writes requests and reads answers. It does no I/O. */
export interface Translator<O extends Op = Op> {
  readonly op: O
  /** `vendor.format`, for example `openai.chat`. */
  readonly wire: string
  /** The wire takes no addresses of images: they are fetched, and `encode` gets data URLs in their place. */
  readonly inlineMedia?: true
  /** Inputs that one request may hold, where a wire bounds them. A request with more goes to other mappings, else 400. */
  readonly maxInputs?: number
  /** Formats that answers can have, where a request may name one. */
  readonly outputFormats?: readonly string[]
  /** Its transcripts have times, whatever the mapping says. */
  readonly alwaysTimed?: true
  /** The provider fetches audio from https addresses; for others it is fetched, and `encode` gets a file. */
  readonly takesUrls?: true
  /** Unicode code points that a text to speak may have. */
  readonly maxInputCharacters?: number
  /** Fields that change what a caller gets and that the wire has no place for; `field:value` for one value of a field. */
  readonly lacks?: ReadonlySet<string>
  /** The wire has tools of type `custom`; on others they are refused before they get here. */
  readonly customTools?: true
  /** Whether requests carry a stop sequence, their `index`th; answers are cut at others. Absent where the wire carries all. */
  takesStop?(sequence: string, index: number): boolean
  /** Matches ids of files that are public; all others are of the account which uploaded them. */
  readonly publicFiles?: RegExp
  /** Must not mutate `input`: failover encodes it again. Throws a GatewayError for what the wire cannot carry. */
  encode(input: Readonly<Ops[O]>, target: Target, stream: boolean): WireRequest
  readonly native?: NativeForm<O>
  readonly bytes?: BytesForm<O>
  /** For operations whose answers come after their requests have ended. */
  readonly job?: JobForm
  /** For operations that are a session over a WebSocket, which `encode` opens. */
  readonly realtime?: RealtimeForm
  readonly fanOut?: FanOut<O>
  readonly count?: CountForm
  /** The provider caches only what a request marks, and charges for writing it: requests have a `WireRequest.cacheMark`. */
  readonly cacheMarks?: true
  /**
   * Objects of a body that name end users beside `user`, `user_id`, `safety_identifier` and `prompt_cache_key`, and which
   * of their members do; undefined stands for all.
   */
  readonly identities?: Readonly<Record<string, readonly string[] | undefined>>
  /** It serves its operation by another operation's wire (see `Operation.bridge`). */
  readonly bridged?: true
  /** `input` is the request, for wires whose answers are measured by it. */
  decoder(mode: 'stream' | 'unary', target: Target, input?: Readonly<Ops[O]>): Decoder
  /** An answer with status 400 or above, as our error; never shows a provider's headers or a credential. */
  error(status: number, body: string, target: Target): GatewayError
}

/** The form that forwards a client's own body, if the target has the same wire. */
export const nativeFormOf = ({ native }: Translator, given: NativeRequest | undefined) =>
  native && given?.wire === native.wire ? native : undefined

/** A plugin module that was loaded from a folder, and its text then. */
export interface LoadedModule {
  readonly path: string
  readonly source: string
}

/** Exports of a plugin module. */
export interface Plugin {
  readonly wires?: readonly Translator[]
  readonly filters?: readonly import('./filter.ts').FilterFactory[]
}
