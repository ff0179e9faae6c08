/** What the SQLite ledger promises while many write: group commit, other processes, full disks, crashes. */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { Hold } from '../../src/core/ports.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import { isAlive, thisProcess } from '../../src/stores/sqlite/instances.ts'
import { SqliteLedger } from '../../src/stores/sqlite/ledger.ts'
import { migrations } from '../../src/stores/sqlite/migrations.ts'
import { openDatabase } from '../../src/stores/sqlite/open.ts'
import { Writer } from '../../src/stores/sqlite/writer.ts'
import type { Order } from '../helpers/store-child.ts'
import { statementsOf } from './statements.ts'
import { HOUR, hold, integer, NOON, rowOf, seed, sqliteSubject, temporaryFolder } from './subject.ts'

/** Forked once, while the first tests run: starting it takes longer than all it does. */
const children = [startChild(), startChild()]
t.teardown(() => {
  for (const { process } of children) process.kill('SIGKILL')
})

function startChild(): { process: ChildProcess; ready: Promise<unknown> } {
  const child = fork(join(process.env.COMPILED_TESTS!, 'helpers/store-child.js'))
  return { process: child, ready: once(child, 'message') }
}

async function tell(child: { process: ChildProcess; ready: Promise<unknown> }, order: Order): Promise<unknown> {
  await child.ready
  const over = new AbortController()
  const ended = once(child.process, 'exit', { signal: over.signal }).then(([code, signal]) => {
    throw new Error(`the other process ended with ${code ?? signal}`)
  })
  const answer = once(child.process, 'message')
  child.process.send(order)
  try {
    return (await Promise.race([answer, ended]))[0]
  } finally {
    over.abort()
  }
}

/** How many transactions the write-ahead log holds: a frame that ends one carries the size of the database. */
function transactionsIn(path: string): number {
  const log = readFileSync(`${path}-wal`)
  const frame = 24 + log.readUInt32BE(8)
  let count = 0
  for (let at = 32; at + frame <= log.length; at += frame) {
    const ofThisLog = log.compare(log, 16, 24, at + 8, at + 16) === 0
    if (ofThisLog && log.readUInt32BE(at + 4) > 0) count++
  }
  return count
}

t.test('all calls of one tick are one transaction', async t => {
  const subject = sqliteSubject(t)
  const principal = seed(subject.db, 'prepaid', 1_000_000n)
  const ids = Array.from({ length: 64 }, (_, i) => `r${i}`)
  const before = transactionsIn(subject.path)
  const holds = await Promise.all(ids.map(id => hold(subject, principal, id, 100n)))
  t.equal(transactionsIn(subject.path) - before, 1)
  await Promise.all(holds.map((held, i) => subject.ledger.settle(held as Hold, rowOf(principal, ids[i]!))))
  t.equal(transactionsIn(subject.path) - before, 2)
  t.equal(integer(subject.db, 'SELECT count(*) FROM ledger'), 65)
  await subject.ledger.record(rowOf(principal, 'one-more'))
  t.equal(transactionsIn(subject.path) - before, 3)
})

t.test('CS-05 a row whose hold has ended, or never was, is not charged: no crash loses a hold here', async t => {
  const subject = sqliteSubject(t)
  const { ledger } = subject
  const principal = await subject.organization('prepaid', 1000n)
  const settled = (await hold(subject, principal, 'a', 400n)) as Hold
  await ledger.settle(settled, rowOf(principal, 'a', { cost: 300n }))
  await ledger.settle(settled, rowOf(principal, 'b', { cost: 999n }))
  const voided = (await hold(subject, principal, 'c', 400n)) as Hold
  await ledger.void(voided)
  await ledger.settle(voided, rowOf(principal, 'c', { cost: 999n }))
  const never: Hold = { id: 'never', orgId: principal.orgId, amount: 5n, funds: 'credits', budgets: null }
  await ledger.settle(never, rowOf(principal, 'd'))
  t.same(await ledger.balance(principal.orgId), { balance: 700n, held: 0n, used: 300n })
  t.same(await subject.usage.check(), [])
})

