/** The catalogue: models and providers of the configuration, by the names that requests use. */
import type { Json } from '../json/json.ts'
import type { Mapping, Model, Provider } from './translator.ts'

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

/** A name that stands for a chain of models. */
export interface VirtualModel {
  readonly id: string
  readonly name: string
  /** Whether listings leave it out. */
  readonly hidden?: boolean | undefined
  readonly strategy: 'order' | 'weight' | 'price' | 'latency'
  /** Milliseconds for which answers are kept for replay, in place of the project's time; 0 keeps none. */
  readonly cacheMs?: number | undefined
  /** Whether all requests of a session try the targets in the same order. */
  readonly sticky: boolean
  /** At least one. */
  readonly use: readonly VirtualTarget[]
  /** Request fields that it sets, by operation. */
  readonly presets?: ReadonlyMap<string, Preset> | undefined
}

/** Request fields that an operator sets; null removes one. */
export interface Preset {
  readonly defaults: Readonly<Json>
  readonly overrides: Readonly<Json>
  /** System prompts before the client's. */
  readonly system: readonly string[]
}

/** One target of a virtual model. */
export interface VirtualTarget {
  /** A model, `<provider>/<model>`, or another virtual model. */
  readonly model: string
  readonly weight: number
  readonly when: TargetCondition | undefined
}

/** A condition on the caller of a request; an undefined part allows all. */
export interface CallerCondition {
  /** Ids or names. */
  readonly orgs?: readonly string[] | undefined
  /** Ids. */
  readonly projects?: readonly string[] | undefined
  /** Ids or names. */
  readonly keys?: readonly string[] | undefined
  /** Values that each tag may have. */
  readonly tags?: Readonly<Record<string, string | readonly string[]>> | undefined
}

/** The requests that a target serves. */
export interface TargetCondition extends CallerCondition {
  readonly prompt_tokens?: { readonly min?: number | undefined; readonly max?: number | undefined } | undefined
}

/** Moves, copies or refuses requests for some models. The first rule that matches applies. */
export interface RouteRule {
  readonly name: string
  /** `model` is a name, or a pattern with `*` and `?`. */
  readonly match: CallerCondition & { readonly model?: string | undefined }
  readonly use: string | undefined
  readonly deny: string | undefined
  readonly mirror?: { readonly to: string; readonly percent: number } | undefined
}

/** All models and providers of a snapshot, by the names that requests use. */
export interface Catalog {
  readonly models: ReadonlyMap<string, Model>
  /** Aliases, lower priority than ids. */
  readonly aliases: ReadonlyMap<string, Model>
  /** Aliases of one provider's offers: `<provider>/<model>`. */
  readonly pinned?: ReadonlyMap<string, string>
  /** Keyed by id; undefined where there are none. */
  readonly virtual?: ReadonlyMap<string, VirtualModel> | undefined
  readonly rules?: readonly RouteRule[] | undefined
  readonly providers: ReadonlyMap<string, Provider>
  /** Providers that serve models which stand in no file, by provider id. */
  readonly open?: ReadonlyMap<string, OpenModels>
  /** Undefined where organizations may not declare providers. */
  readonly customCaps?: CustomCaps | undefined
  /** How connections leave that are not to a provider. */
  readonly egress?: Provider['egress']
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
