/** What the stores in PostgreSQL promise besides the contracts: migrations, days of request rows, PgBouncer. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { inspect } from 'node:util'
import t from 'tap'
import type { Hold } from '../../src/core/ports.ts'
import { stampOf } from '../../src/lib/id.ts'
import { Keyring } from '../../src/stores/keyring.ts'
import { checkBooks } from '../../src/stores/postgres/books.ts'
import { openPostgres, postgresMaintenance } from '../../src/stores/postgres/index.ts'
import { migrate } from '../../src/stores/postgres/migrate.ts'
import { migrations } from '../../src/stores/postgres/migrations/index.ts'
import { PostgresRetention } from '../../src/stores/postgres/retention.ts'
import { openPool } from '../../src/stores/sql/postgres.ts'
import { freePort, postgresServer, withoutPostgres } from '../helpers/postgres.ts'
import { postgresSubject, seeded } from './postgres-subject.ts'
import { HOUR, identity, NOON, rowOf, temporaryFolder } from './subject.ts'

const DAY = 24 * HOUR
const found = spawnSync('pgbouncer', ['--version']).error === undefined
const withoutBouncer = withoutPostgres || (!found && 'PgBouncer is not installed')

t.test('an address that is none refuses a start, says what to change, and is not repeated', async t => {
  for (const [url, reason] of [
    ['postgres://gateway:se/cr#et?%@127.0.0.1/gateway', /stores\.postgres.*percent-encode/],
    ['127.0.0.1:1/gateway', /stores\.postgres.*no URL such as postgres:/],
    ['mysql://gateway:secret@127.0.0.1:1/gateway', /stores\.postgres.*no URL such as postgres:/],
    [
      'postgres://gateway:secret@127.0.0.1/gateway?sslrootcert=/no/such.crt',
      /stores\.postgres.*no such file.*such\.crt/,
    ],
  ] as const) {
    const error = await migrate(url).catch((thrown: Error) => thrown)
    t.match(error, { name: 'StoreError', message: reason })
    t.notMatch(inspect(error), /se\/cr|secret/)
  }
})

t.test('postgres', { skip: withoutPostgres }, async t => {
  t.test('of nodes that start at once on an empty or an older database one migrates', async t => {
    const server = await postgresServer()
    for (const steps of [0, 1]) {
      const url = await server.database()
      if (steps > 0) await migrate(url, migrations.slice(0, steps))
      const applied = await Promise.all(Array.from({ length: 5 }, () => migrate(url)))
      t.same(applied.toSorted(), [0, 0, 0, 0, migrations.length - steps])
      t.same(await postgresMaintenance(url).schema(), { present: migrations.length, known: migrations.length })
    }
  })

  t.test('a step that fails leaves the schema as it was', async t => {
    const url = await (await postgresServer()).database()
    await t.rejects(migrate(url, ['CREATE TABLE a (id text)', 'CREATE TABLE b (']), /stores\.postgres.*syntax error/)
    t.same(await postgresMaintenance(url).schema(), { present: undefined, known: migrations.length })
    await t.rejects(postgresMaintenance(url).backup('file'), /pg_dump/)
  })

  t.test('an address where no server is refuses a start and says so', async t => {
    const url = `postgres://gateway:secret@127.0.0.1:${await freePort()}/gateway`
    const error = await migrate(url).catch((thrown: Error) => thrown)
    t.match(error, { name: 'StoreError', message: /stores\.postgres.*ECONNREFUSED/ })
    t.notMatch((error as Error).message, 'secret')
  })

  t.test('a caller waits for a connection that is in use longer than for one that does not open', async t => {
    const busy = openPool({ url: await (await postgresServer()).database(), max: 1, warn: () => {} })
    t.teardown(() => busy.end())
    const inUse = busy.query('SELECT pg_sleep(1.2)')
    t.match(await busy.query('SELECT 1 AS one'), { rows: [{ one: 1n }] })
    await inUse

    const silent = createServer(socket => socket.on('error', () => {})).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    t.teardown(() => silent.close())
    const { port } = silent.address() as AddressInfo
    const away = openPool({ url: `postgres://gateway@127.0.0.1:${port}/gateway`, max: 1, warn: () => {} })
    t.teardown(() => away.end())
    const refused = await Promise.all([1, 2].map(() => away.query('SELECT 1').catch((thrown: Error) => thrown)))
    // The second one has had its turn: it did not wait for all of its time.
    for (const error of refused) t.match(error, { message: 'timeout expired' })
  })

  t.test('rows of past days go with their partition, and the books stay right', async t => {
    const subject = await postgresSubject(t)
    const ledger = await subject.node()
    const principal = await seeded(subject, 'open', 0n)
    const retention = new PostgresRetention(subject.url, () => subject.clock.now)
    for (let day = 0; day < 3; day++) {
      subject.clock.now = NOON + day * DAY
      await retention.prepare()
      for (let n = 0; n < 3; n++) {
        const id = `${stampOf(subject.clock.now)}${day}${n}`
        const wanted = { id, request: identity(id), principal, amount: 5n, expiresAt: subject.clock.now + HOUR }
        await ledger.settle(
          (await ledger.hold(wanted)) as Hold,
          rowOf(principal, id, { at: subject.clock.now, cost: 3n }),
        )
      }
    }
    const days = () =>
      subject.rows<{ name: string }>(
        "SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relname LIKE 'requests_d%' ORDER BY 1",
      )
    t.equal((await days()).length, 5)
    t.same(await subject.rows('SELECT id FROM requests_of_other_days'), [])
    t.equal(await retention.prune(NOON + DAY), 3)
    t.equal(await retention.prune(NOON + DAY), 0)
    t.match(await subject.rows('SELECT count(*) FROM requests'), [{ count: 6n }])
    t.equal((await days()).length, 4)
    t.same(await checkBooks(subject.url), [])
  })

  t.test('a node starts while a backup keeps it from making the days ahead', async t => {
    const subject = await postgresSubject(t)
    const backup = await subject.pool.connect()
    t.teardown(() => backup.release())
    await backup.query('BEGIN; LOCK TABLE requests IN ACCESS SHARE MODE')
    const warnings: unknown[] = []
    const keyring = () => new Keyring({ given: 'a key of sixteen characters', file: '' })
    const options = { warn: (error: unknown) => warnings.push(error), keyring, version: '1' }
    const stores = await openPostgres(subject.url, options)
    await stores.close()
    t.match(warnings, [/lock timeout/])
    await backup.query('ROLLBACK')
    await (await openPostgres(subject.url, options)).close()
    t.equal(warnings.length, 1)
  })

  t.test(
    'rows wait in their file while the database lacks tables or rights, and are entered once it has them',
    async t => {
      const subject = await postgresSubject(t)
      const ledger = await subject.node({ spool: join(temporaryFolder(t), 'gateway.db') })
      const principal = await seeded(subject, 'prepaid', 100n)
      const wanted = { id: 'a', request: identity('a'), principal, amount: 5n, expiresAt: NOON + HOUR }
      const hold = (await ledger.hold(wanted)) as Hold
      await subject.rows('ALTER TABLE requests RENAME TO moved')
      const row = rowOf(principal, 'a', { cost: 3n })
      await t.rejects(ledger.settle(hold, row))
      await ledger.spool(row, hold)
      await ledger.recover()
      await subject.rows('ALTER TABLE moved RENAME TO requests')
      await ledger.recover()
      t.same(await ledger.balance(principal.orgId), { balance: 97n, held: 0n, used: 3n })
      t.same(await checkBooks(subject.url), [])
    },
  )

  t.test('a node does not start whose clock is more than a day off, since it would delete what is not old', async t => {
    const url = await (await postgresServer()).database()
    const options = {
      keyring: () => new Keyring({ given: 'a key of sixteen characters', file: '' }),
      warn() {},
      version: '1',
    }
    const now = Date.now
    t.teardown(() => Object.assign(Date, { now }))
    for (const [skew, refused] of [
      [2 * DAY, /stores\.postgres is 48 hours from/],
      [-400 * DAY, /is 9600 hours from/],
    ] as const) {
      Date.now = () => now() + skew
      await t.rejects(openPostgres(url, options), { name: 'StoreError', message: refused })
    }
    Date.now = () => now() - DAY / 2
    await (await openPostgres(url, options)).close()
  })

  t.test('a database that is set to read-only, as services do for a full disk, is away', async t => {
    const subject = await postgresSubject(t)
    const keyring = () => new Keyring({ given: 'a key of sixteen characters', file: '' })
    const stores = await openPostgres(subject.url, { keyring, warn() {}, version: '1' })
    t.teardown(() => stores.close())
    await stores.ping()
    const name = new URL(subject.url).pathname.slice(1)
    await subject.rows(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
    await subject.server.run(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}' AND pid <> pg_backend_pid()`,
    )
    // A connection that has ended may be found at the first statement.
    await stores.ping().catch(() => {})
    await t.rejects(stores.ping(), /takes no writes/)
  })

  t.test('many late sums of one transaction make one version of their stale day', async t => {
    const subject = await postgresSubject(t)
    await subject.rows(`
      INSERT INTO usage_hourly
      SELECT ${NOON - 3 * DAY}, 'org', 'project', 'key', 'provider', 'model', 'app-' || n, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
      FROM generate_series(1, 1000) AS n`)
    t.match(await subject.rows('SELECT state, ctid FROM usage_days'), [{ state: 'stale', ctid: '(0,1)' }])
  })

  t.test('holds and settlements pass PgBouncer in transaction mode', { skip: withoutBouncer }, async t => {
    const subject = await postgresSubject(t)
    const address = await bouncer(t, subject.url)
    const nodes = [await subject.node({ url: address }), await subject.node({ url: address })]
    const limit = { id: 'limit', of: 'key', limit: 1000n, period: 'day', zone: 'UTC' } as const
    const principal = await seeded(subject, 'prepaid', 2000n, [limit])
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, i) => {
        const id = `p${i}`
        return nodes[i % 2]!.hold({ id, request: identity(id), principal, amount: 50n, expiresAt: NOON + HOUR })
      }),
    )
    const holds = results.filter(one => 'id' in one) as Hold[]
    t.equal(holds.length, 20)
    await Promise.all(holds.map((hold, i) => nodes[i % 2]!.settle(hold, rowOf(principal, hold.id, { cost: 50n }))))
    t.same(await nodes[0]!.balance(principal.orgId), { balance: 1000n, held: 0n, used: 1000n })
    t.same(await checkBooks(subject.url), [])
  })
})

/** Starts PgBouncer before a database, with two connections to it; it ends with the test. Returns its address. */
async function bouncer(t: { teardown(end: () => unknown): void }, url: string): Promise<string> {
  const { port: serverPort, pathname } = new URL(url)
  const database = pathname.slice(1)
  const port = await freePort()
  const folder = temporaryFolder(t)
  chmodSync(folder, 0o755)
  const [settings, users] = [join(folder, 'pgbouncer.ini'), join(folder, 'users.txt')]
  writeFileSync(users, '"gateway" ""\n', { mode: 0o644 })
  writeFileSync(
    settings,
    `[databases]\n${database} = host=127.0.0.1 port=${serverPort} dbname=${database}\n[pgbouncer]\npool_mode = transaction
listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\nauth_type = trust\nauth_file = ${users}
default_pool_size = 2\nmax_client_conn = 100\n`,
    { mode: 0o644 },
  )
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = spawn('pgbouncer', [...user, settings], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error(said)))
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
      if (said.includes('process up')) resolve()
    })
  })
  t.teardown(async () => {
    const ended = once(child, 'exit')
    child.kill('SIGINT')
    await ended
  })
  return `postgres://gateway@127.0.0.1:${port}/${database}`
}