t.test('a change sees what was charged before it in the same moment', async t => {
  const subject = sqliteSubject(t)
  const principal = await subject.organization('prepaid', 100n)
  const held = (await hold(subject, principal, 'a', 10n)) as Hold
  const [, refund, updated] = await Promise.allSettled([
    subject.ledger.settle(held, rowOf(principal, 'a', { cost: 60n })),
    subject.credits.refund({ organization: principal.orgId, amount: 50n }, 'ada'),
    subject.accounts.updateKey(principal.keyId, { limit: { set: { amount: 500n } } }),
  ])
  t.match(refund, { status: 'rejected', reason: { status: 400 } })
  t.match(updated, { status: 'fulfilled', value: { limits: [{ spent: 60n }] } })
})

t.test('a resolved promise means that another process sees it', async t => {
  const subject = sqliteSubject(t)
  const principal = seed(subject.db, 'open', 0n)
  const held = (await hold(subject, principal, 'a', 5n)) as Hold
  t.equal(integer(subject.db, 'SELECT held FROM balances'), 5)
  await subject.ledger.settle(held, rowOf(principal, 'a', { cost: 3n }))
  t.equal(integer(subject.db, 'SELECT balance FROM balances'), -3)
})

t.test('CC-01 two hundred holds on credit for fifty are fifty, in one process and in two', async t => {
  const subject = sqliteSubject(t)
  const alone = seed(subject.db, 'prepaid', 5000n)
  const results = await Promise.all(Array.from({ length: 200 }, (_, i) => hold(subject, alone, `alone-${i}`, 100n)))
  t.equal(results.filter(result => 'id' in result).length, 50)
  t.same(await subject.ledger.balance(alone.orgId), { balance: 5000n, held: 5000n, used: 0n })

  const shared = seed(subject.db, 'prepaid', 5000n)
  const order = { do: 'hold', path: subject.path, principal: shared, amount: '100', count: 100 } as const
  const counts = await Promise.all(children.map((child, i) => tell(child, { ...order, name: `child-${i}` })))
  t.equal(Number(counts[0]) + Number(counts[1]), 50)
  t.same(await subject.ledger.balance(shared.orgId), { balance: 5000n, held: 5000n, used: 0n })
  t.same(await subject.usage.check(), [])
})

t.test('processes that open one empty path at the same time all get the same database', async t => {
  const folder = temporaryFolder(t)
  for (let round = 0; round < 10; round++) {
    const path = join(folder, `${round}.db`)
    t.same(await Promise.all(children.map(child => tell(child, { do: 'open', path }))), ['opened', 'opened'])
    const db = openDatabase(path)
    t.equal(db.pragma('user_version', { simple: true }), migrations.length)
    db.close()
  }
})

t.test('a start waits for another process that is at the new file', async t => {
  const path = join(temporaryFolder(t), 'gateway.db')
  t.equal(await tell(children[0]!, { do: 'lock', path }), 'locked')
  const released = tell(children[0]!, { do: 'unlock', ms: 100 })
  // It is told before this process stands still.
  await setImmediate()
  const db = openDatabase(path)
  t.equal(db.pragma('journal_mode', { simple: true }), 'wal')
  db.close()
  t.equal(await released, 'released')
})

