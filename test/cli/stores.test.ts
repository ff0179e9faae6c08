/** `gatewayctl backup`, `restore` and `migrate`, on databases of their own. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { run } from '../../src/cli/program.ts'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import { migrations } from '../../src/stores/sqlite/migrations.ts'
import { openDatabase } from '../../src/stores/sqlite/open.ts'
import { temporaryFolder } from '../stores/subject.ts'

const KEYS = 'a-master-key-of-a-test\n'

function shell(t: Test, env: Record<string, string> = {}) {
  const dir = temporaryFolder(t)
  mkdirSync(join(dir, 'config'))
  writeFileSync(
    join(dir, 'config/gateway.yaml'),
    'server: {}\nchains: {}\nstores: { sqlite: ../data/gateway.db }\ncatalog: { extends: packaged }\n',
  )
  mkdirSync(join(dir, 'data'))
  const database = join(dir, 'data/gateway.db')
  const ctl = async (...args: string[]) => {
    const said = { out: '', err: '' }
    const code = await run(args, {
      env,
      cwd: dir,
      out: content => {
        said.out += content.toString()
      },
      err: text => {
        said.err += text
      },
    })
    return { code, ...said }
  }
  return { dir, database, ctl }
}

const names = async (database: string): Promise<string[]> => {
  const stores = openSqlite(database)
  const found = (await stores.organizations.list({})).map(({ name }) => name)
  await stores.close()
  return found.sort()
}
const create = (stores: ReturnType<typeof openSqlite>, name: string) =>
  stores.organizations.create({ name, retains: false }, 'test')
const mode = (file: string): number => statSync(file).mode & 0o777

t.test('a backup of a running gateway is restored after it has stopped', async t => {
  const { dir, database, ctl } = shell(t)
  const stores = openSqlite(database)
  await create(stores, 'kept')
  const backup = await ctl('backup', 'copy.db', '--json')
  t.match([backup.code, backup.err], [0, ''])
  const file = join(dir, 'copy.db')
  t.match(JSON.parse(backup.out), { file, bytes: statSync(file).size, masterKey: null })
  t.equal(mode(file), 0o600)
  await create(stores, 'later')

  const refused = await ctl('restore', 'copy.db')
  t.match(
    [refused.code, refused.err],
    [1, /^A gateway runs on \S+gateway\.db \(process \d+ on \S+\)\. Stop it first\.\n$/],
  )
  await stores.close()
  const restored = await ctl('restore', 'copy.db', '--json')
  t.match([restored.code, restored.err], [0, ''])
  const { earlier } = JSON.parse(restored.out) as { earlier: string }
  t.match(await names(database), ['kept'])
  t.match(await names(earlier), ['kept', 'later'], 'the earlier database is kept')
  t.equal(mode(database), 0o600)
  t.match(
    readdirSync(dir).filter(name => name.startsWith('copy')),
    ['copy.db'],
    'nothing is left beside the backup',
  )
})

t.test('a backup without the gateway takes what its log still holds', async t => {
  const { dir, database, ctl } = shell(t)
  const db = openDatabase(database)
  db.exec('CREATE TABLE mine (text TEXT); INSERT INTO mine VALUES (1)')
  t.ok(statSync(`${database}-wal`).size > 0)
  t.equal((await ctl('backup', 'copy.db')).code, 0)
  db.close()
  const copy = new Database(join(dir, 'copy.db'), { readonly: true })
  t.equal(copy.prepare('SELECT count(*) FROM mine').pluck().get(), 1)
  t.equal(copy.pragma('journal_mode', { simple: true }), 'delete')
  copy.close()
})

t.test('master keys are copied only when they are asked for, for their owner alone', async t => {
  const { dir, database, ctl } = shell(t)
  await openSqlite(database).close()
  const keys = join(dir, 'data/master.key')
  writeFileSync(keys, KEYS, { mode: 0o600 })
  t.match(await ctl('backup', 'bare.db'), { code: 0, err: /the master key is not in the copy/ })
  t.notOk(existsSync(join(dir, 'bare.db.master.key')))
  t.match(await ctl('backup', 'full.db', '--with-master-key'), { code: 0, err: '' })
  t.match([readFileSync(join(dir, 'full.db.master.key'), 'utf8'), mode(join(dir, 'full.db.master.key'))], [KEYS, 0o600])

  writeFileSync(keys, 'another-master-key-of-a-test\n')
  t.match(await ctl('restore', 'bare.db', '--with-master-key'), { code: 1, err: /cannot copy the master keys \S+bare/ })
  writeFileSync(join(dir, 'text.db'), 'no database')
  writeFileSync(join(dir, 'text.db.master.key'), KEYS)
  t.equal((await ctl('restore', 'text.db', '--with-master-key')).code, 1)
  t.match(readFileSync(keys, 'utf8'), 'another-', 'keys stay when the copy is refused')
  t.notOk(existsSync(`${keys}.restore`))
  t.equal((await ctl('restore', 'full.db', '--with-master-key')).code, 0)
  t.equal(readFileSync(keys, 'utf8'), KEYS)
  t.equal(readdirSync(join(dir, 'data')).filter(name => name.startsWith('master.key.before-')).length, 1)

  writeFileSync(join(dir, 'there.db'), 'mine')
  t.equal((await ctl('backup', 'there.db', '--with-master-key')).code, 1)
  t.notOk(existsSync(join(dir, 'there.db.master.key')), 'no keys without their database')

  const given = shell(t, { GATEWAY_MASTER_KEY: KEYS.trim() })
  t.match(await given.ctl('backup', 'x.db', '--with-master-key'), { code: 1, err: /in GATEWAY_MASTER_KEY/ })
})

t.test('what is no backup is refused, and the database stays as it was', async t => {
  const { dir, database, ctl } = shell(t)
  await openSqlite(database).close()
  const before = readFileSync(database)
  t.equal((await ctl('backup', 'good.db')).code, 0)
  const good = readFileSync(join(dir, 'good.db'))
  writeFileSync(join(dir, 'text.db'), 'This is no database, whatever its name says.')
  writeFileSync(join(dir, 'empty.db'), '')
  writeFileSync(join(dir, 'cut.db'), good.subarray(0, Math.floor(good.length / 2)))
  const broken = Buffer.from(good)
  broken.fill(0xff, 4096 * 2, 4096 * 6)
  writeFileSync(join(dir, 'broken.db'), broken)
  const newer = openDatabase(join(dir, 'newer.db'))
  newer.pragma(`user_version = ${migrations.length + 1}`)
  newer.close()
  const foreign = new Database(join(dir, 'foreign.db'))
  foreign.exec('CREATE TABLE theirs (x)')
  foreign.close()
  for (const [name, why] of [
    ['none.db', /^There is no file \S+none\.db\.\n$/],
    ['text.db', /file is not a database/],
    ['empty.db', /empty\.db is empty/],
    ['cut.db', /corrupt|malformed/],
    ['broken.db', /corrupt|malformed/],
    ['newer.db', /written by a newer version/],
    ['foreign.db', /database of another program/],
  ] as const) {
    const { code, err } = await ctl('restore', name)
    t.equal(code, 1, name)
    t.match(err, why, name)
  }
  t.strictSame(readFileSync(database), before)
  t.match(await ctl('backup', 'good.db'), { code: 1, err: /good\.db already exists\. Name a new file\./ })
  t.strictSame(readFileSync(join(dir, 'good.db')), good)
  t.match(await ctl('backup', 'no/folder.db'), { code: 1, err: /Cannot write the backup/ })
  t.notOk(readdirSync(dir).some(name => name.endsWith('.part')))
  t.match(await shell(t).ctl('backup', 'x.db'), { code: 1, err: /There is no database .*gateway\.db/ })
})

t.test('a restore works where there is no database yet', async t => {
  const { dir, database, ctl } = shell(t)
  const stores = openSqlite(database)
  await create(stores, 'kept')
  await stores.close()
  await ctl('backup', 'copy.db')
  const other = shell(t)
  t.match(await other.ctl('restore', join(dir, 'copy.db')), { code: 0, out: `restored ${other.database}\n` })
  t.strictSame(await names(other.database), ['kept'])
})

t.test('migrate applies what is missing; --check and --wait only look', async t => {
  const { database, ctl } = shell(t)
  const known = migrations.length
  t.match(await ctl('migrate', '--check'), { code: 1, out: / no database, this version needs schema \d+\n$/ })
  t.notOk(existsSync(database), 'a check creates nothing')
  openDatabase(database, migrations.slice(0, -2)).close()
  const check = await ctl('migrate', '--check', '--json')
  t.match([check.code, JSON.parse(check.out)], [1, { present: known - 2, known, current: false }])
  const waiting = ctl('migrate', '--wait', '60s')
  t.match(await ctl('migrate'), { code: 0, out: `${database}: schema ${known - 2}, now schema ${known}\n` })
  t.match(await waiting, { code: 0, out: `${database}: schema ${known} is current\n` })
  t.match(await ctl('migrate', '--check'), { code: 0, err: '' })
  t.match(await ctl('migrate', '--wait', 'long'), { code: 2, err: /"long" is not a time such as 120s/ })
})

t.test('a migration waits for no gateway of an older version: it refuses while one runs', async t => {
  const { database, ctl } = shell(t)
  const stores = openSqlite(database)
  const db = new Database(database)
  db.pragma(`user_version = ${migrations.length - 1}`)
  db.close()
  t.match(await ctl('migrate'), { code: 1, err: /A gateway runs on/ })
  await stores.close()
})

t.test('a copy says what is wrong with its addresses, and changes nothing', async t => {
  const { dir, ctl } = shell(t)
  const to = 'postgres:postgres://127.0.0.1:1/none'
  t.match(await ctl('stores', 'copy', '--from', 'data/gateway.db', '--to', to), { code: 2, err: /it is sqlite:PATH/ })
  const source = 'sqlite:data/gateway.db'
  t.match(await ctl('stores', 'copy', '--from', source, '--to', 'mysql://x'), { code: 2, err: /it is postgres:URL/ })
  t.match(await ctl('stores', 'copy', '--from', source, '--to', to), { code: 1, err: /Cannot read the database/ })
  t.same(readdirSync(join(dir, 'data')), [])
})
