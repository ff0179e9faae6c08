/** Another process on the same database: forked by tests, told by messages what to do, and killed at will. */
import type { Principal } from '../../src/core/ports.ts'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { openStores } from '../../src/stores/sqlite/index.ts'
import { identity } from '../stores/subject.ts'
import { obey } from './obey.ts'

export type Order =
  /** Asks for `count` holds at once; answers how many were granted. */
  | { do: 'hold'; path: string; principal: Principal; name: string; amount: string; count: number }
  /** Takes the write lock; answers when it has it, and after `ms` again, when it has let go. */
  | { do: 'lock'; path: string; ms?: number }
  /** Lets go of the lock that has no `ms`. */
  | { do: 'release' }
  /** Opens the store, which migrates it; answers whether that worked. */
  | { do: 'open'; path: string }

let release = (): unknown => 'nothing is locked'

async function run(order: Order): Promise<unknown> {
  switch (order.do) {
    case 'hold': {
      const { ledger } = openStores(order.path)
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
    case 'lock': {
      const db = new Database(order.path)
      db.exec('BEGIN IMMEDIATE')
      release = () => {
        db.exec('COMMIT')
        db.close()
        return 'released'
      }
      if (order.ms !== undefined) setTimeout(() => process.send?.(release()), order.ms)
      return 'locked'
    }
    case 'release':
      return release()
    case 'open':
      await openStores(order.path).close()
      return 'opened'
  }
}

await obey(run)
