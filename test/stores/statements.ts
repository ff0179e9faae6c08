/** What a connection asks SQLite for: work that can be counted where time depends on the machine. */
import { Database, type Sqlite } from '../../src/stores/sqlite/driver.ts'

interface Scope {
  teardown(end: () => unknown): void
}
type Method = (this: { source: string; database: Sqlite }, ...given: unknown[]) => unknown

/** A statement that was run, and what was bound to it. */
export interface Ran {
  readonly sql: string
  readonly given: readonly unknown[]
  readonly db: Sqlite
}

const EXPLAIN = 'EXPLAIN QUERY PLAN'

/** Collects every statement that connections to `path` run from now on, until the test ends; questions for plans are none of them. */
export function statementsOf(t: Scope, path: string): Ran[] {
  const ran: Ran[] = []
  const db = new Database(':memory:')
  const statement = Object.getPrototypeOf(db.prepare('SELECT 1')) as Record<string, Method>
  db.close()
  for (const name of ['run', 'get', 'all', 'iterate']) {
    const original = statement[name]!
    statement[name] = function (...given) {
      if (this.database.name === path && !this.source.startsWith(EXPLAIN))
        ran.push({ sql: spaced(this.source), given, db: this.database })
      return original.apply(this, given)
    }
    t.teardown(() => {
      statement[name] = original
    })
  }
  const { exec } = Database.prototype
  Database.prototype.exec = function (this: Sqlite, sql: string) {
    if (this.name === path) ran.push({ sql: spaced(sql), given: [], db: this })
    return exec.call(this, sql)
  }
  t.teardown(() => {
    Database.prototype.exec = exec
  })
  return ran
}

const spaced = (sql: string): string => sql.trim().replace(/\s+/g, ' ')

/** How SQLite would find the rows of a statement: `SEARCH keys USING INDEX …` or `SCAN keys`. */
export function planOf(db: Sqlite, { sql, given }: Pick<Ran, 'sql' | 'given'>): string[] {
  if (!/^(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b/i.test(sql)) return []
  const steps = db.prepare<unknown[], { detail: string }>(`${EXPLAIN} ${sql}`).all(...given)
  return steps.map(({ detail }) => detail)
}
