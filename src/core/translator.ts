/**
 * The side of the providers: what they offer, and the wires by which they are spoken to. These types name each other: an
 * offer has its wires, and a wire writes for an offer. Translators do no I/O and have no state beyond a decoder's.
 */
import type { Egress } from '../lib/egress.ts'
import type { GatewayError } from '../lib/error.ts'
import type { SentSecrets } from '../secrets/mask.ts'
import type { Event } from './event.ts'
import type { ImageTokens } from './media.ts'
import type { Price } from './money.ts'
import type { Op, Ops } from './ops.ts'
import type {
  Auth,
  Capability,
  Credential,
  DataPolicy,
  Quirks,
  ReasoningSwitch,
  Timeouts,
} from './provider-settings.ts'
import type {
  Decoder,
  JobReport,
  MediaByAddress,
  NativeRequest,
  RealtimeForm,
  UpstreamJob,
  WireRequest,
} from './wire.ts'

/**
 * A manifest of `providers.d` or of an organization, compiled: where its API is, how it is called, and within what
 * bounds.
 */
export interface Provider {
  readonly id: string
  /** The organization whose own provider it is; undefined for those that all share. */
  readonly owner?: string | undefined
  /** Ids or names of the only organizations that it serves; undefined for all. */
  readonly organizations?: readonly string[] | undefined
  readonly name: string
  /** Holds `REGION` when each region of a mapping has an address of its own. */
  readonly baseUrl: string
  readonly auth: Auth
  readonly headers: Readonly<Record<string, string>>
  /** Secrets in headers and defaults that must not be shown; undefined for none. */
  readonly sentSecrets?: SentSecrets | undefined
  /** Tokens that are passed on besides those of the wire, by the client's header in lower case. `*` ends a prefix. */
  readonly passHeaders: Readonly<Record<string, readonly string[]>>
  /** Fields and blocks of clients' own bodies that are sent on the operator's credentials besides those of the wire. */
  readonly nativeFields?: readonly string[]
  /** Types of tools, likewise; `*` ends a prefix. */
  readonly nativeTools?: readonly string[]
  readonly credentials: readonly Credential[]
  /** Environment variables that its file reads: those of the credential, and those of the address. */
  readonly variables?: Readonly<Record<'secret' | 'address', readonly string[]>>
  readonly wires: ReadonlyMap<Op, Translator>
  readonly quirks: Quirks
  readonly timeouts: Timeouts
  /** Attempts at the same time; what is beyond them goes to other providers. */
  readonly concurrency: number
  /** Maximum concurrent calls to all own providers of the owner together. */
  readonly ownerConcurrency?: number
  readonly egress?: Egress | undefined
  readonly priority: number
  readonly dataPolicy: DataPolicy
  /** It gets media as data alone, although its wire has addresses, too. */
  readonly inlineMedia?: boolean
  /** Field that carries earlier reasoning back to this provider, for providers that require it. */
  readonly reasoningReplay: 'reasoning' | 'reasoning_content' | 'reasoning_details' | undefined
  /** Maps the provider's own error codes to the names that other providers use. */
  readonly errorCodes?: ReadonlyMap<string, string> | undefined
  /** Parts of its error messages in lower case, and the code that each stands for. */
  readonly errorPhrases?: readonly (readonly string[])[] | undefined
}

