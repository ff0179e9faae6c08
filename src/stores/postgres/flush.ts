/** Waits for the disk after settlements, and reads in the same call what they are to tell. */
import type { Hold } from '../../core/ports.ts'
import type { LimitStanding, MoneyState } from '../../limits/alerts.ts'
import { limitsIn } from '../rules/reservations.ts'
import type { Sql, SqlValue } from '../sql/sql.ts'

/** The end of a hold. */
export interface Telling {
  readonly hold: Hold
  /** Whether it tells where limits and credits stand then. */
  readonly tells: boolean
}

/** Result of `flush_v1`. */
export interface Told {
  limits: (Pick<LimitStanding, 'id' | 'of' | 'period' | 'zone'> & { limit: string; spent: string })[] | null
  credits: { org_id: string; balance: string; used: string }[] | null
}

/** Resolves with what each of the ends is to tell. */
export async function flush(sql: Sql, ends: readonly Telling[]): Promise<readonly (MoneyState | undefined)[]> {
  const [row] = await sql.query<{ told: Told | null }>('SELECT flush_v1($1, $2) AS told', askedOf(ends))
  return standingsOf(ends, row!.told)
}

/** Returns the arguments of `flush_v1`. */
export function askedOf(ends: readonly Telling[]): [limits: SqlValue, organizations: SqlValue] {
  const telling = ends.filter(({ tells }) => tells)
  if (telling.length === 0) return [null, null]
  const limits = new Set(telling.flatMap(({ hold }) => limitsIn(hold.budgets)))
  const organizations = new Set(telling.map(({ hold }) => hold.orgId))
  return [JSON.stringify([...limits]), JSON.stringify([...organizations])]
}

/** Returns what each of the ends is to tell. */
export function standingsOf(ends: readonly Telling[], told: Told | null): readonly (MoneyState | undefined)[] {
  if (!told) return []
  const { limits, credits } = told
  return ends.map(({ hold, tells }) => {
    if (!tells) return undefined
    const own = limitsIn(hold.budgets)
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
