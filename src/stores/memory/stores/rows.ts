/** Rows of the stores in memory. */
import type { Money } from '../../../core/money.ts'
import type { RuleType, RuleValue, Sealed } from '../../../core/policy.ts'
import type {
  Delivery,
  HoldRequest,
  Job,
  KeyKind,
  OrganizationRecord,
  Principal,
  Progress,
  ProjectMode,
  RequestRow,
  ResponseOwner,
  ResponseRecord,
  Role,
} from '../../../core/ports.ts'
import type { OpenHold } from '../../rules/reservations.ts'
import type { Payment } from '../../rules/settlement.ts'
import type { HourSum } from '../../rules/usage.ts'

/** Rows are replaced, never modified. Times are Unix milliseconds. */
interface Row {
  readonly id: string
  readonly createdAt: number
}
/** A customer, as the API shows it. */
export interface Organization extends Row, Pick<OrganizationRecord, 'name' | 'account' | 'retains'> {}
/** Null for `cacheTtlMs`: no cache; for `responsesMs`: responses are not stored; for `archivedAt`: active. */
export interface Project extends Row {
  readonly orgId: string
  readonly name: string
  readonly mode: ProjectMode
  readonly cacheTtlMs: number | null
  readonly passesParameters: boolean
  readonly cachesPrompts: boolean
  readonly responsesMs: number | null
  readonly archivedAt: number | null
}
/** A person of an organization; removed ones stay, for the audit log. */
export interface Member extends Row {
  readonly orgId: string
  readonly email: string
  readonly role: Role
  /** Ids; null for all. */
  readonly projects: readonly string[] | null
  readonly removedAt: number | null
}
/** A key, or a session of one; found by the SHA-256 of its secret. */
export interface Key extends Row {
  readonly projectId: string
  readonly name: string
  readonly kind: KeyKind
  readonly hash: string
  readonly preview: string
  readonly createdBy: string | null
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  /** The key that began this session. */
  readonly parentId: string | null
  readonly models: readonly string[] | null
  /** The predecessor of this key. */
  readonly succeeds: string | null
}
/** A hold that is open, with what an orphan's request row is made from. */
export interface HeldRow extends Row, OpenHold {
  readonly request: HoldRequest['request']
  readonly provider: string | null
  readonly principal: Principal
  readonly expiresAt: number
  readonly progress: Progress | undefined
}
/** A request row, and how it was paid. */
export interface Paid {
  readonly row: RequestRow
  readonly payment: Payment
}
/** Credits of an organization in nano-USD; `held` is a part of `balance`, `used` counts all charges. */
export interface Balance {
  readonly balance: Money
  readonly held: Money
  readonly used: Money
}
/** A line of the ledger, in nano-USD; unique by kind and reference. */
export interface Entry {
  readonly orgId: string
  readonly reference: string
  readonly kind: 'topup' | 'refund' | 'charge' | 'plan'
  readonly amount: Money
  readonly note: string | null
  readonly at: number
}
/** '' matches any. */
export interface DiscountRow {
  readonly orgId: string
  readonly provider: string
  readonly model: string
  readonly millionths: number
}
/** A rule of an organization, or of a member or key of it where one is named. */
export interface RuleRow extends Row {
  readonly orgId: string
  readonly keyId: string | null
  readonly memberId: string | null
  readonly type: RuleType
  readonly value: RuleValue
  readonly active: boolean
}
/** An organization's key at a provider; null for `models` allows all. */
export interface ProviderKeyRow extends Row {
  readonly orgId: string
  readonly provider: string
  readonly label: string
  readonly fingerprint: string
  readonly models: readonly string[] | null
  readonly sealed: Sealed
}
/** A custom provider; `manifest` is YAML. */
export interface ManifestRow {
  readonly orgId: string
  readonly provider: string
  readonly manifest: string
  readonly createdAt: number
}

/** What a person let a program do: act for a key, within scopes. */
export interface Grant extends Row {
  readonly clientId: string
  readonly clientName: string
  readonly keyId: string
  readonly scopes: readonly string[]
  readonly resource: string
  /** The key was made for it alone, and ends with it. */
  readonly madeKey: boolean
  readonly usedAt: number | null
  readonly revokedAt: number | null
}
/** What is presented once, or until it ends. */
interface Secret {
  /** SHA-256, hex. */
  readonly hash: string
  readonly expiresAt: number
  /** When it was used up. */
  readonly usedAt: number | null
}
/** An authorization code with its PKCE challenge (RFC 7636). */
export interface Code extends Secret {
  readonly grantId: string
  readonly redirectUri: string
  readonly challenge: string
}
/** An access or refresh token of a grant. */
export interface Token extends Secret {
  readonly grantId: string
  readonly kind: 'access' | 'refresh'
  readonly scopes: readonly string[]
}
/** A login code of a member, for one project. */
export interface Login extends Secret {
  readonly memberId: string
  readonly projectId: string
}

/** A response with its owner; `bytes` count against the limits of both. */
export interface StoredResponse extends ResponseRecord, ResponseOwner {
  readonly bytes: number
}

interface Leased {
  readonly leaseOwner: string | null
  /** 0 for none. */
  readonly leaseUntil: number
}
/** A job, and the worker that has claimed it. */
export interface JobRow extends Job, Leased {}
/** An attempt of a callback, and the worker that has claimed it. */
export interface DeliveryRow extends Delivery, Leased {}

/** A client secret of a realtime session; `session` is sealed. */
export interface RealtimeSecret {
  readonly hash: string
  readonly id: string
  readonly keyId: string
  readonly session: string
  readonly expiresAt: number
}

/** With the time of its last change, Unix milliseconds. */
export interface KeptHour extends HourSum {
  readonly updatedAt: number
}
