/** `kill -9` while keys are made, while the configuration is written, and while the database is migrated. */
import { randomInt } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { Database, type Sqlite } from '../../src/stores/sqlite/driver.ts'
import { Child } from '../helpers/child.ts'
import { figure } from '../helpers/figure.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { random } from '../helpers/random.ts'
import { startUpstream } from '../helpers/upstream.ts'

const ROUNDS = 20
/** The kill comes up to so many milliseconds after the beginning. */
const WRITING_MS = 150
const STARTING_MS = 500
const SEED = Number(process.env.CRASH_SEED ?? randomInt(2 ** 31))
const next = random(SEED)

const upstream = await startUpstream(t)
const provider = (n: number) => ({
  name: `A ${n}`,
  base_url: upstream.url('a'),
  models: [{ ...testMapping, pricing: { prompt: n % 2 ? '3' : '1', completion: '2' } }],
})
const gateway = await startGateway(t, { providers: { a: provider(0) } })
const path = join(gateway.dir, 'data/gateway.db')

function books<T>(read: (db: Sqlite) => T): T {
  const db = new Database(path, { readonly: true })
  try {
    return read(db)
  } finally {
    db.close()
  }
}
const isWhole = () => books(db => db.pragma('integrity_check', { simple: true })) === 'ok'

/** Whether the request was served at the price of one of the two editions. */
async function isServed(key: string): Promise<boolean> {
  await upstream.script('a', [{ usage: { prompt: 100, completion: 10 } }])
  const messages = [{ role: 'user', content: 'Hi' }]
  const response = await gateway.chat({ model: 'test', messages }, { authorization: `Bearer ${key}` })
  const { usage } = (await response.json()) as { usage?: { cost: number } }
  return response.status === 200 && [0.00012, 0.00032].includes(usage?.cost ?? 0)
}

t.test('CS-08 keys that were shown last; others exist with all that belongs to them or not at all', async t => {
  t.comment(`CRASH_SEED=${SEED}`)
  const told = new Set<string>()
  let unserved = 0
  let damaged = 0
  for (let round = 0; round < ROUNDS; round++) {
    let killed = false
    const mine: string[] = []
    const make = async (n: number) => {
      for (let i = 0; !killed; i++) {
        const args = { project: 'default', name: `r${round}.${n}.${i}` }
        const made = await gateway.admin('POST', '/commands/keys.create', args).catch(() => undefined)
        const answer = (await made?.json().catch(() => undefined)) as { id: string; key: string } | undefined
        if (!answer) continue
        told.add(answer.id)
        mine.push(answer.key)
      }
    }
    const write = async () => {
      for (let n = 1; !killed; n++) {
        await gateway.writeProvider('a', provider(n))
        await gateway.admin('POST', '/reload').catch(() => undefined)
      }
    }
    const running = [...Array.from({ length: 4 }, (_, n) => make(n)), write()]
    await sleep(next() * WRITING_MS)
    killed = true
    await gateway.kill('SIGKILL')
    await Promise.all(running)
    if (!isWhole()) damaged++
    await gateway.restart()
    for (const key of mine.slice(-2)) if (!(await isServed(key))) unserved++
  }
  const { rows, audited } = books(db => ({
    rows: db.prepare('SELECT id FROM keys').pluck().all() as string[],
    audited: db.prepare("SELECT subject FROM audit WHERE action = 'keys.create'").pluck().all() as string[],
  }))
  const kept = new Set(rows)
  const lost = [...told].filter(id => !kept.has(id)).length
  const alone = [...told].filter(id => !audited.includes(id)).length
  const half = audited.filter(id => !kept.has(id)).length
  t.ok(told.size > ROUNDS, `${told.size} keys were told`)
  figure(t, { id: 'CS-08', what: 'kills while keys and configuration are written', value: ROUNDS, unit: '' })
  figure(t, { id: 'CS-08', what: 'databases that were damaged', value: damaged, unit: '', atMost: 0 })
  figure(t, {
    id: 'CS-08',
    what: 'keys lost, not served or half there',
    value: lost + alone + half + unserved,
    unit: '',
    atMost: 0,
  })
})

/** Starts a gateway on an empty database, and kills it before long. */
async function killAtStart(t: Test): Promise<void> {
  for (const end of ['', '-wal', '-shm']) await rm(path + end, { force: true })
  const command = fileURLToPath(new URL('../../bin/gateway.js', import.meta.url))
  const child = new Child(command, ['--config', gateway.configPath], {
    env: { HOME: gateway.dir },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  await sleep(next() * STARTING_MS)
  await child.kill('SIGKILL')
}

t.test('CS-08 a start that is killed while it migrates is finished by the next one', async t => {
  await gateway.kill('SIGTERM')
  let damaged = 0
  const versions = new Set<unknown>()
  const seen = new Set<unknown>()
  for (let round = 0; round < ROUNDS; round++) {
    await killAtStart(t)
    seen.add(versionOf())
    await gateway.restart()
    const made = await gateway.admin('POST', '/commands/keys.create', { project: 'default', name: 'mine' })
    const { key } = (await made.json()) as { key: string }
    if (!isWhole() || !(await isServed(key))) damaged++
    versions.add(versionOf())
    await gateway.kill('SIGTERM')
  }
  t.comment(`versions at the kills: ${[...seen].join(', ')}`)
  t.equal(versions.size, 1, 'all come to the newest version')
  figure(t, { id: 'CS-08', what: 'kills while the database is made', value: ROUNDS, unit: '' })
  figure(t, { id: 'CS-08', what: 'starts that did not finish it', value: damaged, unit: '', atMost: 0 })
  await gateway.restart()
  await checkInvariants(t, gateway, upstream)
})

/** Of the schema; undefined while there is no database. */
function versionOf(): unknown {
  try {
    return books(db => db.pragma('user_version', { simple: true }))
  } catch {
    return undefined
  }
}
