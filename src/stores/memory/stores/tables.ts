/** All records of the stores in memory: rows by id, changed in transactions that undo failures. */
import { errors, GatewayError } from '../../../core/error.ts'
import type { Money } from '../../../core/money.ts'
import type { Compliance, RuleType, RuleValue, Sealed } from '../../../core/policy.ts'
import type {
  AuditEntry,
  Delivery,
  HoldRequest,
  Job,
  KeyKind,
  OAuthClient,
  OrganizationRecord,
  Page,
  Principal,
  Progress,
  ProjectMode,
  RequestRow,
  ResponseOwner,
  ResponseRecord,
  Role,
} from '../../../core/ports.ts'
import { auditText, auditValue, type Note } from '../../rules/audit.ts'
import type { BudgetAccount } from '../../rules/budgets.ts'
import type { PlanAccount } from '../../rules/plans.ts'
import type { OpenHold } from '../../rules/reservations.ts'
import type { Payment } from '../../rules/settlement.ts'
import type { HourSum } from '../../rules/usage.ts'

/** Rows are replaced, never modified. Times are Unix milliseconds. */
interface Row {
  readonly id: string
  readonly createdAt: number
}
export interface Organization extends Row, Pick<OrganizationRecord, 'name' | 'account' | 'retains'> {}
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
export interface Member extends Row {
  readonly orgId: string
  readonly email: string
  readonly role: Role
  /** Ids; null for all. */
  readonly projects: readonly string[] | null
  readonly removedAt: number | null
}
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
export interface HeldRow extends Row, OpenHold {
  readonly request: HoldRequest['request']
  readonly provider: string | null
  readonly principal: Principal
  readonly expiresAt: number
  readonly progress: Progress | undefined
}
export interface Paid {
  readonly row: RequestRow
  readonly payment: Payment
}
export interface Balance {
  readonly balance: Money
  readonly held: Money
  readonly used: Money
}
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
export interface RuleRow extends Row {
  readonly orgId: string
  readonly keyId: string | null
  readonly memberId: string | null
  readonly type: RuleType
  readonly value: RuleValue
  readonly active: boolean
}
export interface ProviderKeyRow extends Row {
  readonly orgId: string
  readonly provider: string
  readonly label: string
  readonly fingerprint: string
  readonly models: readonly string[] | null
  readonly sealed: Sealed
}
export interface ManifestRow {
  readonly orgId: string
  readonly provider: string
  readonly manifest: string
  readonly createdAt: number
}

/** Of a client, by what proves whose it is. */
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
export interface Code extends Secret {
  readonly grantId: string
  readonly redirectUri: string
  readonly challenge: string
}
export interface Token extends Secret {
  readonly grantId: string
  readonly kind: 'access' | 'refresh'
  readonly scopes: readonly string[]
}
export interface Login extends Secret {
  readonly memberId: string
  readonly projectId: string
}

export interface KeptResponse extends ResponseRecord, ResponseOwner {
  readonly bytes: number
}

interface Leased {
  readonly leaseOwner: string | null
  /** 0 for none. */
  readonly leaseUntil: number
}
export interface JobRow extends Job, Leased {}
export interface DeliveryRow extends Delivery, Leased {}

interface Placed<R> {
  readonly place: number
  readonly row: R
}

/** A client secret of a realtime session; `session` is sealed. */
export interface RealtimeSecret {
  readonly hash: string
  readonly id: string
  readonly keyId: string
  readonly session: string
  readonly expiresAt: number
}

/** Rows in insertion order. */
export class Table<R> {
  readonly #rows = new Map<string, Placed<R>>()
  readonly #undo: (undo: () => void) => void
  #made = 0

  /** `undo` records how to revert a change, while its transaction may fail. */
  constructor(undo: (undo: () => void) => void) {
    this.#undo = undo
  }

  get(id: string): R | undefined {
    return this.#rows.get(id)?.row
  }

  set(id: string, row: R): void {
    const before = this.#rows.get(id)
    this.#rows.set(id, { place: before?.place ?? this.#made++, row })
    this.#undo(() => (before ? this.#rows.set(id, before) : this.#rows.delete(id)))
  }

  /** Returns the deleted row. */
  delete(id: string): R | undefined {
    const before = this.#rows.get(id)
    if (!before) return undefined
    this.#rows.delete(id)
    this.#undo(() => this.#rows.set(id, before))
    return before.row
  }

