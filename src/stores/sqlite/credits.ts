/** Payments and discounts, as operators book them. */
import type { Statement } from 'better-sqlite3'
import type { Money } from '../../core/money.ts'
import type { Actor, CreditInput, CreditStore, DiscountRecord, LedgerEntry } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { checkPayment, checkRefund, isRepeated, notFree } from '../rules/amounts.ts'
import type { Named } from '../rules/names.ts'
import type { AuditedTransaction } from './audited-transaction.ts'
import type { Sqlite } from './open.ts'
import { ALL } from './page.ts'

interface EntryRow {
  request_id: string
  kind: string
  org_id: string
  organization: string
  account: LedgerEntry['account']
  counter: LedgerEntry['counter']
  amount: Money
  note: string | null
  created_at: bigint
}
interface DiscountRow {
  organization: string | null
  provider: string
  model: string
  millionths: number
}
interface Balance {
  balance: Money
  held: Money
  used: Money
}

const ENTRIES = `
  SELECT request_id, kind, org_id, organizations.name AS organization, ledger.account, counter, amount, note,
    ledger.created_at
  FROM ledger JOIN organizations ON organizations.id = org_id`

/** `CreditStore` over `ledger`, `balances` and `discounts`; a reference is booked once. */
export class SqliteCredits implements CreditStore {
  readonly #changes: AuditedTransaction
  readonly #transfer: Statement
  readonly #add: Statement
  readonly #take: Statement
  readonly #balance: Statement<[string], Balance>
  readonly #entry: Statement<[string, string], EntryRow>
  readonly #entries: Statement<[org: string, limit: number, offset: number], EntryRow>
  readonly #setDiscount: Statement
  readonly #dropDiscount: Statement
  readonly #discounts: Statement<{ org: string | null; limit: number; offset: number }, DiscountRow>

  constructor(db: Sqlite, changes: AuditedTransaction) {
    this.#changes = changes
    this.#transfer = db.prepare(
      'INSERT INTO ledger (org_id, request_id, kind, amount, note, created_at) VALUES (?, ?, ?, ?, ?, ?)',
    )
    this.#add = db.prepare('UPDATE balances SET balance = balance + ? WHERE org_id = ?')
    this.#take = db.prepare(`
      UPDATE balances SET balance = balance - @amount
      WHERE org_id = @org AND (
        balance - held >= @amount
        OR (SELECT account FROM organizations WHERE id = org_id) = 'open'
      )`)
    this.#balance = db
      .prepare<[string], Balance>('SELECT balance, held, used FROM balances WHERE org_id = ?')
      .safeIntegers()
    this.#entry = db.prepare<[string, string], EntryRow>(`${ENTRIES} WHERE request_id = ? AND kind = ?`).safeIntegers()
    this.#entries = db
      .prepare<[string, number, number], EntryRow>(`
        ${ENTRIES} WHERE org_id = ? AND kind NOT IN ('charge', 'plan')
        ORDER BY ledger.created_at DESC, request_id, kind LIMIT ? OFFSET ?`)
      .safeIntegers()
    this.#setDiscount = db.prepare(`
      INSERT INTO discounts (org_id, provider, model, millionths) VALUES (@org, @provider, @model, @millionths)
      ON CONFLICT (org_id, provider, model) DO UPDATE SET millionths = excluded.millionths`)
    this.#dropDiscount = db.prepare(
      'DELETE FROM discounts WHERE org_id = @org AND provider = @provider AND model = @model',
    )
    this.#discounts = db.prepare(`
      SELECT organizations.name AS organization, provider, model, millionths
      FROM discounts LEFT JOIN organizations ON organizations.id = discounts.org_id
      WHERE @org IS NULL OR discounts.org_id IN ('', @org)
      ORDER BY discounts.org_id, provider, model LIMIT @limit OFFSET @offset`)
  }

  add(input: CreditInput, actor: Actor): Promise<LedgerEntry> {
    const { amount } = input
    return this.#book('topup', input, actor, ({ id, name }) => {
      checkPayment(this.#balance.get(id)!.balance, amount, name)
      this.#add.run(amount, id)
    })
  }

  refund(input: CreditInput, actor: Actor): Promise<LedgerEntry> {
    const { amount } = input
    return this.#book('refund', { ...input, amount: -amount }, actor, org => {
      const { balance, held } = this.#balance.get(org.id)!
      checkRefund(balance, amount, org.name)
      if (this.#take.run({ amount, org: org.id }).changes > 0) return
      throw notFree(balance - held, amount, org.name)
    })
  }

  async show(organization: string): Promise<Balance> {
    return this.#balance.get(this.#changes.directory.organization(organization).id)!
  }

  async entries(organization: string, limit = ALL, offset = 0): Promise<LedgerEntry[]> {
    return this.#entries.all(this.#changes.directory.organization(organization).id, limit, offset).map(entryOf)
  }

  discount(input: DiscountRecord, actor: Actor): Promise<DiscountRecord> {
    return this.#changes.run(() => {
      const { organization, provider, model, millionths } = input
      const org = organization === null ? null : this.#changes.directory.organization(organization)
      const key = { org: org?.id ?? '', provider: provider ?? '', model: model ?? '' }
      const all = this.#discounts.all({ org: org?.id ?? '', limit: ALL, offset: 0 }).map(discountOf)
      const name = org?.name ?? null
      const was = all.find(one => one.organization === name && one.provider === provider && one.model === model)
      if (millionths > 0) this.#setDiscount.run({ ...key, millionths })
      else this.#dropDiscount.run(key)
      const became = { organization: name, provider, model, millionths }
      const note = { actor, action: 'credits.discount', organization: org?.id ?? null, subject: org?.id ?? '*' }
      this.#changes.note({ ...note, was: was ?? null, became })
      return became
    })
  }

  async discounts(organization?: string, limit = ALL, offset = 0): Promise<DiscountRecord[]> {
    const org = organization === undefined ? null : this.#changes.directory.organization(organization).id
    return this.#discounts.all({ org, limit, offset }).map(discountOf)
  }

  /** Books a reference once: a repetition returns the first entry. Throws when that was another booking. */
  #book(kind: 'topup' | 'refund', input: CreditInput, actor: Actor, move: (org: Named) => void): Promise<LedgerEntry> {
    return this.#changes.run(() => {
      const { amount, note = null, reference = shortId() } = input
      const org = this.#changes.directory.organization(input.organization)
      const row = this.#entry.get(reference, kind)
      const before = row && { row, orgId: row.org_id, amount: row.amount }
      if (isRepeated(before, { orgId: org.id, amount }, kind, reference)) return entryOf(before.row)
      const was = this.#balance.get(org.id)!
      move(org)
      this.#transfer.run(org.id, reference, kind, amount, note, this.#changes.now())
      const became = { ...this.#balance.get(org.id)!, amount, reference }
      const action = kind === 'topup' ? 'credits.add' : 'credits.refund'
      this.#changes.note({ actor, action, organization: org.id, subject: org.id, was, became })
      return entryOf(this.#entry.get(reference, kind)!)
    })
  }
}

const entryOf = (row: EntryRow): LedgerEntry => ({
  reference: row.request_id,
  kind: row.kind,
  organization: row.organization,
  account: row.account,
  counter: row.counter,
  amount: row.amount,
  note: row.note,
  at: new Date(Number(row.created_at)).toISOString(),
})

const discountOf = ({ organization, provider, model, millionths }: DiscountRow): DiscountRecord => ({
  organization,
  provider: provider || null,
  model: model || null,
  millionths,
})
