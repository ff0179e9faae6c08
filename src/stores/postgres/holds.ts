/** Holds as transactions of a node open, extend and end them, by the rules that SQLite shares. */
import type { Exhausted, Hold, HoldRequest, RequestRow } from '../../core/ports.ts'
import { type HoldOfRequest, type Orphan, openHold } from '../rules/holds.ts'
import { begunByHold, limitsIn, limitsText, type OpenHold, Reservations } from '../rules/reservations.ts'
import { isPlan, NOTHING, recordSettlement } from '../rules/settlement.ts'
import type { Sql } from '../sql/sql.ts'
import { type Entry, LockedAccounts } from './accounts.ts'
import type { Outcome } from './batches.ts'
import { jsonOf } from './json.ts'
import { AddedRequests } from './requests.ts'

/** A row of `holds`. */
export type LockedHold = Orphan & HoldOfRequest

/** The end of a hold: with the row that it is charged for, or without one. */
export interface End {
  /** Id of the row to remove; undefined when the hold is already removed. */
  readonly id: string | undefined
  readonly open: OpenHold
  readonly row: RequestRow | undefined
}

/** Request of `extend`. */
export type More = Pick<HoldRequest, 'principal' | 'amount' | 'allowance'>

/** A row of `wanted_hold_v1`. `wanted` must have room, `amount` is held. */
export const wantedRow = (
  { id, request, principal, expiresAt }: HoldRequest,
  { amount, wanted, funds }: { readonly amount: bigint; readonly wanted: bigint; readonly funds: Hold['funds'] },
) => ({
  id,
  org_id: principal.orgId,
  project_id: principal.projectId,
  key_id: principal.keyId,
  request_id: request.id,
  caller_id: request.requestId,
  endpoint: request.endpoint,
  requested_model: request.requestedModel,
  model: request.model,
  provider: request.provider,
  amount: String(amount),
  wanted: String(wanted),
  expires_at: Math.ceil(expiresAt),
  funds,
  is_open: principal.account === 'open',
  limits: principal.budgets.length > 0 ? principal.budgets.map(({ id }) => id) : null,
})

/** Makes the limits of end users that are not there, and sets their amounts. */
export async function beginLimits(sql: Sql, requests: readonly HoldRequest[]): Promise<void> {
  const limits = new Map(requests.flatMap(begunByHold).map(limit => [limit.id, limit]))
  if (limits.size === 0) return
  const rows = [...limits.values()].map(({ id, of, limit, period, zone }) => {
    return { id, subject: id, kind: of, period, zone, amount: String(limit), period_at: 0, spent: 0, held: 0 }
  })
  await sql.query(BEGIN_LIMITS, [JSON.stringify(rows)])
}

/** Within a transaction: opens holds one after another. */
export async function reserveAll(
  sql: Sql,
  requests: readonly HoldRequest[],
  { now, owner }: { readonly now: number; readonly owner: string },
): Promise<(Hold | Exhausted)[]> {
  await beginLimits(sql, requests)
  const accounts = await LockedAccounts.lock(sql, {
    limits: requests.flatMap(({ principal }) => principal.budgets.map(({ id }) => id)),
    plans: requests.filter(({ allowance, byok }) => allowance && !byok).map(({ principal }) => principal.orgId),
    credits: requests.filter(({ byok }) => !byok).map(({ principal }) => principal.orgId),
  })
  const reservations = new Reservations(accounts.credits, accounts.limits, accounts.plans)
  const rows: ReturnType<typeof wantedRow>[] = []
  const results = requests.map(request => {
    const reserved = reservations.reserve(request, now)
    if ('exhausted' in reserved) return reserved
    const { amount, funds, refused, passed } = reserved
    rows.push(wantedRow(request, { amount, wanted: amount, funds }))
    const { orgId, budgets } = request.principal
    return { id: request.id, orgId, amount, funds, budgets: limitsText(budgets), refused, passed }
  })
  await accounts.write(sql, [], now)
  if (rows.length > 0) await sql.query('SELECT add_holds_v1($1, $2, $3)', [jsonOf(rows), owner, now])
  return results
}