/** One provider's offer of one model. */
export interface Mapping {
  readonly model: Model
  readonly provider: Provider
  /** The provider's own name of the model. */
  readonly externalId: string
  /** Wires by operation: the provider's, with those that the mapping replaces. */
  readonly wires: ReadonlyMap<Op, Translator>
  readonly price: Price | undefined
  /** USD per token or per unit, by the keys of docs/contract.md#catalogue. */
  readonly pricing: Readonly<Record<string, string>>
  /** USD per second and per image, by size, where the provider prices so. */
  readonly pricingBySize?: {
    readonly per_second?: Readonly<Record<string, string>>
    readonly per_image?: Readonly<Record<string, string>>
  }
  readonly unpriced?: 'allow' | 'refuse' | undefined
  readonly supports: ReadonlySet<Capability>
  readonly reasoningEfforts: readonly string[]
  readonly reasoningModes: readonly string[]
  readonly reasoningSwitch?: ReasoningSwitch | undefined
  readonly serviceTiers: readonly string[]
  readonly regions: readonly string[]
  /** Accepted request parameters; undefined means all of the wire. */
  readonly parameters: ReadonlySet<string> | undefined
  readonly contextLength: number | undefined
  readonly maxOutput: number | undefined
  readonly minCacheableTokens: number | undefined
  /** Prompts of clients that mark nothing are marked for the provider's cache, where that saves money. */
  readonly autoCache: boolean
  /** False where the provider goes on, and charges, when its caller has left; true where it stops both at once. */
  readonly cancellable?: boolean
  readonly maxN: number
  /** The provider's voices by what clients may say; `default` where they say nothing, `*` where any other is passed on. */
  readonly voices?: Readonly<Record<string, string>> | undefined
  /** Bytes of an audio file. */
  readonly maxFile?: number | undefined
  /** Unicode code points that a text to speak may have. */
  readonly maxInputCharacters?: number | undefined
  /** Maximum images of one request to the provider; undefined for the wire's own limit. */
  readonly maxImageN?: number | undefined
  /** Sizes and aspect ratios of images that it takes; undefined for all of the wire. */
  readonly sizes?: readonly string[] | undefined
  readonly aspectRatios?: readonly string[] | undefined
  /** Images that an edit may have; undefined for as many as the wire takes. */
  readonly maxImages?: number | undefined
  /** Sizes and lengths of videos that it takes; undefined for all. */
  readonly videoSizes?: readonly string[] | undefined
  readonly videoSeconds?: readonly number[] | undefined
  readonly maxReferenceImages?: number | undefined
  /** The day that its prices are of. */
  readonly pricedAt?: string | undefined
  readonly stability: string | undefined
  readonly deprecatedAt: string | undefined
  readonly deactivatedAt: string | undefined
}

/** An entry of `config/models.d` with the mappings by which providers offer it. */
export interface Model {
  readonly id: string
  readonly name: string
  readonly description: string | undefined
  readonly family: string
  readonly aliases: readonly string[]
  /** Whether listings leave it out. */
  readonly hidden?: true | undefined
  readonly created: number
  readonly tokenizer: string | undefined
  /** How its vendor counts images of a prompt; undefined where that is not published. */
  readonly imageTokens?: ImageTokens | undefined
  /** Tokens of a second of audio in a prompt; undefined where that is not published. */
  readonly audioTokens?: number | undefined
  readonly input: readonly string[]
  readonly output: readonly string[]
  readonly contextLength: number | undefined
  readonly maxOutput: number | undefined
  readonly stability: string | undefined
  readonly deprecatedAt: string | undefined
  readonly deactivatedAt: string | undefined
  /** Operations that the model serves; undefined means all for which its provider has a wire. */
  readonly operations?: readonly string[] | undefined
  readonly mappings: readonly Mapping[]
  /** It stands in no file. */
  readonly open?: true | undefined
  /** Name in metrics, circuits and retry budgets, in place of an id that callers can make up. */
  readonly series?: string | undefined
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
  /** Puts system prompts before the body's own, where they have a field of their own. */
  withSystem?(body: Readonly<Record<string, unknown>>, texts: readonly string[]): Record<string, unknown>
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

/** How a wire speaks of jobs that it has created. Its decoder gives one `job` event for the create. */
export interface JobForm {
  poll(job: UpstreamJob, target: Target): WireRequest
  /** Reads a 200 of at most 1 MiB, 10,000 JSON values and 128 levels. Throws a GatewayError for what cannot be read. */
  read(body: string, target: Target): JobReport
  /** Where results are behind a request of the wire. */
  result?(job: UpstreamJob, target: Target): WireRequest
  cancel?(job: UpstreamJob, target: Target): WireRequest
  /** Origins besides the provider's own that its credential is for. */
  readonly sharesCredentialWith?: readonly string[]
  /** How long the provider keeps results; undefined where that is not known. */
  readonly lifeMs?: number
  /** The field of answers in whose first value a result may stand as base64. `read` gets an empty text in its place. */
  readonly inlineResult?: string
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