t.test("ST-01 another process's lock fails writes after half a second, blocks nothing, loses nothing", async t => {
  const subject = sqliteSubject(t)
  const principal = seed(subject.db, 'prepaid', 1000n)
  const held = (await hold(subject, principal, 'a', 100n)) as Hold
  const [child] = children
  const ran = statementsOf(t, subject.path)
  /** Until the writer has asked for the lock so many times more. */
  const attempts = async (wanted: number) => {
    const begun = () => ran.filter(({ sql }) => sql === 'BEGIN IMMEDIATE').length
    const before = begun()
    while (begun() - before < wanted) await setImmediate()
  }

  t.equal(await tell(child!, { do: 'lock', path: subject.path }), 'locked')
  let now = performance.now()
  t.intercept(performance, 'now', { value: () => now })
  const ended: string[] = []
  const asked = [hold(subject, principal, 'b', 100n), subject.ledger.settle(held, rowOf(principal, 'a', { cost: 1n }))]
  for (const write of asked) write.then(String, String).then(end => ended.push(end))
  await attempts(3)
  now += 499
  await attempts(3)
  t.same(ended, [], 'both wait, and others go on meanwhile')
  const { db } = ran.find(({ sql }) => sql === 'BEGIN IMMEDIATE')!
  t.equal(db.pragma('busy_timeout', { simple: true }), 0, 'SQLite does not wait for the lock itself')
  now += 1
  t.match(await Promise.allSettled(asked), [
    { status: 'rejected', reason: { status: 503, code: 'billing_unavailable' } },
    { status: 'rejected', reason: { cause: { message: /locked for 500 ms/ } } },
  ])
  await t.rejects(subject.ping(), { name: 'StoreError' })
  t.equal(await tell(child!, { do: 'unlock' }), 'released')

  await subject.ledger.settle(held, rowOf(principal, 'a', { cost: 300n }))
  await subject.ping()
  t.same(await subject.ledger.balance(principal.orgId), { balance: 700n, held: 0n, used: 300n })

  t.equal(await tell(child!, { do: 'lock', path: subject.path }), 'locked')
  const waits = hold(subject, principal, 'c', 100n)
  await attempts(3)
  t.equal(await tell(child!, { do: 'unlock' }), 'released')
  t.match(await waits, { amount: 100n }, 'a short lock is waited for')
})

t.test('ST-04 nothing is held or charged once the file is gone, and all is again when it is back', async t => {
  let now = performance.now()
  t.intercept(performance, 'now', { value: () => now })
  const subject = sqliteSubject(t)
  const { ledger, credits, db, path, ping } = subject
  const principal = seed(db, 'open', 1000n)
  const held = (await hold(subject, principal, 'a', 100n)) as Hold
  const charge = () => ledger.settle(held, rowOf(principal, 'a', { cost: 40n }))
  const isRefused = async (how: string) => {
    const cause = { name: 'StoreError', message: 'The database file was removed or replaced. Restart the gateway.' }
    const unavailable = { status: 503, code: 'billing_unavailable', cause }
    await t.rejects(hold(subject, principal, 'b', 1n), unavailable, `${how}: a hold`)
    await t.rejects(charge(), unavailable, `${how}: a charge`)
    const payment = credits.add({ organization: principal.orgId, amount: 5n }, 'test')
    await t.rejects(payment, { status: 503, cause }, `${how}: a payment`)
    await t.rejects(ping(), cause, how)
  }
  renameSync(path, `${path}.away`)
  now += 100
  await isRefused('removed')
  copyFileSync(`${path}.away`, path)
  now += 100
  await isRefused('replaced')
  renameSync(`${path}.away`, path)
  now += 100
  await charge()
  await ping()
  t.same(await ledger.balance(principal.orgId), { balance: 960n, held: 0n, used: 40n })
})

t.test('a write that is refused for its own fault does not make the database look ill', async t => {
  const { accounts, ledger, db, ping } = sqliteSubject(t)
  const principal = seed(db, 'open', 0n)
  await t.rejects(accounts.revokeKey('nope'), { code: 'not_found' })
  await ping()
  const twice = [hold({ ledger }, principal, 'a', 1n), hold({ ledger }, principal, 'a', 1n)]
  t.match(await Promise.allSettled(twice), [{ status: 'fulfilled' }, { status: 'rejected' }])
  await ping()
})

