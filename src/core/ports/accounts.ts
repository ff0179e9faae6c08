/**
 * Changes by the operator, each with a line in the audit log. An organization, a project and a member go by their id or
 * their name (a member by its address). Names are resolved when the change is made. Everything rejects with a
 * GatewayError: 404 for something missing, 400 for an invalid value, 503 when the store fails.
 */

import type { Period } from '../../lib/period.ts'
import type { OnLimit, RateChange, RateLimits } from '../../limits/kinds.ts'
import type { Money } from '../money.ts'
import type { PlanName } from '../plan.ts'
import type { KeyKind, PlanState, ProjectMode, Role } from './keys.ts'

/** The author of a change, as the audit log names them. */
export type Actor = string

/**
 * The part of a long list that follows the record with the id `after`. When that is not in it, nothing follows; but
 * where records can be removed, rules and provider keys, what was made after it does.
 */
export interface Page {
  readonly after?: string | undefined
  readonly limit?: number | undefined
}

/** Rate limits of a record; absent where it has none. */
interface Limited {
  readonly rateLimits?: RateLimits | undefined
}
interface Limitable {
  readonly rates?: RateChange | undefined
}

/** An organization as commands return it. `createdAt`, as in all records here, is ISO 8601. */
export interface OrganizationRecord extends Limited {
  readonly id: string
  readonly name: string
  readonly account: 'open' | 'prepaid'
  readonly retains: boolean
  readonly plan: PlanName | null
  readonly createdAt: string
}
/** An update leaves what is undefined as it is. */
export interface OrganizationChanges extends Limitable {
  readonly name?: string | undefined
  readonly account?: 'open' | 'prepaid' | undefined
  /** Whether it pays for the storage of its data. */
  readonly retains?: boolean | undefined
}
/** Organizations, each with a balance of its own. */
export interface OrganizationStore {
  /** Prepaid unless said otherwise, with a balance of zero. */
  create(input: OrganizationChanges & { readonly name: string }, actor: Actor): Promise<OrganizationRecord>
  /** The oldest first. */
  list(page?: Page): Promise<OrganizationRecord[]>
  update(organization: string, changes: OrganizationChanges, actor: Actor): Promise<OrganizationRecord>
}

/** A project as commands return it; `organization` is a name. */
export interface ProjectRecord extends Limited {
  readonly id: string
  readonly name: string
  readonly organization: string
  readonly mode: ProjectMode
  /** Null while responses are not cached. */
  readonly cacheTtlMs: number | null
  /** Chat parameters that the interface does not list go to wires that have them. */
  readonly passesParameters: boolean
  /** Prompts are marked for the caches of providers, where that saves money. */
  readonly cachesPrompts: boolean
  /** How long responses are stored; null while they are not. */
  readonly responsesMs: number | null
  /** How long the content of requests is kept; null while it is not. */
  readonly contentMs: number | null
  readonly status: 'active' | 'archived'
  readonly limits: readonly LimitRecord[]
  readonly createdAt: string
}
/** An update leaves what is undefined as it is. */
export interface ProjectChanges extends Limitable {
  readonly name?: string | undefined
  readonly mode?: ProjectMode | undefined
  /** `on` turns the cache on for as long as it was, else for a minute; null turns it off. */
  readonly cacheTtlMs?: number | 'on' | null | undefined
  readonly passesParameters?: boolean | undefined
  readonly cachesPrompts?: boolean | undefined
  /** Null keeps none. Refused for an organization that keeps no data; `contentMs` likewise. */
  readonly responsesMs?: number | null | undefined
  readonly contentMs?: number | null | undefined
  readonly archived?: boolean | undefined
  readonly limit?: LimitChange | undefined
}
/** Projects: what groups the keys of an organization. */
export interface ProjectStore {
  create(
    input: ProjectChanges & { readonly organization: string; readonly name: string },
    actor: Actor,
  ): Promise<ProjectRecord>
  list(organization?: string, page?: Page): Promise<ProjectRecord[]>
  update(project: string, changes: ProjectChanges, actor: Actor): Promise<ProjectRecord>
}

