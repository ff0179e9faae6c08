/** All records of the stores in memory: rows by id, changed in transactions that undo failures. */
import { errors, GatewayError } from '../../../core/error.ts'
import type { Money } from '../../../core/money.ts'
import type { Compliance } from '../../../core/policy.ts'
import type { AuditEntry, OAuthClient, Page } from '../../../core/ports.ts'
import { auditText, auditValue, type Note } from '../../rules/audit.ts'
import type { BudgetAccount } from '../../rules/budgets.ts'
import type { PlanAccount } from '../../rules/plans.ts'
import type {
  Balance,
  Code,
  DeliveryRow,
  DiscountRow,
  Entry,
  Grant,
  HeldRow,
  JobRow,
  KeptHour,
  Key,
  Login,
  ManifestRow,
  Member,
  Organization,
  Paid,
  Project,
  ProviderKeyRow,
  RealtimeSecret,
  RuleRow,
  StoredResponse,
  Token,
} from './rows.ts'
import { Table } from './table.ts'

/** One table for each kind of record. A change outside `run` is not undone. */
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
  readonly responses = new Table<StoredResponse>(this.#undoable)
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

/** The id of a ledger entry, which makes it unique. */
export const entryId = ({ kind, reference }: Pick<Entry, 'kind' | 'reference'>): string => `${kind} ${reference}`

/** Unix milliseconds as ISO 8601 in UTC. */
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

/** For `sort`: by code units, as SQLite compares text. */
export const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