t.test('CS-02 no call resolves before its transaction is committed', async t => {
  const db = openDatabase(join(temporaryFolder(t), 'gateway.db'))
  t.teardown(() => db.close())
  const writer = new Writer(db)
  const orphan = db.prepare("INSERT INTO projects (id, org_id, name, created_at) VALUES ('p', 'nobody', 'p', 0)")
  const unfit = writer.run(() => {
    db.pragma('defer_foreign_keys = ON')
    orphan.run()
  })
  const fit = writer.run(() => seed(db, 'open', 0n).orgId)
  await t.rejects(unfit, { code: 'SQLITE_CONSTRAINT_FOREIGNKEY' })
  t.type(await fit, 'string')
  t.equal(integer(db, 'SELECT count(*) FROM organizations'), 1)
  t.equal(integer(db, 'SELECT count(*) FROM projects'), 1)
})

t.test('jobs that run one by one wait when another process takes the lock between two of them', async t => {
  const path = join(temporaryFolder(t), 'gateway.db')
  const [db, other] = [openDatabase(path), openDatabase(path)]
  t.teardown(() => {
    db.close()
    other.close()
  })
  // However long that takes, it is not too long.
  t.intercept(performance, 'now', { value: () => 0 })
  const writer = new Writer(db)
  let undone = 0
  writer.join({
    beforeCommit() {},
    undone() {
      if (++undone !== 2) return
      other.exec('BEGIN IMMEDIATE')
      setTimeout(() => other.exec('COMMIT'), 20)
    },
  })
  const fails = writer.run(() => {
    throw new Error('on its own account')
  })
  const waits = [1, 2].map(n => writer.run(() => n))
  await t.rejects(fails, { message: 'on its own account' })
  t.same(await Promise.all(waits), [1, 2])
  t.equal(undone, 2)
})

t.test('ST-02 a full disk refuses writes, and nothing is half done; room makes it well again', async t => {
  const path = join(temporaryFolder(t), 'gateway.db')
  const db = openDatabase(path)
  const writer = new Writer(db)
  const ledger = new SqliteLedger(db, writer, { now: () => NOON, warn: error => t.error(error) })
  t.teardown(async () => {
    await ledger.close()
    db.close()
  })
  const principal = seed(db, 'open', 0n)
  db.pragma(`max_page_count = ${integer(db, 'PRAGMA page_count')}`)
  let written = 0
  const write = async () => {
    const row = rowOf(principal, `row ${written}`, { errorCode: 'x'.repeat(2000) })
    await ledger.settle((await hold({ ledger }, principal, `row ${written}`, 1n)) as Hold, row)
    written++
  }
  await t.rejects(
    (async () => {
      while (written < 1000) await write()
    })(),
    { code: 'billing_unavailable', cause: { code: 'SQLITE_FULL' } },
  )
  t.match(writer.fault, { code: 'SQLITE_FULL' })
  t.equal(integer(db, 'SELECT count(*) FROM requests'), written)
  t.equal(integer(db, "SELECT count(*) FROM ledger WHERE kind = 'charge'"), written)
  db.pragma('max_page_count = 100000')
  await ledger.record(rowOf(principal, 'at last'))
  t.equal(writer.fault, undefined)
})

