/** Ten processes charge one key of one organization, whose row in the database each batch of each of them locks. */
import { fork } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import type { Budget } from '../../src/core/ports.ts'
import { checkBooks } from '../../src/stores/postgres/books.ts'
import { PostgresRetention } from '../../src/stores/postgres/retention.ts'
import { percentile } from '../bench/stats.mjs'
import { figure } from '../helpers/figure.ts'
import { startPostgres, withoutPostgres } from '../helpers/postgres.ts'
import { heard } from '../policy/parent.ts'
import { postgresSubject, seeded } from '../stores/postgres-subject.ts'
import type { Charged, Charging } from './hot-node.ts'
import { serverMs } from './server-cpu.ts'

const PROCESSES = 10
const SECONDS = Number(process.env.HOT_KEY_SECONDS ?? 600)
const REQUESTS_PER_SECOND = Number(process.env.HOT_KEY_RPS ?? 1000)

t.test(
  `${PROCESSES} processes that charge one hot key for ${SECONDS} s wait for each other, never in a circle`,
  // As long as `HOT_KEY_SECONDS` says. Without PostgreSQL there is nothing to measure, and CI has it.
  { skip: withoutPostgres, timeout: 0 },
  async t => {
    const server = await startPostgres({ fsync: true })
    const subject = await postgresSubject(t, { given: server })
    await new PostgresRetention(subject.url, Date.now).prepare()
    const limit: Budget = { id: 'hot', of: 'key', limit: 10n ** 15n, period: 'month', zone: 'UTC' }
    const principal = await seeded(subject, 'prepaid', 10n ** 15n, [limit])
    const nodes = Array.from({ length: PROCESSES }, () => {
      // With money in messages, which JSON does not have.
      const node = fork(join(process.env.COMPILED_TESTS!, 'nightly/hot-node.js'), { serialization: 'advanced' })
      t.teardown(() => node.kill('SIGKILL'))
      return node
    })
    await Promise.all(nodes.map(heard))

    const [start, before] = [performance.now(), serverMs(server.pid)]
    const results = await Promise.all(
      nodes.map(async (node, n) => {
        const perSecond = REQUESTS_PER_SECOND / PROCESSES
        const { url } = subject
        const order: Charging = { do: 'charge', name: `n${n}`, url, principal, perSecond, seconds: SECONDS }
        node.send(order)
        const result = await heard(node)
        if (typeof result === 'string') throw new Error(result)
        return result as Charged
      }),
    )
    const ms = performance.now() - start
    const serverUsed = serverMs(server.pid) - before
    const errors = results.flatMap(one => one.errors)
    t.strictSame([...new Set(errors)].slice(0, 5), [])
    const holds = results.flatMap(one => one.holds)
    const settlements = results.flatMap(one => one.settlements)
    const count = holds.length
    const id = 'NP-02'
    figure(t, { id, what: 'requests on one hot key', value: (count * 1000) / ms, unit: 'per second' })
    figure(t, { id, what: 'requests that failed', value: errors.length, unit: '', atMost: 0 })
    for (const [what, times] of Object.entries({ hold: holds, settlement: settlements })) {
      for (const p of [0.5, 0.99, 1]) {
        const name = p === 1 ? `longest ${what}` : `p${100 * p} of a ${what}`
        figure(t, { id, what: name, value: percentile(times, p), unit: 'ms' })
      }
    }
    const nodeUsed = results.reduce((sum, one) => sum + one.cpu, 0)
    figure(t, { id, what: 'CPU of the nodes for a request', value: (nodeUsed * 1000) / count, unit: 'µs' })
    figure(t, { id, what: 'CPU of the server for a request', value: (serverUsed * 1000) / count, unit: 'µs' })

    const [{ deadlocks } = { deadlocks: -1n }] = await subject.rows<{ deadlocks: bigint }>(
      'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
    )
    figure(t, { id, what: 'deadlocks', value: Number(deadlocks), unit: '', atMost: 0, atLeast: 0 })
    t.strictSame(await checkBooks(subject.url), [])
    const spent = results.reduce((sum, one) => sum + one.cost, 0n)
    t.strictSame(await subject.rows('SELECT spent, held FROM budgets'), [{ spent, held: 0n }])
    t.strictSame(await subject.rows('SELECT used, held FROM balances'), [{ used: spent, held: 0n }])
    t.strictSame(await subject.rows('SELECT count(*) AS count FROM requests'), [{ count: BigInt(count) }])
  },
)