/** A limit as a command gives it. */
export interface LimitInput {
  readonly amount: Money
  /** Undefined: of all time. */
  readonly period?: Period | undefined
  /** IANA time zone; UTC. */
  readonly zone?: string | undefined
  /** Undefined: as before, `refuse` at first. */
  readonly onLimit?: OnLimit | undefined
}
/** A limit with what counts against it; `resetsAt` is null for one of all time. */
export interface LimitRecord {
  readonly period: Period | 'total'
  readonly limit: Money
  /** In the period that runs. */
  readonly spent: Money
  readonly zone: string
  readonly resetsAt: string | null
  /** `refuse` where it is left out. */
  readonly on_limit?: OnLimit
}
/** A change of the limits: sets one, or drops the total or the periodic limit. */
export type LimitChange = { readonly set: LimitInput } | { readonly drop: 'total' | 'period' }

/** A member as commands return it. */
export interface MemberRecord extends Limited {
  readonly id: string
  readonly organization: string
  readonly email: string
  readonly role: Role
  /** Names of the projects that it has access to; null for all. */
  readonly projects: readonly string[] | null
  readonly limits: readonly LimitRecord[]
  readonly createdAt: string
}
/** An update leaves what is undefined as it is; `projects: null` gives access to all. */
export interface MemberChanges extends Limitable {
  readonly role?: Role | undefined
  readonly projects?: readonly string[] | null | undefined
  readonly limit?: LimitChange | undefined
}
/** Members of organizations. */
export interface MemberStore {
  add(
    input: MemberChanges & { readonly organization: string; readonly email: string; readonly role: Role },
    actor: Actor,
  ): Promise<MemberRecord>
  list(organization?: string, page?: Page): Promise<MemberRecord[]>
  update(organization: string, member: string, changes: MemberChanges, actor: Actor): Promise<MemberRecord>
  /** Keys that it has made are refused from then on. */
  remove(organization: string, member: string, actor: Actor): Promise<MemberRecord>
}

/** A key as commands return it, without its secret. */
export interface KeyRecord extends Limited {
  readonly id: string
  readonly name: string
  readonly kind: KeyKind
  readonly project: string
  readonly organization: string
  readonly preview: string
  readonly status: 'active' | 'revoked' | 'expired'
  /** Address of the member who made it. */
  readonly createdBy: string | null
  readonly createdAt: string
  readonly expiresAt: string | null
  readonly limits: readonly LimitRecord[]
  /** Spending of all time. */
  readonly spent: Money
}
/** A key to create; one without `expiresAt` does not expire. */
export interface NewKey extends Limitable {
  readonly project: string
  readonly name: string
  readonly kind?: KeyKind | undefined
  /** Unix milliseconds. */
  readonly expiresAt?: number | undefined
  /** A member of the project's organization. */
  readonly createdBy?: string | undefined
  readonly limit?: LimitInput | undefined
  /** Stands in place of a new secret's SHA-256: `KeyStore.find` takes it. */
  readonly hash?: string | undefined
  /** History of a key that another gateway has made. */
  readonly past?: { readonly preview: string; readonly spent: Money; readonly revoked: boolean } | undefined
}
/** Changes of a key. Undefined fields stay unchanged. */
export interface KeyChanges extends Limitable {
  readonly name?: string | undefined
  /** Null: never. */
  readonly expiresAt?: number | null | undefined
  readonly limit?: LimitChange | undefined
}
/** Creates the first account on an empty store, and manages keys. */
export interface AccountStore {
  /** On an empty store, all at once: the default organization, project, owner and key. Returns the key when it was made. */
  bootstrap(): Promise<(KeyRecord & { key: string }) | undefined>
  /** Returns the secret, which is never shown again. With a `past`, a key of the same hash is found and stays as it is. */
  createKey(input: NewKey, actor?: Actor): Promise<KeyRecord & { key: string; found?: true }>
  /** The oldest first, without the sessions that keys have begun. */
  listKeys(project?: string, page?: Page): Promise<KeyRecord[]>
  showKey(id: string): Promise<KeyRecord>
  updateKey(id: string, changes: KeyChanges, actor?: Actor): Promise<KeyRecord>
  revokeKey(id: string, actor?: Actor): Promise<KeyRecord>
  /** Ends a key and makes its successor, which has its limits with what was spent of them. */
  rollKey(id: string, actor?: Actor): Promise<KeyRecord & { key: string }>
}

