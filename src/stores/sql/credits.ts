/** Payments and discounts, as operators book them. */
import type { Money } from '../../core/money.ts'
import type { Actor, CreditInput, CreditStore, DiscountRecord, LedgerEntry } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { checkPayment, checkRefund, isRepeated, notFree } from '../rules/amounts.ts'
import type { Named } from '../rules/names.ts'
import type { AuditedTransaction } from './audit.ts'
import { ALL, first, isoOf, type Sql } from './sql.ts'

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
  millionths: bigint
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
const PAYMENTS = `
  ${ENTRIES} WHERE org_id = $1 AND kind NOT IN ('charge', 'plan')
  ORDER BY ledger.created_at DESC, request_id, kind LIMIT $2 OFFSET $3`
const TRANSFER = `
  INSERT INTO ledger (org_id, request_id, kind, amount, note, created_at) VALUES ($1, $2, $3, $4, $5, $6)`
const TAKE = `
  UPDATE balances SET balance = balance - CAST($2 AS bigint)
  WHERE org_id = $1 AND (
    balance - held >= CAST($2 AS bigint)
    OR (SELECT account FROM organizations WHERE id = org_id) = 'open'
  )
  RETURNING org_id`
const DISCOUNTS = `
  SELECT organizations.name AS organization, provider, model, millionths
  FROM discounts LEFT JOIN organizations ON organizations.id = discounts.org_id
  WHERE CAST($1 AS text) IS NULL OR discounts.org_id IN ('', $1)
  ORDER BY discounts.org_id, provider, model LIMIT $2 OFFSET $3`
const SET_DISCOUNT = `
  INSERT INTO discounts (org_id, provider, model, millionths) VALUES ($1, $2, $3, $4)
  ON CONFLICT (org_id, provider, model) DO UPDATE SET millionths = excluded.millionths`
const DROP_DISCOUNT = 'DELETE FROM discounts WHERE org_id = $1 AND provider = $2 AND model = $3'

/** `CreditStore` over `ledger`, `balances` and `discounts`; a reference is booked once. */
export class SqlCredits implements CreditStore {
  readonly #changes: AuditedTransaction

  constructor(changes: AuditedTransaction) {
    this.#changes = changes
  }

  add(input: CreditInput, actor: Actor): Promise<LedgerEntry> {
    const { amount } = input
    return this.#book('topup', input, actor, async (sql, { id, name }) => {
      checkPayment((await balanceIn(sql, id)).balance, amount, name)
      await sql.query('UPDATE balances SET balance = balance + $2 WHERE org_id = $1', [id, amount])
    })
  }

  refund(input: CreditInput, actor: Actor): Promise<LedgerEntry> {
    const { amount } = input
    return this.#book('refund', { ...input, amount: -amount }, actor, async (sql, { id, name }) => {
      const { balance, held } = await balanceIn(sql, id)
      checkRefund(balance, amount, name)
      if (!(await first(sql, TAKE, [id, amount]))) throw notFree(balance - held, amount, name)
    })
  }

  show(organization: string): Promise<Balance> {
    const { sql, names } = this.#changes
    return this.#changes.read(async () => balanceIn(sql, (await names.organization(organization)).id))
  }

  entries(organization: string, limit = ALL, offset = 0): Promise<LedgerEntry[]> {
    const { sql, names } = this.#changes
    return this.#changes.read(async () => {
      const { id } = await names.organization(organization)
      return (await sql.query<EntryRow>(PAYMENTS, [id, limit, offset])).map(entryOf)
    })
  }

  discount(input: DiscountRecord, actor: Actor): Promise<DiscountRecord> {
    return this.#changes.run(async ({ sql, names, note }) => {
      const { organization, provider, model, millionths } = input
      const org = organization === null ? null : await names.organization(organization)
      const key = [org?.id ?? '', provider ?? '', model ?? '']
      const all = await discountsIn(sql, org?.id ?? '')
      const name = org?.name ?? null
      const was = all.find(one => one.organization === name && one.provider === provider && one.model === model)
      if (millionths > 0) await sql.query(SET_DISCOUNT, [...key, millionths])
      else await sql.query(DROP_DISCOUNT, key)
      const became = { organization: name, provider, model, millionths }
      const subject = org?.id ?? '*'
      const line = { actor, action: 'credits.discount', organization: org?.id ?? null, subject }
      await note({ ...line, was: was ?? null, became })
      return became
    })
  }

  discounts(organization?: string, limit = ALL, offset = 0): Promise<DiscountRecord[]> {
    const { sql, names } = this.#changes
    return this.#changes.read(async () => discountsIn(sql, await names.organizationId(organization), limit, offset))
  }

  /** Books a reference once: a repetition returns the first entry. Rejects when that was another booking. */
  #book(
    kind: 'topup' | 'refund',
    input: CreditInput,
    actor: Actor,
    move: (sql: Sql, org: Named) => Promise<void>,
  ): Promise<LedgerEntry> {
    return this.#changes.run(async ({ sql, names, note }) => {
      const { amount, note: remark = null, reference = shortId() } = input
      const org = await names.organization(input.organization)
      const row = await entryIn(sql, reference, kind)
      const before = row && { row, orgId: row.org_id, amount: row.amount }
      if (isRepeated(before, { orgId: org.id, amount }, kind, reference)) return entryOf(before.row)
      const was = await balanceIn(sql, org.id)
      await move(sql, org)
      await sql.query(TRANSFER, [org.id, reference, kind, amount, remark, this.#changes.now()])
      const { balance, held, used } = await balanceIn(sql, org.id)
      const became = { balance, held, used, amount, reference }
      const action = kind === 'topup' ? 'credits.add' : 'credits.refund'
      await note({ actor, action, organization: org.id, subject: org.id, was, became })
      return entryOf((await entryIn(sql, reference, kind))!)
    })
  }
}

async function balanceIn(sql: Sql, org: string): Promise<Balance> {
  const row = await first<Balance>(sql, 'SELECT balance, held, used FROM balances WHERE org_id = $1', [org])
  return row!
}

const entryIn = (sql: Sql, reference: string, kind: string): Promise<EntryRow | undefined> =>
  first<EntryRow>(sql, `${ENTRIES} WHERE request_id = $1 AND kind = $2`, [reference, kind])

async function discountsIn(sql: Sql, org: string | null, limit = ALL, offset = 0): Promise<DiscountRecord[]> {
  const rows = await sql.query<DiscountRow>(DISCOUNTS, [org, limit, offset])
  return rows.map(({ organization, provider, model, millionths }) => ({
    organization,
    provider: provider || null,
    model: model || null,
    millionths: Number(millionths),
  }))
}

const entryOf = (row: EntryRow): LedgerEntry => ({
  reference: row.request_id,
  kind: row.kind,
  organization: row.organization,
  account: row.account,
  counter: row.counter,
  amount: row.amount,
  note: row.note,
  at: isoOf(row.created_at),
})
