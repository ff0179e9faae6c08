/** Another process on the same database: forked, controlled by messages, and killed by tests. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Principal } from '../../src/core/ports.ts'
import { Database, type Sqlite } from '../../src/stores/sqlite/driver.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import { identity } from '../stores/subject.ts'
import { obey } from './obey.ts'

export type Order =
  /** Requests `count` holds at once; answers how many were granted. */
  | { do: 'hold'; path: string; principal: Principal; name: string; amount: string; count: number }
  /** Takes the write lock; answers when it has it. */
  | { do: 'lock'; path: string }
  /** Releases the lock after `ms` milliseconds, then answers. */
  | { do: 'unlock'; ms?: number }
  /** Opens the store, which migrates it; answers whether that succeeded. */
  | { do: 'open'; path: string }

let locked: Sqlite | undefined

async function run(order: Order): Promise<unknown> {
  switch (order.do) {
    case 'hold': {
      // Waits for another process's lock without a time limit.
      performance.now = () => 0
      const { ledger } = openSqlite(order.path)
      const asked = Array.from({ length: order.count }, (_, i) =>
        ledger.hold({
          id: `${order.name}-${i}`,
          request: identity(`${order.name}-${i}`),
          principal: order.principal,
          amount: BigInt(order.amount),
          expiresAt: Date.now() + 60_000,
        }),
      )
      return (await Promise.all(asked)).filter(hold => 'id' in hold).length
    }
    case 'lock':
      locked = new Database(order.path)
      locked.exec('BEGIN IMMEDIATE')
      return 'locked'
    case 'unlock':
      await sleep(order.ms ?? 0)
      locked?.exec('COMMIT')
      locked?.close()
      return 'released'
    case 'open':
      await openSqlite(order.path).close()
      return 'opened'
  }
}

await obey(run)