  all(): R[] {
    return [...this.#rows.values()].sort((a, b) => a.place - b.place).map(({ row }) => row)
  }

  /** In any order. */
  *rows(): Generator<R> {
    for (const { row } of this.#rows.values()) yield row
  }

  filter(test: (row: R) => boolean): R[] {
    return this.all().filter(test)
  }
}

/** With the time of its last change, Unix milliseconds. */
export interface KeptHour extends HourSum {
  readonly updatedAt: number
}

export class Tables {
  readonly now: () => number
  #undo: (() => void)[] | undefined
  readonly #undoable = (undo: () => void): void => void this.#undo?.push(undo)
  readonly organizations = new Table<Organization>(this.#undoable)
  readonly projects = new Table<Project>(this.#undoable)
  readonly members = new Table<Member>(this.#undoable)
  readonly keys = new Table<Key>(this.#undoable)
  /** Number of sessions of a key, and a lower bound of the earliest expiry among them. */
  readonly sessions = new Table<{ readonly count: number; readonly ends: number }>(this.#undoable)
  readonly holds = new Table<HeldRow>(this.#undoable)
  readonly jobs = new Table<JobRow>(this.#undoable)
  readonly events = new Table<DeliveryRow>(this.#undoable)
  readonly responses = new Table<KeptResponse>(this.#undoable)
  readonly requests = new Table<Paid>(this.#undoable)
  /** Sums of deleted rows, by organization. */
  readonly pruned = new Table<{ orgId: string; requests: number; cost: Money; charged: Money }>(this.#undoable)
  readonly hours = new Table<KeptHour>(this.#undoable)
  readonly balances = new Table<Balance & { orgId: string }>(this.#undoable)
  readonly budgets = new Table<BudgetAccount & { readonly subject: string }>(this.#undoable)
  readonly plans = new Table<PlanAccount & { orgId: string }>(this.#undoable)
  readonly entries = new Table<Entry>(this.#undoable)
  readonly discounts = new Table<DiscountRow>(this.#undoable)
  readonly rules = new Table<RuleRow>(this.#undoable)
  readonly providerKeys = new Table<ProviderKeyRow>(this.#undoable)
  readonly manifests = new Table<ManifestRow>(this.#undoable)
  readonly policies = new Table<{ version: number; compliance: Compliance | null }>(this.#undoable)
  readonly clients = new Table<OAuthClient>(this.#undoable)
  readonly grants = new Table<Grant>(this.#undoable)
  readonly codes = new Table<Code>(this.#undoable)
  readonly tokens = new Table<Token>(this.#undoable)
  readonly logins = new Table<Login>(this.#undoable)
  readonly realtimeSecrets = new Table<RealtimeSecret>(this.#undoable)
  readonly audit = new Table<AuditEntry & { readonly orgId: string | null }>(this.#undoable)
  #lines = 0

  constructor(now: () => number) {
    this.now = now
  }

  /** Runs `work` at once. When it throws, undoes all its changes and rethrows the error as `explain` converts it. */
  async run<T>(work: () => T, explain: (cause: unknown) => Error = storeError): Promise<T> {
    this.#undo = []
    try {
      return work()
    } catch (thrown) {
      const undo = this.#undo.reverse()
      this.#undo = undefined
      for (const one of undo) one()
      throw explain(thrown)
    } finally {
      this.#undo = undefined
    }
  }

  /** Within `run`: adds a line to the audit log. */
  note({ actor, action, organization, subject, was, became }: Note): void {
    const id = ++this.#lines
    const at = iso(this.now())
    const [before, after] = [auditValue(auditText(was)), auditValue(auditText(became))]
    this.audit.set(String(id), {
      id,
      at,
      actor,
      action,
      organization: null,
      orgId: organization,
      subject,
      before,
      after,
    })
  }

  balance(orgId: string): Balance {
    const { balance, held, used } = this.balances.get(orgId) ?? { balance: 0n, held: 0n, used: 0n }
    return { balance, held, used }
  }

  /** Within `run`. */
  addToBalance(orgId: string, { balance = 0n, held = 0n, used = 0n }: Partial<Balance>): void {
    const old = this.balance(orgId)
    const sums = { balance: old.balance + balance, held: old.held + held, used: old.used + used }
    this.balances.set(orgId, { orgId, ...sums })
  }

  /** Within `run`: adds an entry to the ledger. Throws for a second one of the same kind and reference. */
  book(entry: Entry): void {
    const id = entryId(entry)
    if (this.entries.get(id)) throw new Error(`The ledger already has the entry ${id}.`)
    this.entries.set(id, entry)
  }

  nameOf(orgId: string): string {
    return this.organizations.get(orgId)!.name
  }
}

const storeError = (cause: unknown): Error => (cause instanceof GatewayError ? cause : errors.storeUnavailable(cause))

export const entryId = ({ kind, reference }: Pick<Entry, 'kind' | 'reference'>): string => `${kind} ${reference}`

export const iso = (at: number): string => new Date(at).toISOString()

/** Rows after the one with the id `after`, in insertion order. */
export function behind<R extends { readonly id: string }>(rows: readonly R[], { after }: Page = {}): R[] {
  if (after === undefined) return [...rows]
  const at = rows.findIndex(({ id }) => id === after)
  return at < 0 ? [] : rows.slice(at + 1)
}

/** The same for rows that can be deleted: those created after it. */
export const later = <R extends { readonly id: string }>(rows: readonly R[], { after = '' }: Page = {}): R[] =>
  rows.filter(({ id }) => id > after).sort((a, b) => order(a.id, b.id))

export const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
