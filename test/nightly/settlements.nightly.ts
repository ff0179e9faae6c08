/** How many settlements a second one PostgreSQL takes whose disk is waited for, with its clients on the same cores. */
import t from 'tap'
import type { Hold, Principal } from '../../src/core/ports.ts'
import type { PostgresLedger } from '../../src/stores/postgres/ledger.ts'
import { cpuMeter } from '../helpers/cpu.ts'
import { figure } from '../helpers/figure.ts'
import { startPostgres, withoutPostgres } from '../helpers/postgres.ts'
import { postgresSubject, seeded } from '../stores/postgres-subject.ts'
import { hold, rowOf } from '../stores/subject.ts'
import { serverMs } from './server-cpu.ts'

const NODES = 3
const SETTLEMENTS = Number(process.env.SETTLEMENTS ?? 30_000)
/** Requests of each node at a time. */
const AT_ONCE = 256
const WARM_UP = 2_000
for (const [tenants, of] of [
  [1, 'one organization'],
  [1000, '1,000 organizations'],
] as const) {
  const name = `settlements of ${NODES} nodes for ${of} are on disk when they are acknowledged`
  t.test(name, { skip: withoutPostgres, timeout: 1_800_000 }, async t => {
    const server = await startPostgres({ fsync: true })
    const subject = await postgresSubject(t, { given: server })
    const principals: Principal[] = []
    for (let n = 0; n < tenants; n++) principals.push(await seeded(subject, 'prepaid', 10n ** 15n))
    const nodes: PostgresLedger[] = []
    for (let n = 0; n < NODES; n++) nodes.push(await subject.node())
    let sent = 0
    /** Calls `one` for each of `count` requests, as many at a time as clients have. */
    const each = async (count: number, one: (n: number) => Promise<void>) => {
      let next = 0
      const client = async () => {
        while (next < count) await one(next++)
      }
      await Promise.all(Array.from({ length: NODES * AT_ONCE }, client))
    }
    const measured = async (count: number) => {
      const first = sent
      sent += count
      const principalOf = (n: number) => principals[n % tenants]!
      const holds: Hold[] = []
      const perCall = async (one: (n: number) => Promise<void>) => {
        const [start, clientMs, before] = [performance.now(), cpuMeter(), serverMs(server.pid)]
        await each(count, one)
        const ms = performance.now() - start
        return {
          perSecond: (count * 1000) / ms,
          client: clientMs() / count,
          server: (serverMs(server.pid) - before) / count,
        }
      }
      const held = await perCall(async n => {
        const got = await hold({ ledger: nodes[n % NODES]! }, principalOf(n), `r${first + n}`, 100n)
        if (!('exhausted' in got)) holds[n] = got
      })
      const settled = await perCall(async n => {
        const row = rowOf(principalOf(n), `r${first + n}`, { cost: 90n })
        await nodes[n % NODES]!.settle(holds[n]!, row)
      })
      return { held, settled }
    }
    await measured(WARM_UP)
    const { held, settled } = await measured(SETTLEMENTS)
    const id = 'NP-09'
    for (const [what, { perSecond, client, server }] of Object.entries({ holds: held, settlements: settled })) {
      figure(t, { id, what: `${what} of ${of}`, value: perSecond, unit: 'per second' })
      figure(t, { id, what: `${what} of ${of}, CPU of the node`, value: client * 1000, unit: 'µs' })
      figure(t, { id, what: `${what} of ${of}, CPU of the server`, value: server * 1000, unit: 'µs' })
    }
    // Nodes have other machines. Its CPU alone counts, so that what else this machine does counts little.
    const value = 2000 / settled.server
    const room = `settlements of ${of} that PostgreSQL has CPU for on two cores`
    figure(t, { id, what: room, value, unit: 'per second', atLeast: 12_000 })
    const [count] = await subject.rows<{ count: bigint }>('SELECT count(*) AS count FROM requests')
    t.equal(Number(count!.count), sent)
  })
}
