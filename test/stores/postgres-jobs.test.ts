/** Jobs of several nodes on one PostgreSQL: each is claimed, ended and told by one, whatever the others do meanwhile. */
import t from 'tap'
import type { Hold, Job } from '../../src/core/ports.ts'
import { withoutPostgres } from '../helpers/postgres.ts'
import { begin, callback, ended, jobOf, lease, rowFor, running } from './contract-jobs.ts'
import { postgresStores } from './postgres-subject.ts'
import { NOON } from './subject.ts'

/** In each, at least one of the nodes claims some. */
const ROUNDS = 12
const MANY = 400

t.test('jobs of several nodes', { skip: withoutPostgres }, async t => {
  t.test('claims at one time share the jobs and the callbacks, and one of two ends is written', async t => {
    const subject = await postgresStores(t)
    const nodes = [subject, await subject.another(), await subject.another()]
    const principal = await subject.organization('prepaid', 2000n)
    const ids = Array.from({ length: 12 }, (_, n) => `job-${n}`)
    for (const id of ids) await running(subject, principal, jobOf(id, { callback }))
    const claimed: Job[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const some = await Promise.all(nodes.map(({ jobs }, at) => jobs.claim(lease(`node-${at}`, NOON, 2), 99)))
      claimed.push(...some.flat())
    }
    t.same(claimed.map(({ id }) => id).sort(), [...ids].sort(), 'each once')
    t.ok(claimed.every(({ fence }) => fence === 1))
    const ends: boolean[] = []
    for (const id of ids) {
      const row = rowFor(principal, id, 10n)
      ends.push(...(await Promise.all(nodes.map(({ jobs }) => jobs.end(id, 1, ended(id), row)))))
    }
    t.equal(ends.filter(Boolean).length, ids.length)
    t.same(await subject.ledger.balance(principal.orgId), { balance: 1880n, held: 0n, used: 120n })
    const told = await Promise.all(
      nodes.map(({ jobs }, at) => jobs.claimDeliveries(lease(`node-${at}`, NOON + 1000), 99)),
    )
    t.same(
      told
        .flat()
        .map(({ jobId }) => jobId)
        .sort(),
      [...ids].sort(),
    )
    t.same(await subject.usage.check(), [])
  })

  t.test('parallel creates with one idempotency key are one job, with credit for one alone', async t => {
    for (const credits of [100n, 1000n]) {
      const subject = await postgresStores(t)
      const nodes = [subject, await subject.another()]
      const principal = await subject.organization('prepaid', credits)
      const made = await Promise.all(
        Array.from({ length: 10 }, (_, n) =>
          begin({ ...subject, ...nodes[n % 2] }, principal, jobOf(`job-${n}`, { idempotency: 'k', requestHash: 'h' })),
        ),
      )
      t.equal(made.filter(one => 'amount' in one).length, 1)
      t.equal(made.filter(one => 'existing' in one).length, 9)
      t.equal((await subject.ledger.balance(principal.orgId)).held, 100n)
      t.same(await subject.usage.check(), [])
    }
  })

  t.test('a node that dies leaves its creates to another one, and what runs to the next claim', async t => {
    const subject = await postgresStores(t)
    const { clock } = subject
    const [one, other] = [await subject.another(), await subject.another()]
    const principal = await subject.organization('prepaid', 1000n)
    await running(subject, principal, jobOf('film', { callback }))
    const [mine] = await one.jobs.claim(lease('one'), 9)
    t.match((await begin({ ...subject, ...one }, principal, jobOf('lost', { callback }))) as Hold, { amount: 100n })
    const lost = { code: 'interrupted', message: 'nobody knows' }
    const event = (id: string) => ({ id: `evt_${id}`, type: 'video.failed' })
    t.equal(await other.jobs.interruptLost(lost, event, clock.now), 0, 'its process lives')
    await one.ledger.close()
    clock.now += 61_000
    t.equal(await other.ledger.recover(), 1)
    t.equal(await other.jobs.interruptLost(lost, event, clock.now), 1)
    const [theirs] = await other.jobs.claim(lease('two', clock.now), 9)
    t.match(
      [mine, theirs],
      [
        { id: 'film', fence: 1 },
        { id: 'film', fence: 2 },
      ],
    )
    t.equal(await one.jobs.end('film', 1, ended('film'), rowFor(principal, 'film', 70n)), false)
    t.equal(await other.jobs.end('film', 2, ended('film'), rowFor(principal, 'film', 70n)), true)
    t.same((await other.jobs.claimDeliveries(lease('two', clock.now), 9)).map(({ jobId }) => jobId).sort(), [
      'film',
      'lost',
    ])
    t.same(await other.ledger.balance(principal.orgId), { balance: 930n, held: 0n, used: 70n })
    t.same(await subject.usage.check(), [])
  })

  t.test('of very many due jobs and callbacks, a claim takes those of each organization in turn', async t => {
    const subject = await postgresStores(t)
    const [busy, calm] = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
    await running(subject, busy, jobOf('busy-0'))
    const columns = (
      await subject.rows<{ name: string }>(
        "SELECT column_name AS name FROM information_schema.columns WHERE table_name = 'jobs' AND column_name <> 'rowid'",
      )
    ).map(({ name }) => name)
    const own = new Set(['id', 'log_id', 'hold_id'])
    const values = columns.map(name => (own.has(name) ? `${name} || '-' || n` : name))
    await subject.exec!(
      `INSERT INTO jobs (${columns.join(', ')}) SELECT ${values.join(', ')} FROM jobs, generate_series(1, ${MANY}) AS n`,
    )
    await running(subject, calm, jobOf('calm'))
    const claimed = await subject.jobs.claim(lease('one'), 5)
    t.equal(claimed.length, 5)
    t.ok(claimed.some(({ id }) => id === 'calm'))
    t.same(await subject.jobs.claim(lease('one'), 5), [], 'its share of the provider is taken')
    await subject.exec!(`
      INSERT INTO job_events (event_id, job_id, type, attempt, state, next_at, org_id)
      SELECT id, id, 'video.failed', 1, 'pending', ${NOON}, org_id FROM jobs`)
    const told = await subject.jobs.claimDeliveries(lease('one'), 5)
    t.equal(told.length, 6)
    t.ok(told.some(({ jobId }) => jobId === 'calm'))
  })

  t.test('leases are measured by the clock of the database, however wrong that of a node is', async t => {
    const subject = await postgresStores(t)
    const principal = await subject.organization('open', 0n)
    await running(subject, principal, jobOf('film'))
    const now = Date.now()
    const { jobs } = await subject.another({ byStoreClock: true })
    const wrong = { owner: 'one', now: now - 3_600_000, until: now - 3_570_000, limit: 9 }
    t.equal((await jobs.claim(wrong, 9)).length, 1)
    t.same(await jobs.claim({ ...wrong, owner: 'two', now, until: now + 30_000 }, 9), [], 'it has just begun')
  })
})