t.test('CS-04 the holds of dead processes become orphans, once, and those of living ones stay', async t => {
  const subject = sqliteSubject(t)
  const { db, ledger, clock } = subject
  const principal = seed(db, 'prepaid', 1000n)
  const strange = db.prepare('INSERT INTO owners (id, pid, started, host, seen_at) VALUES (?, ?, ?, ?, ?)')
  const self = db.prepare<[], { pid: number; started: string; host: string }>('SELECT * FROM owners').get()!
  for (const [id, pid, started, host, silence] of [
    ['restarted', self.pid, '1', self.host, 0],
    ['silent', self.pid, self.started, self.host, 60_001],
    ['far and silent', 1, '1', 'elsewhere', 60_001],
    ['twin', self.pid, self.started, self.host, 60_000],
    ['far', 2 ** 22 + 1, '1', 'elsewhere', 60_000],
    ['gone', 2 ** 22 + 1, '1', self.host, 0],
  ] as const) {
    strange.run(id, pid, started, host, clock.now - silence)
    await hold(subject, principal, id, 100n)
    db.prepare('UPDATE holds SET owner = ? WHERE id = ?').run(id, id)
  }
  await hold(subject, principal, 'own', 100n)
  await hold(subject, principal, 'of nobody', 100n)
  db.prepare("UPDATE holds SET owner = 'closed' WHERE id = 'of nobody'").run()

  t.equal(await ledger.recover(), 4)
  t.equal(await ledger.recover(), 0)
  t.equal(integer(db, 'SELECT count(*) FROM owners'), 4, 'the dead are forgotten')
  const orphans = ['far and silent', 'gone', 'of nobody', 'restarted']
  t.same(
    db.prepare('SELECT id, request_id FROM requests ORDER BY id').raw().all(),
    orphans.map(id => [id, `caller-${id}`]),
  )
  t.same(
    db
      .prepare('SELECT DISTINCT outcome, status, cost, org_id, key_id, at, endpoint, model, provider FROM requests')
      .all(),
    [
      {
        outcome: 'orphaned',
        status: 0,
        cost: 0,
        org_id: principal.orgId,
        key_id: principal.keyId,
        at: NOON,
        endpoint: 'chat',
        model: 'large',
        provider: 'acme',
      },
    ],
  )
  t.same(await ledger.balance(principal.orgId), { balance: 1000n, held: 400n, used: 0n })
  t.same(await subject.usage.check(), [])
})

t.test('a process of this host lives for as long as the system says so, seen or not', async t => {
  const owner = thisProcess()
  t.ok(isAlive({ ...owner, seen_at: NOON - 24 * HOUR }, NOON))
  t.notOk(isAlive({ ...owner, started: '1', seen_at: NOON }, NOON))
  t.notOk(isAlive({ ...owner, host: 'elsewhere', seen_at: NOON - 60_001 }, NOON))
  if (owner.started === '') return
  // It ends when its parent has become a program that asks nobody how it ended; a shell would.
  const parent = spawn('sh', ['-c', 'read line <&4 & echo $!; exec cat <&3'], {
    stdio: ['ignore', 'pipe', 'ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => parent.kill())
  const pid = Number((await once(parent.stdout!, 'data'))[0])
  while (readFileSync(`/proc/${parent.pid}/comm`, 'latin1') !== 'cat\n') await setImmediate()
  ;(parent.stdio[4] as Writable).end()
  const stat = () => readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')
  while (stat()[0] !== 'Z') await setImmediate()
  t.notOk(isAlive({ ...owner, pid, started: stat()[19]!, seen_at: NOON }, NOON), 'it has ended')
})

t.test('a store that closes gives its holds up for recovery', async t => {
  const subject = sqliteSubject(t)
  const principal = seed(subject.db, 'prepaid', 1000n)
  const other = openSqlite(subject.path, { now: () => NOON })
  await hold(other, principal, 'a', 100n)
  t.equal(await subject.ledger.recover(), 0)
  const last = hold(other, principal, 'b', 100n)
  await other.close()
  t.match(await last, { id: 'b' }, 'what was asked before the end is done')
  t.equal(await subject.ledger.recover(), 2)
})

t.test('the hold of a process that was killed becomes one orphan', async t => {
  const subject = sqliteSubject(t)
  const principal = seed(subject.db, 'prepaid', 1000n)
  const [, child] = children
  const order = { do: 'hold', path: subject.path, principal, name: 'lost', amount: '400', count: 1 } as const
  t.equal(await tell(child!, order), 1)
  subject.clock.now = Date.now()
  t.equal(await subject.ledger.recover(), 0, 'it lives')
  const ended = once(child!.process, 'exit')
  child!.process.kill('SIGKILL')
  await ended
  t.equal(await subject.ledger.recover(), 1)
  t.equal(await subject.ledger.recover(), 0)
  t.match(subject.db.prepare('SELECT id, outcome, status, cost FROM requests').all(), [
    { id: 'lost-0', outcome: 'orphaned', status: 0, cost: 0 },
  ])
  t.same(await subject.ledger.balance(principal.orgId), { balance: 1000n, held: 0n, used: 0n })
})
