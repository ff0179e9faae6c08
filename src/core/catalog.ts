/** Models and providers of the configuration files, joined and immutable. */
import type { SentSecrets } from '../secrets/mask.ts'
import type { ImageTokens } from './image-tokens.ts'
import type { Price } from './money.ts'
import type { Op } from './ops.ts'
import type { Budget } from './ports/keys.ts'
import type { Translator } from './translator.ts'

/** Names that a mapping may list under `supports`. */
export const capabilities = [
  'streaming',
  'tools',
  'parallel_tool_calls',
  'vision',
  'reasoning',
  'json_output',
  'structured_outputs',
  'web_search',
  'tool_search',
  'audio_input',
  'file_input',
  'prompt_cache',
  'cancellation',
  'realtime',
  'verbosity',
  'effort',
  'timestamps',
  'diarization',
  'video_audio',
  'video_without_audio',
  'image_to_video',
  'last_frame',
  'reference_images',
  'reference_videos',
  'reference_audios',
] as const

/** A name that `supports` of a mapping may contain. */
export type Capability = (typeof capabilities)[number]

/** Times in milliseconds that bound an upstream attempt. `total` bounds all attempts of a request together. */
export interface Timeouts {
  readonly connect: number
  /** Undefined for the default, which depends on the request (see `firstEventMs`). */
  readonly firstEvent: number | undefined
  readonly idle: number
  readonly total: number
}

/** Whole answers come with their last token, and reasoning models are silent for minutes. */
const FIRST_EVENT_MS = { stream: 60_000, reasoning: 300_000, whole: 600_000 }

/** How long the first event of an answer of `mapping` may take. */
export function firstEventMs({ provider, supports }: Mapping, streams: boolean): number {
  const { firstEvent } = provider.timeouts
  if (firstEvent !== undefined) return firstEvent
  if (!streams || !supports.has('streaming')) return FIRST_EVENT_MS.whole
  return supports.has('reasoning') ? FIRST_EVENT_MS.reasoning : FIRST_EVENT_MS.stream
}

/** How the gateway shows its credential to a provider; the schemes are strategies of `src/upstream/sign.ts`. */
export type Auth =
  | { readonly scheme: 'none' }
  | { readonly scheme: 'bearer' }
  | { readonly scheme: 'header'; readonly header: string; readonly prefix?: string | undefined }
  | { readonly scheme: 'query'; readonly parameter: string }
  | {
      readonly scheme: 'aws-sigv4'
      readonly region: string
      readonly service: string
      readonly source?: Source | undefined
      /** Values from the shared files, with their source. */
      readonly profile?: string | undefined
    }
  | { readonly scheme: 'gcp-oauth'; readonly scope: string; readonly source?: Source | undefined }

/** `default`: no secret is written, and credentials are found as the vendor's own tools find them. */
type Source = 'default'

/** Four changes to a provider's request bodies, by field path (`a.b`; `*` is every element). */
export interface Quirks {
  readonly drop: ReadonlySet<string>
  readonly rename: Readonly<Record<string, string>>
  readonly default: Readonly<Record<string, unknown>>
  readonly clamp: Readonly<Record<string, readonly [number, number]>>
}

/** A secret of a provider. `fingerprint` is what may be shown of it. */
export interface Credential {
  readonly id: string
  readonly source: 'platform' | 'byok'
  readonly secret: string
  readonly fingerprint: string
  /** Name given by the owner. Only an organization's own credentials have it, and the next two fields. */
  readonly label?: string | undefined
  /** Names of the only models that it is for; undefined for all. */
  readonly models?: readonly string[] | undefined
  /** Limits on what may be spent by it. */
  readonly budgets?: readonly Budget[] | undefined
}

/** The provider's statements about the data that it receives; undefined where it says nothing. */
export interface DataPolicy {
  readonly trainsOnData: boolean | undefined
  readonly logsPrompts: boolean | undefined
  readonly retention: string | undefined
  /** The country, as operators write it. */
  readonly headquarters: string | undefined
  /** Type of the SOC 2 report. */
  readonly soc2: '1' | '2' | undefined
  readonly iso27001: boolean | undefined
  readonly gdpr: boolean | undefined
}

/** Placeholder in a provider's address for the region of a mapping. */
export const REGION = '{region}'

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

/** A field of a provider's own that turns reasoning on and off, in place of `reasoning_effort` or beside it. */
interface ReasoningSwitch {
  /** `name`, or `name.within`. */
  readonly field: string
  readonly on: string | boolean
  /** Undefined for a model that always reasons. */
  readonly off?: string | boolean | undefined
  /** The field that takes a budget of tokens, where the output limit leaves the reasoning out. */
  readonly budget?: string | undefined
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

/** A model as a provider lists it. */
export interface FoundModel {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
}

/** Models that providers listed, by the address of each. */
export type ModelLists = readonly (readonly [baseUrl: string, models: readonly FoundModel[]])[]

/** Models that one provider offers besides the catalogue, under names of its own. */
export interface OpenModels {
  /** Whether the provider is regularly looked up for the models that it has. */
  readonly searched: boolean
  /** Models of the provider's last listing. The list object stays the same while its content does. */
  readonly listed: readonly Mapping[]
  /** The offer of a name; the same object while it is in use. Undefined for what cannot be a name. */
  find(name: string): Mapping | undefined
}

/** All models and providers of a snapshot, by the names that requests use. */
export interface Catalog {
  readonly models: ReadonlyMap<string, Model>
  /** Aliases, lower priority than ids. */
  readonly aliases: ReadonlyMap<string, Model>
  /** Aliases of one provider's offers: `<provider>/<model>`. */
  readonly pinned?: ReadonlyMap<string, string>
  readonly providers: ReadonlyMap<string, Provider>
  /** Providers that serve models which stand in no file, by provider id. */
  readonly open?: ReadonlyMap<string, OpenModels>
  /** Undefined where organizations may not declare providers. */
  readonly customCaps?: CustomCaps | undefined
}

/** Bounds of organizations' own providers. */
export interface CustomCaps {
  /** Maximum of each of their timeouts, in milliseconds. */
  readonly timeoutMs: number
  /** Maximum of their connect timeouts, in milliseconds. */
  readonly connectMs: number
  /** Maximum concurrent calls of one organization to all of them. */
  readonly concurrency: number
}
