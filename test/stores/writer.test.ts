/** When a write counts as done: committed for some, on disk for others, and what a disk that fails means. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { openDatabase } from '../../src/stores/sqlite/open.ts'
import { LogFile, type WalSync } from '../../src/stores/sqlite/wal-sync.ts'
import type { Durability } from '../../src/stores/sqlite/write.ts'
import { Writer } from '../../src/stores/sqlite/writer.ts'
import { temporaryFolder } from './subject.ts'

type Scope = Parameters<typeof temporaryFolder>[0]

/** A disk whose every call ends when the test says so. */
class SlowDisk implements WalSync {
  readonly calls: { resolve(): void; reject(error: Error): void }[] = []

  sync(): Promise<void> {
    return new Promise((resolve, reject) => this.calls.push({ resolve, reject }))
  }

  check(): void {}

  close(): void {}
}

function subject(t: Scope) {
  const db = openDatabase(join(temporaryFolder(t), 'gateway.db'))
  db.exec('CREATE TABLE written (name)')
  const disk = new SlowDisk()
  const writer = new Writer(db, disk)
  const insert = db.prepare('INSERT INTO written VALUES (?)')
  const told: string[] = []
  t.teardown(() => db.close())
  return {
    db,
    disk,
    writer,
    told,
    write: (name: string, safety?: Durability) =>
      writer
        .run(() => {
          insert.run(name)
          return name
        }, safety)
        .then(
          done => void told.push(done),
          error => void told.push(`${name} failed: ${(error as Error).message}`),
        ),
  }
}

t.test('a write that may be lost waits for no disk; a durable one resolves once it is on disk', async t => {
  const { disk, told, write } = subject(t)
  const lasting = write('charge')
  await write('hold', 'committed')
  t.same(told, ['hold'])
  t.equal(disk.calls.length, 1)
  disk.calls[0]!.resolve()
  await lasting
  t.same(told, ['hold', 'charge'])
})

t.test('what is asked for in turns that follow one another shares a transaction', async t => {
  let now = performance.now()
  t.intercept(performance, 'now', { value: () => now })
  const { writer, told, write } = subject(t)
  let transactions = 0
  writer.join({ beforeCommit: () => void transactions++, undone: () => undefined })
  const all = []
  for (let at = 0; at < 5; at++) {
    all.push(write(`${at}`, 'committed'))
    await turn()
  }
  t.same(told, [])
  await Promise.all(all)
  t.equal(transactions, 1)

  // Alone it waits for a few turns, in a stream of others not for their end.
  let turns = 0
  void write('alone', 'committed')
  for (; !told.includes('alone'); turns++) await turn()
  t.ok(turns < 10, `${turns} turns`)
  const began = now
  void write('first', 'committed')
  for (; !told.includes('first'); now++) {
    all.push(write('other', 'committed'))
    await turn()
  }
  t.equal(transactions, 3)
  t.ok(now - began <= 12, `${now - began} ms`)
  await Promise.all(all)
})

t.test('a write waits for one turn where the last transaction is over for a while and had no other', async t => {
  let now = performance.now()
  t.intercept(performance, 'now', { value: () => now })
  const { told, write } = subject(t)
  const turnsOf = async (...names: string[]) => {
    now++
    const all = names.map(name => write(name, 'committed'))
    let turns = 0
    for (; !told.includes(names[0]!); turns++) await turn()
    await Promise.all(all)
    return turns
  }
  const alone = await turnsOf('alone')
  await turnsOf('one', 'other')
  const next = await turnsOf('next')
  t.ok(next > alone, `${next} turns after a shared transaction, ${alone} after none`)
  t.equal(await turnsOf('last'), alone, 'one that came alone is followed by few')
})

t.test('transactions that end while the disk works share the next call, and none the one that runs', async t => {
  const { disk, told, write } = subject(t)
  const first = write('a')
  await write('then', 'committed')
  const others = [write('b')]
  await write('then', 'committed')
  others.push(write('c'))
  await write('then', 'committed')
  t.equal(disk.calls.length, 1)
  disk.calls[0]!.resolve()
  await first
  t.same(told, ['then', 'then', 'then', 'a'])
  t.equal(disk.calls.length, 2)
  disk.calls[1]!.resolve()
  await Promise.all(others)
  t.same(told.slice(3), ['a', 'b', 'c'])
  t.equal(disk.calls.length, 2)
})

t.test(
  'a disk that fails rejects the writes that it loses, and the store reports the fault until a write succeeds',
  async t => {
    const { disk, told, write, writer } = subject(t)
    const lost = write('a')
    await write('hold', 'committed')
    disk.calls[0]!.reject(new Error('EIO'))
    await lost
    t.same(told, ['hold', 'a failed: EIO'])
    t.match(writer.fault, { message: 'EIO' })
    const kept = write('b')
    await write('hold', 'committed')
    disk.calls[1]!.resolve()
    await kept
    t.equal(writer.fault, undefined)
  },
)

t.test('a flush waits for the disk too', async t => {
  const { disk, told, write, writer } = subject(t)
  void write('a')
  await write('hold', 'committed')
  const flushed = writer.flush().then(() => told.push('flushed'))
  disk.calls[0]!.resolve()
  await flushed
  t.same(told, ['hold', 'a', 'flushed'])
})

t.test('the log of a database is brought to the disk, and a log that is not there is no success', async t => {
  const path = join(temporaryFolder(t), 'gateway.db')
  const db = openDatabase(path)
  const log = new LogFile(path)
  const writer = new Writer(db, log)
  await writer.run(() => db.exec('CREATE TABLE mark (id INTEGER)'))
  t.ok(existsSync(`${path}-wal`))
  writer.close()
  db.close()
  const other = new LogFile(join(temporaryFolder(t), 'other.db'))
  await t.rejects(other.sync(), { code: 'ENOENT' })
})

t.test('ST-02 a transaction that writes nothing is no proof that a full disk can be written', async t => {
  const { db, writer } = subject(t)
  const fill = () =>
    writer.run(() => void db.exec('INSERT INTO written VALUES (zeroblob(100000))'), 'committed').catch(() => undefined)
  db.pragma(`max_page_count = ${db.pragma('page_count', { simple: true })}`)
  await fill()
  t.match(writer.fault, { code: 'SQLITE_FULL' })
  await writer.run(() => undefined, 'committed')
  t.match(writer.fault, { code: 'SQLITE_FULL' })
  db.pragma('max_page_count = 100000')
  await fill()
  t.equal(writer.fault, undefined)
})