/** Within a transaction: more of holds that are locked; undefined for one that is gone. */
export async function extendAll(
  sql: Sql,
  wanted: readonly { readonly open: LockedHold | undefined; readonly more: More }[],
  now: number,
): Promise<({ readonly amount: bigint; readonly refused: Exhausted | undefined } | undefined)[]> {
  const open = wanted.flatMap(one => (one.open ? [{ open: one.open, more: one.more }] : []))
  const accounts = await LockedAccounts.lock(sql, {
    limits: open.flatMap(one => limitsIn(one.open.budgets)),
    plans: open.filter(one => isPlan(one.open.funds)).map(one => one.open.org_id),
    credits: open.filter(one => one.open.funds !== 'byok').map(one => one.open.org_id),
  })
  const reservations = new Reservations(accounts.credits, accounts.limits, accounts.plans)
  const grown: { id: string; amount: string }[] = []
  const results = wanted.map(({ open, more }) => {
    if (!open) return undefined
    const reserved = reservations.extend(open, more, now)
    if ('exhausted' in reserved) return { amount: 0n, refused: reserved }
    grown.push({ id: open.id, amount: String(reserved.amount) })
    return { amount: reserved.amount, refused: reserved.refused }
  })
  await accounts.write(sql, [], now)
  if (grown.length > 0) await sql.query(GROW, [JSON.stringify(grown)])
  return results
}

/** Within a transaction: ends holds that are locked. An error is that of one row, whose hold stays. */
export async function endAll(sql: Sql, ends: readonly End[], now: number): Promise<Outcome<void>[]> {
  const rows = ends.flatMap(({ row, open }) => (row ? [[row, open.funds] as const] : []))
  const requests = await AddedRequests.insert(sql, rows)
  const outcomes: Outcome<void>[] = []
  const bills = ends.map(({ open, row }, i) => {
    outcomes[i] = { value: undefined }
    if (!row) return { bill: NOTHING, reference: '' }
    try {
      return recordSettlement(requests, open.funds, row)
    } catch (error) {
      outcomes[i] = { error }
      return undefined
    }
  })
  await requests.write(sql, now)
  const accounts = await LockedAccounts.lock(sql, {
    limits: ends.flatMap(({ open }) => limitsIn(open.budgets)),
    plans: ends.filter(({ open }) => isPlan(open.funds)).map(({ open }) => open.orgId),
    credits: ends.map(({ open }) => open.orgId),
  })
  const reservations = new Reservations(accounts.credits, accounts.limits, accounts.plans)
  const entries: Entry[] = []
  const closed: string[] = []
  for (const [i, { id, open }] of ends.entries()) {
    const settled = bills[i]
    if (!settled) continue
    if (id !== undefined) closed.push(id)
    const { bill, reference } = settled
    const at = reservations.release(open, bill, now)
    const entry = { org_id: open.orgId, request_id: reference }
    if (bill.charge > 0n) entries.push({ ...entry, kind: 'charge', amount: String(-bill.charge), created_at: now })
    if (bill.planned > 0n) entries.push({ ...entry, kind: 'plan', amount: String(-bill.planned), created_at: at })
  }
  await accounts.write(sql, entries, now)
  if (closed.length > 0) await sql.query(CLOSE, [JSON.stringify(closed)])
  return outcomes
}

/** Within a transaction: locks open holds by their ids, in order. */
export async function lockHolds(sql: Sql, ids: readonly string[]): Promise<Map<string, LockedHold>> {
  const rows = await sql.query<LockedHold>(LOCK, [JSON.stringify(ids)])
  return new Map(rows.map(row => [row.id, row]))
}

/** The end of a locked hold. */
export const endOf = (hold: LockedHold, row?: RequestRow): End => ({ id: hold.id, open: openHold(hold), row })

const ANY = 'id = ANY (ARRAY(SELECT json_array_elements_text($1::json)))'
const LOCK = `SELECT * FROM holds WHERE ${ANY} ORDER BY id FOR UPDATE`
const CLOSE = `DELETE FROM holds WHERE ${ANY}`
const BEGIN_LIMITS = `
  INSERT INTO budgets AS known (id, subject, kind, period, zone, amount, period_at, spent, held)
  SELECT x.id, x.subject, x.kind, x.period, x.zone, x.amount, x.period_at, x.spent, x.held
  FROM json_populate_recordset(NULL::budgets, $1::json) x ORDER BY x.id
  ON CONFLICT (id) DO UPDATE SET amount = excluded.amount WHERE known.amount <> excluded.amount`
const GROW = `
  UPDATE holds SET amount = holds.amount + x.amount FROM json_to_recordset($1::json) AS x (id text, amount bigint)
  WHERE holds.id = x.id`
