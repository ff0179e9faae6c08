/** Spending limits as operators set them. The ledger keeps their spending. */
import type { Money } from '../../core/money.ts'
import type { Budget, LimitChange, LimitInput, LimitRecord } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { onLimitText } from '../../limits/kinds.ts'
import { storable } from '../rules/amounts.ts'
import { limitRecord, limitSetting, spentSince } from '../rules/limits.ts'
import { readBudgets } from './budgets.ts'
import { first, type Sql } from './sql.ts'
import { type Sum, splitSum, sumAs, sumOf } from './sums.ts'

/** The key `$1` and its predecessors, or all keys of the member `$2` or the project `$3`. */
const OWN = `key_id IN (
  WITH RECURSIVE own (id) AS (
    SELECT id FROM keys WHERE id = $1 OR created_by = $2 OR project_id = $3
    UNION SELECT succeeds FROM keys JOIN own USING (id) WHERE succeeds IS NOT NULL
  )
  SELECT id FROM own
)`
const SPENT_SINCE = `SELECT ${sumAs('cost', 'spent')} FROM usage_hourly WHERE hour >= $4 AND ${OWN}`
const SPENT_BETWEEN = `
  SELECT ${sumAs('cost', 'spent')} FROM requests
  WHERE id >= $4 AND id < $5 AND at >= $6 AND at < $7 AND ${OWN}`
/**
 * Running requests count against a limit that is set meanwhile. `budgets` is a JSON array of ids. The rows are locked in
 * the ledger's order (src/stores/postgres/migrations/2-functions.ts).
 */
const adopt = (lock: string) => `
  UPDATE holds SET budgets = CASE
    WHEN budgets IS NULL OR budgets = '[]' THEN '["' || CAST($4 AS text) || '"]'
    ELSE substr(budgets, 1, length(budgets) - 1) || ',"' || CAST($4 AS text) || '"]'
  END
  WHERE id IN (SELECT id FROM holds WHERE ${OWN} ORDER BY id ${lock})
  RETURNING amount`
/** Ids of limits in the order in which they are locked. */
const limitsBy = (condition: string, lock: string) =>
  `id IN (SELECT id FROM budgets WHERE ${condition} ORDER BY id ${lock})`
const INSERT = `
  INSERT INTO budgets (id, subject, kind, period, zone, amount, period_at, spent, held, on_limit)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
const RAISE = 'UPDATE budgets SET amount = $1, on_limit = coalesce($3, on_limit) WHERE id = $2'

type Owner = readonly [key: string | null, member: string | null, project: string | null]

/** Returns the limits of a subject: a key, session, member, project or provider key. */
export async function limitsOf(sql: Sql, subject: string, now: number): Promise<LimitRecord[]> {
  return (await readBudgets(sql, [subject], now)).map(limitRecord)
}

/**
 * Within a transaction: counts running requests, and returns what changes the limits. What else changes of a key is
 * written in between, since the ledger locks holds, keys and limits in this order.
 */
export async function changingLimit(
  sql: Sql,
  kind: Budget['of'],
  subject: string,
  change: LimitChange,
  now: number,
): Promise<() => Promise<unknown>> {
  if ('set' in change) return settingLimit(sql, kind, subject, change.set, now)
  const isTotal = change.drop === 'total'
  const ofPeriod = limitsBy("subject = $1 AND (period = 'total') = $2", sql.dialect.lock)
  return () => sql.query(`DELETE FROM budgets WHERE ${ofPeriod}`, [subject, isTotal])
}

/** Within a transaction that changes nothing else of the subject. */
export async function changeLimit(...limit: Parameters<typeof changingLimit>): Promise<void> {
  const change = await changingLimit(...limit)
  await change()
}

/** Within a transaction: deletes all limits of the subject. */
export async function forgetLimits(sql: Sql, subject: string): Promise<void> {
  await sql.query(`DELETE FROM budgets WHERE ${limitsBy('subject = $1', sql.dialect.lock)}`, [subject])
}

/** Within a transaction: moves all limits and their spending to another subject. */
export async function moveLimits(sql: Sql, from: string, to: string): Promise<void> {
  const text = `UPDATE budgets SET subject = $2 WHERE ${limitsBy('subject = $1', sql.dialect.lock)}`
  await sql.query(text, [from, to])
}

/** Within a transaction: counts what a new key had spent elsewhere, of all time and toward each of its limits. */
export async function takeSpending(sql: Sql, key: string, spent: Money): Promise<void> {
  const { units, rest } = splitSum(spent)
  await sql.query('UPDATE keys SET spent_units = $2, spent_rest = $3 WHERE id = $1', [key, units, rest])
  await sql.query('UPDATE budgets SET spent = $2 WHERE subject = $1', [key, spent])
}

/**
 * Earlier spending of a key, member or project counts against a new limit. For a provider key it is unknown, and a session has
 * none when its limit is set.
 */
async function settingLimit(
  sql: Sql,
  kind: Budget['of'],
  subject: string,
  input: LimitInput,
  now: number,
): Promise<() => Promise<unknown>> {
  const { amount } = input
  const onLimit = input.onLimit === undefined ? null : onLimitText(input.onLimit)
  const setting = limitSetting(await readBudgets(sql, [subject], now), input, now)
  if ('raises' in setting) {
    return () => sql.query(RAISE, [amount, setting.raises, onLimit])
  }
  const { replaces, period, zone, periodAt } = setting
  const id = shortId()
  const of = (one: Budget['of']) => (kind === one ? subject : null)
  const owner: Owner = [of('key'), of('member'), of('project')]
  const counts = owner.includes(subject)
  // Adopting first: a request that settles in between is in the spending, which is read afterwards.
  const held = counts ? await sql.query<{ amount: Money }>(adopt(sql.dialect.lock), [...owner, id]) : []
  const sum = held.reduce((sum, { amount }) => sum + amount, 0n)
  return async () => {
    if (replaces !== undefined) await sql.query('DELETE FROM budgets WHERE id = $1', [replaces])
    const spent = counts ? storable(await moneySpentSince(sql, periodAt, owner)) : 0n
    await sql.query(INSERT, [id, subject, kind, period, zone, amount, periodAt, spent, sum, onLimit])
  }
}

async function moneySpentSince(sql: Sql, at: number, owner: Owner): Promise<Money> {
  const { hour, before } = spentSince(at)
  const since = await first<Sum<'spent'>>(sql, SPENT_SINCE, [...owner, hour])
  const sum = sumOf(since!, 'spent')
  if (!before) return sum
  const between = await first<Sum<'spent'>>(sql, SPENT_BETWEEN, [...owner, before.first, before.last, hour, at])
  return sum - sumOf(between!, 'spent')
}
