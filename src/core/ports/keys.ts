/** Callers, and what they may spend. */
import type { OwnLimits } from '../../limits/kinds.ts'
import type { LimitTerms } from '../../limits/money.ts'
import type { Money } from '../money.ts'
import type { PlanName } from '../plan.ts'

/** A `publishable` key may stand in client programs and calls no models; a `session` is one end user's, for a time. */
export type KeyKind = 'key' | 'publishable' | 'session'

/** Credentials that apply: the operator's, the organization's own, or (`hybrid`) its own before those of the operator. */
export type ProjectMode = 'credits' | 'api-keys' | 'hybrid'

/** Rights of a member within its organization. */
export type Role = 'owner' | 'admin' | 'developer'

/** A limit on what a key may spend, all keys of a project or a member, a session, or on what is spent by a provider key. */
export interface Budget extends LimitTerms {
  readonly of: 'key' | 'member' | 'project' | 'session' | 'provider-key' | 'end-user'
}

/** An organization's coding plan. */
export interface Subscription {
  readonly plan: PlanName
  /** Unix milliseconds; its months are counted from here. */
  readonly since: number
  /** Credits pay for what the allowance does not. */
  readonly overflow: boolean
}

/** Taken off the price of what a platform credential serves; null stands for any. */
export interface Discount {
  readonly provider: string | null
  readonly model: string | null
  /** Share of the price in millionths; 100_000 is ten percent. */
  readonly millionths: number
}

/** Session that a client secret opens. */
export interface RealtimeGrant {
  /** Id of the session, as its client sees it. */
  readonly id: string
  /** JSON of the session's settings. Kept sealed. */
  readonly session: string
}

/** The caller: one key of one project of one organization. */
export interface Principal {
  readonly keyId: string
  readonly keyName: string
  readonly kind: KeyKind
  readonly projectId: string
  readonly orgId: string
  readonly orgName: string
  /** `open`: the balance may fall below zero without bound. `prepaid`: it may not. */
  readonly account: 'open' | 'prepaid'
  /** The credentials that the project uses. */
  readonly mode: ProjectMode
  readonly archived: boolean
  /** Unix milliseconds. */
  readonly expiresAt: number | undefined
  /** Response caching of the project; undefined while it is off. */
  readonly cacheTtlMs: number | undefined
  /** The project's chat parameters that the interface does not list go to wires that have them. */
  readonly passesParameters: boolean
  /** Prompts are marked for the caches of providers, where that saves money (see `Mapping.autoCache`). */
  readonly cachesPrompts: boolean
  /** How long the project stores responses; undefined while it stores none. */
  readonly responsesMs: number | undefined
  /** How long the project keeps the content of requests; undefined while it keeps none. */
  readonly contentMs?: number | undefined
  /** The member who created the key; undefined for the operator. */
  readonly member: { readonly id: string; readonly role: Role } | undefined
  /** Issuer of the token that stands for the key; undefined for a key itself. */
  readonly issuer?: string | undefined
  /** False when that member has left, or lost access to the project. */
  readonly access: boolean
  /** Access token that stands for the key, with fewer scopes and its own expiry; undefined for the key itself. */
  readonly token?: { readonly scopes: readonly string[]; readonly expiresAt: number } | undefined
  /** Session begun by a key, with the models that it may call. `keyId` is that key, which pays for the session. */
  readonly session?: { readonly id: string; readonly models: readonly string[] | undefined } | undefined
  /** End user whom the credential itself names; headers and bodies name no other one. */
  readonly endUser?: string | undefined
  /** Grant of a client secret, which opens nothing else. */
  readonly realtime?: RealtimeGrant | undefined
  /** Limits of the session, the member and the key; most have none. */
  readonly budgets: readonly Budget[]
  /** Rate limits that commands have set for it, or for what it is part of; undefined where there are none. */
  readonly rates?: readonly OwnLimits[] | undefined
  readonly plan: Subscription | undefined
  /** The most specific first. */
  readonly discounts: readonly Discount[]
  /** The organization pays for the storage of its data. */
  readonly retains: boolean
  /** When the organization was made, Unix milliseconds. */
  readonly since: number
}

/** A budget with what counts against it. */
export interface BudgetState extends Budget {
  /** In the period that runs. */
  readonly spent: Money
  readonly held: Money
  /** Unix milliseconds; undefined for one of all time. */
  readonly resetsAt: number | undefined
}

/** A subscription with what was used of it. Times are Unix milliseconds. */
export interface PlanState extends Subscription {
  /** In the month that runs. */
  readonly used: Money
  readonly renewsAt: number
  /** Premium models' share of it, in the week that runs. */
  readonly premiumUsed: Money
  /** Undefined while no week runs. */
  readonly premiumResetsAt: number | undefined
}

/** Spending of a key and its limits. */
export interface KeyStatus {
  /** Spending of all time. */
  readonly spent: Money
  readonly budgets: readonly BudgetState[]
  readonly plan: PlanState | undefined
}

/** An end user's session, as requested by the holder of a key. */
export interface SessionInput {
  /** The key that begins it. */
  readonly principal: Principal
  /** The end user's id, chosen by the holder of the key. */
  readonly customer: string
  /** Names of the only models that it may call; undefined for all that the key may. */
  readonly models: readonly string[] | undefined
  /** Limit of the session, besides the key's own limits. */
  readonly limit: Money | undefined
  /** Unix milliseconds. */
  readonly expiresAt: number
}
/** End users' sessions. */
export interface SessionStore {
  /** The secret is never shown again. Rejects with a GatewayError 503 when the store fails. */
  begin(input: SessionInput): Promise<{ readonly id: string; readonly key: string }>
}

/** Finds the principal of a request. */
export interface KeyStore {
  /**
   * The live key with this SHA-256 (hex), or undefined. Throws or rejects when the store is unavailable. No promise where
   * the key is known: every request begins with it.
   */
  find(hash: string): Principal | undefined | Promise<Principal | undefined>
  status(principal: Principal): Promise<KeyStatus>
}

/** The keys through which callers use projects with tokens of an identity provider: one for each issuer and project. */
export interface IssuerKeyStore {
  /**
   * Resolves with what `KeyStore.find` takes for the key, which the first caller makes. Rejects with 404 for a project
   * that does not exist. `project` and `org` are ids or names.
   */
  keyOf(issuer: string, place: { readonly org: string | undefined; readonly project: string }): Promise<string>
  /** Resolves with the same for the operator's own requests, whose organization the first call makes. */
  keyOfOperator(): Promise<string>
}

/** Client secrets of realtime sessions, each by its SHA-256: for a short time they open sessions as their key. */
export interface RealtimeSecretStore {
  /** The secret is never shown again. Ends the oldest secrets of a key that has too many. Rejects with 503 when the store fails. */
  begin(input: {
    readonly principal: Principal
    readonly session: string
    /** Unix milliseconds. */
    readonly expiresAt: number
  }): Promise<{ readonly id: string; readonly secret: string }>
  /** Whom the live secret with this SHA-256 (hex) makes: its key, with what the secret opens, and no longer than both live. */
  find(hash: string): Promise<Principal | undefined>
  /** The principal of a regular key that may be used now, for sessions that outlive what opened them. */
  live(keyId: string): Promise<Principal | undefined>
}
