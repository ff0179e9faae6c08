/** One node's ledger, which charges one hot key: a process of its own, forked by a test. */
import type { Principal } from '../../src/core/ports.ts'
import { PostgresLedger } from '../../src/stores/postgres/ledger.ts'
import { openPool } from '../../src/stores/sql/postgres.ts'
import { cpuMeter } from '../helpers/cpu.ts'
import { obey } from '../helpers/obey.ts'
import { HOUR, identity, rowOf } from '../stores/subject.ts'
import { pace } from './load.ts'

/** Requests of one node; their ids begin with its name. */
export interface Charging {
  readonly do: 'charge'
  readonly name: string
  readonly url: string
  readonly principal: Principal
  readonly perSecond: number
  readonly seconds: number
}

/** What the node has seen. */
export interface Charged {
  /** Milliseconds of each call. */
  readonly holds: number[]
  readonly settlements: number[]
  /** Sum of what was settled. */
  readonly cost: bigint
  readonly errors: string[]
  /** CPU time of this process in milliseconds. */
  readonly cpu: number
}

const ESTIMATE = 100n

async function charge({ name, url, principal, perSecond, seconds }: Charging): Promise<Charged> {
  const errors: string[] = []
  const failed = (error: unknown) => void errors.push(String((error as { cause?: unknown }).cause ?? error))
  const pool = openPool({ url, max: 2, warn: failed })
  const ledger = await PostgresLedger.open(pool, { version: 'test', warn: failed })
  const [holds, settlements]: [number[], number[]] = [[], []]
  let cost = 0n
  const cpu = cpuMeter()
  await pace(perSecond, seconds * 1000, async n => {
    const id = `${name}-${n}`
    const at = Date.now()
    try {
      const begun = performance.now()
      const hold = await ledger.hold({
        ...{ id, request: identity(id), principal, amount: ESTIMATE, expiresAt: at + HOUR },
      })
      if ('exhausted' in hold) throw new Error(hold.exhausted)
      const held = performance.now()
      const row = rowOf(principal, id, { at, cost: BigInt(n) % ESTIMATE })
      await ledger.settle(hold, row)
      holds.push(held - begun)
      settlements.push(performance.now() - held)
      cost += row.cost ?? 0n
    } catch (error) {
      failed(error)
    }
  })
  const used = cpu()
  await ledger.close()
  await pool.end()
  return { holds, settlements, cost, errors, cpu: used }
}

await obey(charge)