/** A session that `OperatorSessionStore` has begun; `expiresAt` is ISO 8601. */
export interface OperatorSession {
  readonly id: string
  /** The secret. */
  readonly key: string
  readonly expiresAt: string
}
/** Lets the operator make a request in a project without a key of it. */
export interface OperatorSessionStore {
  /**
   * Begins a session of one minute under a key of the project whose secret is never issued and which lasts as long as
   * its sessions. Their cost is recorded under that key.
   */
  begin(project: string, actor: Actor): Promise<OperatorSession>
  /** Takes a session away. One that is over may be gone already. */
  end(id: string): Promise<void>
}

/** A payment or a refund; `amount` is positive in both. */
export interface CreditInput {
  readonly organization: string
  readonly amount: Money
  /** Reference of the payment. The same reference is booked once. */
  readonly reference?: string | undefined
  readonly note?: string | undefined
}
/** One transfer of the ledger: `amount` goes from `counter` to the organization's `account`. */
export interface LedgerEntry {
  readonly reference: string
  readonly kind: string
  readonly organization: string
  readonly account: 'credits' | 'plan'
  readonly counter: 'payments' | 'usage'
  readonly amount: Money
  readonly note: string | null
  readonly at: string
}
/** A discount by what it is for; null for a provider or a model stands for any. */
export interface DiscountRecord {
  /** Null: every organization. */
  readonly organization: string | null
  readonly provider: string | null
  readonly model: string | null
  readonly millionths: number
}
/** Prepaid credits and discounts of organizations. */
export interface CreditStore {
  add(input: CreditInput, actor: Actor): Promise<LedgerEntry>
  /** Refunds credits. Refuses more than the free balance of a prepaid account. */
  refund(input: CreditInput, actor: Actor): Promise<LedgerEntry>
  show(organization: string): Promise<{ balance: Money; held: Money; used: Money }>
  /** Payments and refunds, the newest first; `offset` of them are left out. */
  entries(organization: string, limit?: number, offset?: number): Promise<LedgerEntry[]>
  /** Zero millionths takes a discount away. */
  discount(input: DiscountRecord, actor: Actor): Promise<DiscountRecord>
  discounts(organization?: string, limit?: number, offset?: number): Promise<DiscountRecord[]>
}

/** Coding plans of organizations; null where an organization has none. */
export interface PlanStore {
  /** Another plan at the same time of the month keeps what was used of it. Null ends the plan. */
  set(
    organization: string,
    changes: { readonly plan?: PlanName | null | undefined; readonly overflow?: boolean | undefined },
    actor: Actor,
  ): Promise<PlanState | null>
  show(organization: string): Promise<PlanState | null>
  /** Begins the week of premium models anew. */
  resetWeek(organization: string, actor: Actor): Promise<PlanState>
}

/** One change, and what was there before and after it. */
export interface AuditEntry {
  readonly id: number
  readonly at: string
  readonly actor: Actor
  /** Such as `keys.create`. */
  readonly action: string
  readonly organization: string | null
  /** Id of what was changed. */
  readonly subject: string
  readonly before: unknown
  readonly after: unknown
}
/** The audit log, to be read. */
export interface AuditStore {
  /** The newest first. */
  list(query: { organization?: string | undefined; limit: number; before?: number | undefined }): Promise<AuditEntry[]>
}

/** Ids of what an operator names. */
export interface NameStore {
  organization(wanted: string): Promise<string>
  project(wanted: string): Promise<string>
  /** One of any status. */
  key(id: string): Promise<string>
}

/** All that a store has for the operator's commands about accounts. */
export interface AccountStores {
  readonly accounts: AccountStore
  readonly operatorSessions: OperatorSessionStore
  readonly organizations: OrganizationStore
  readonly projects: ProjectStore
  readonly members: MemberStore
  readonly credits: CreditStore
  readonly plans: PlanStore
  readonly audit: AuditStore
  readonly names: NameStore
}
