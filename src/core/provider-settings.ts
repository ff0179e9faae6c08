/** Settings of providers and their offers that name no wire: addresses, credentials, timeouts, capabilities. */
import type { Budget } from './ports/keys.ts'

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
  /** Share of the load. Undefined for the only credential of a provider, which needs no choice. */
  readonly weight?: number | undefined
  /** Limits per minute. */
  readonly limits?: { readonly rpm?: number | undefined; readonly tpm?: number | undefined } | undefined
  /** Only these regions of the provider; undefined for all. */
  readonly regions?: readonly string[] | undefined
  /** Scheme in place of the provider's. */
  readonly auth?: Auth | undefined
  /** Name given by the owner. */
  readonly label?: string | undefined
  /** Names of the only models that it is for; undefined for all. Only an organization's own have it, and `budgets`. */
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

/** A field of a provider's own that turns reasoning on and off, in place of `reasoning_effort` or beside it. */
export interface ReasoningSwitch {
  /** `name`, or `name.within`. */
  readonly field: string
  readonly on: string | boolean
  /** Undefined for a model that always reasons. */
  readonly off?: string | boolean | undefined
  /** The field that takes a budget of tokens, where the output limit leaves the reasoning out. */
  readonly budget?: string | undefined
}
