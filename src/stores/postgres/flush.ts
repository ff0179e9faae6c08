/** Waits for the disk after settlements, and reads with the same statement what they are to tell. */
import type { Hold } from '../../core/ports.ts'
import type { LimitStanding, MoneyState } from '../../limits/alerts.ts'
import type { Sql } from '../sql/sql.ts'

/** The end of a hold. */
export interface Telling {
  readonly hold: Hold
  /** Whether it tells where limits and credits stand then. */
  readonly tells: boolean
}

/** An empty transaction would not wait for the disk. */
const WAIT = "set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'gateway', '')"
const FLUSH = `SELECT ${WAIT}`
const ANY = (column: string, values: string) =>
  `${column} = ANY (ARRAY(SELECT json_array_elements_text(${values}::json)))`
const FLUSH_AND_TELL = `
  SELECT ${WAIT},
    (SELECT json_agg(json_build_object('id', id, 'of', kind, 'period', period, 'zone', zone, 'limit', amount::text,
      'spent', spent::text)) FROM budgets WHERE ${ANY('id', '$1')}) AS limits,
    (SELECT json_agg(json_build_object('org_id', org_id, 'balance', balance::text, 'used', used::text))
      FROM balances WHERE ${ANY('org_id', '$2')}) AS credits`

interface ToldRow {
  limits: (Pick<LimitStanding, 'id' | 'of' | 'period' | 'zone'> & { limit: string; spent: string })[] | null
  credits: { org_id: string; balance: string; used: string }[] | null
}

/** Resolves with what each of the ends is to tell. */
export async function flush(sql: Sql, ends: readonly Telling[]): Promise<readonly (MoneyState | undefined)[]> {
  if (!ends.some(({ tells }) => tells)) {
    await sql.query(FLUSH)
    return []
  }
  const telling = ends.filter(({ tells }) => tells)
  const ids = [...new Set(telling.flatMap(({ hold }) => limitsOf(hold)))]
  const organizations = [...new Set(telling.map(({ hold }) => hold.orgId))]
  const [row] = await sql.query<ToldRow>(FLUSH_AND_TELL, [JSON.stringify(ids), JSON.stringify(organizations)])
  const { limits, credits } = row!
  return ends.map(({ hold, tells }) => {
    if (!tells) return undefined
    const own = limitsOf(hold)
    const credit = credits?.find(one => one.org_id === hold.orgId)
    return {
      limits: (limits ?? [])
        .filter(({ id }) => own.includes(id))
        .map(({ id, of, period, zone, limit, spent }) => {
          return { id, of, period, zone, limit: BigInt(limit), spent: BigInt(spent) }
        }),
      credits: credit && { balance: BigInt(credit.balance), credited: BigInt(credit.balance) + BigInt(credit.used) },
    }
  })
}

const limitsOf = ({ budgets }: Hold): readonly string[] => (budgets === null ? [] : (JSON.parse(budgets) as string[]))
