/** Defines which models an organization's keys may call, and the organization's own credentials. */
import type { Address } from './address.ts'
import type { Catalog } from './catalog.ts'
import type { Terms } from './money.ts'
import type { Budget, Principal } from './ports/keys.ts'
import type { Credential } from './provider-settings.ts'
import type { Seals } from './seals.ts'
import type { Mapping } from './translator.ts'

/** The eight kinds of rules (docs/contract.md#access-rules). */
export const ruleTypes = [
  'allow_models',
  'deny_models',
  'allow_providers',
  'deny_providers',
  'allow_pricing',
  'deny_pricing',
  'allow_ip_cidrs',
  'deny_ip_cidrs',
] as const

/** Subject of a rule. */
export type RuleType = (typeof ruleTypes)[number]

/** Values of rules; each type of rule reads the fields that it is named after. */
export interface RuleValue {
  /** Ids or aliases, also behind their provider: `acme-large`, `acme/acme-large`, `acme/*`. */
  readonly models?: readonly string[] | undefined
  /** Ids; `custom` is every provider of the organization's own, `custom:<id>` one of them. */
  readonly providers?: readonly string[] | undefined
  readonly pricing?: 'free' | 'paid' | undefined
  /** USD per million tokens. */
  readonly maxInputPrice?: string | undefined
  readonly maxOutputPrice?: string | undefined
  readonly ipCidrs?: readonly string[] | undefined
}

/** An access rule of an organization, a member or a key. */
export interface Rule extends RuleValue {
  readonly id: string
  readonly type: RuleType
  /** The key that it narrows, or the member whose keys it narrows; without either, all keys of the organization. */
  readonly keyId: string | undefined
  readonly memberId: string | undefined
}

/** Requirements of an organization on providers. A fact that a provider does not state counts against it. */
export interface Compliance {
  /** Providers that do not train on API data. */
  readonly noTraining: boolean
  /** Zero data retention: providers that keep no prompts; the gateway replays no answers either. */
  readonly noLogging: boolean
  readonly gdpr: boolean
  /** `1`: a report of either type. */
  readonly soc2: '1' | '2' | undefined
  readonly iso27001: boolean
  /** A SOC 2 type 2 report or ISO 27001. */
  readonly soc2OrIso27001: boolean
  /** Countries of the headquarters. An empty list allows all; so do the other two lists of allowed values. */
  readonly countries: readonly string[]
  readonly allowedProviders: readonly string[]
  readonly blockedProviders: readonly string[]
  readonly allowedModels: readonly string[]
  readonly blockedModels: readonly string[]
}

/** A secret under a master key; `version` names that key. */
export interface Sealed {
  readonly version: string
  readonly nonce: Uint8Array
  /** With its authentication tag behind it. */
  readonly ciphertext: Uint8Array
}
/** Share of a provider key among those of its provider, and its limits per minute. */
export type KeyLoad = Pick<Credential, 'weight'> & NonNullable<Credential['limits']>
/** A provider key as it is kept. */
export interface SealedKey {
  readonly id: string
  readonly orgId: string
  readonly provider: string
  readonly label: string
  readonly fingerprint: string
  readonly sealed: Sealed
  /** Names of the only models that it is for; undefined for all. */
  readonly models: readonly string[] | undefined
  readonly load?: KeyLoad
  /** Limits on what may be spent by it. */
  readonly budgets: readonly Budget[]
}

/** All that is kept of one organization's policy. The same object for as long as nothing of it changes. */
export interface PolicyFacts {
  readonly orgId: string
  /** Grows with every change. */
  readonly version: number
  /** Rules in force. */
  readonly rules: readonly Rule[]
  readonly compliance: Compliance | undefined
  readonly keys: readonly SealedKey[]
  /** Manifests of the organization's own providers, as JSON of what was declared. */
  readonly manifests: readonly string[]
}

/** Why an offer is not for this caller. */
export interface AccessIssue {
  readonly by: 'rules' | 'compliance'
  readonly reason: string
}

/**
 * Models that one key may call, by the rules of its organization, its member and the key, and by the compliance policy.
 * Immutable.
 */
export interface Access {
  /** Keys with one id are answered alike; another id stands for other rules, keys or models. */
  readonly id: string
  /** False when no rule denies anything. */
  readonly restricted: boolean
  /** Throws 403 when the key may not be used from `address`, which is computed only if a rule needs it. */
  admit(address: () => Address | undefined): void
  /**
   * Undefined for an offer that the key may use. Limits on prices hold for what `request` would be charged at, without
   * one for the prices of short prompts at the usual service tier.
   */
  issue(mapping: Mapping, request?: PricedRequest): AccessIssue | undefined
  /** Checks the rules of providers, compliance and a session's scope only. */
  providerIssue(mapping: Mapping): AccessIssue | undefined
}

/** A request, as far as the prices of tokens depend on it. */
export interface PricedRequest {
  /** As estimated. */
  readonly promptTokens: number
  readonly terms: Terms
}

/** The properties of a caller that rules depend on. */
export type CallerFacts = Pick<Principal, 'keyId' | 'member' | 'session'>

/** The policy of one organization. Immutable: a change makes another one. */
export interface Policy {
  /** False under zero data retention: answers are not kept for replay. */
  readonly keepsReplies: boolean
  /** Seals for provider data that the organization's clients keep. */
  readonly seals: Seals
  access(caller: CallerFacts): Access
  /** The shared catalogue and the organization's own providers and models in one. */
  catalog(shared: Catalog): Catalog
  /**
   * The organization's keys for a provider, oldest first. Throws a GatewayError 503 `credential_unavailable` for one
   * that cannot be decrypted.
   */
  credentials(providerId: string): readonly Credential[]
}

/** The policy of each organization. */
export interface Policies {
  /** Cached after the first call. Throws a GatewayError 503 when the store is unavailable. */
  of(orgId: string): Policy | Promise<Policy>
}

/** End user and tags of a request: it is recorded, summed, limited and routed by them. */
export interface Labels {
  readonly endUser: string | undefined
  readonly tags: ReadonlyMap<string, string>
}
export const NO_LABELS: Labels = Object.freeze({ endUser: undefined, tags: new Map<string, string>() })

/** How requests name their end users. */
export interface EndUserOptions {
  /** In lower case; undefined for none. */
  readonly header: string | undefined
  /** Path of a member of the body. */
  readonly field: string
  /** Limits what each may spend. */
  readonly limit?: Pick<Budget, 'limit' | 'period' | 'onLimit'> | undefined
}

/** The caller of an exchange: who it is, and what it may call. Set by the filter that finds it. */
export class Caller {
  principal: Principal | undefined = undefined
  /** The organization's policy, and the key's access under it; both are set with the principal. */
  policy: Policy | undefined = undefined
  access: Access | undefined = undefined
  /** Read from the headers at first, from the body too once that has been read. */
  labels: Labels = NO_LABELS

  /** The organization whose shares of the process the request takes; '' before it is known. */
  get tenant(): string {
    return this.principal?.orgId ?? ''
  }
}

/** Returns the catalogue of an exchange after the policy of its caller's organization. */
export function catalogOf(ex: {
  readonly snapshot: { readonly catalog: Catalog }
  readonly caller: Pick<Caller, 'policy'>
}): Catalog {
  const { catalog } = ex.snapshot
  return ex.caller.policy?.catalog(catalog) ?? catalog
}
