/** Ten thousand organizations with ten keys each: the gateway starts as with one, and knows each key. */
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { TIMINGS, timing } from '../helpers/figure.ts'
import { startGateway } from '../helpers/gateway.ts'

const ORGANIZATIONS = 10_000
const KEYS = 10
/** The one of `src/stores/sqlite/open.ts`. */
const CHECK_LIMIT = 64 * 1024 * 1024
/** Of the pages of the database that a start may read more of, or a list. */
const MAX_SHARE = 0.1
/** `/proc` counts in hundredths of a second. */
const TICK_MS = 10
/** CPU that a start may take more. */
const MAX_MORE_MS = 200
/** How long the event loop may be held up. */
const MAX_BLOCKED_MS = 120

const gateway = await startGateway(t, { providers: { a: { base_url: 'http://127.0.0.1:9' } } })
const database = join(gateway.dir, 'data/gateway.db')
const secretOf = (organization: number, key: number) => `mgw_secret-${organization}-${key}`
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/** Bytes that the process has read so far, of whatever file. */
function bytesRead(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync(`/proc/${gateway.pid}/io`, 'utf8'))![1])
}

/** CPU that the process has used so far, all its threads together. */
function cpuMs(): number {
  const [user, system] = readFileSync(`/proc/${gateway.pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
    .slice(11, 13)
  return (Number(user) + Number(system)) * TICK_MS
}

function fill(): void {
  const db = new Database(database)
  const organization = db.prepare(
    "INSERT INTO organizations (id, name, account, created_at) VALUES (?, ?, 'prepaid', 0)",
  )
  const project = db.prepare("INSERT INTO projects (id, org_id, name, created_at) VALUES (?, ?, 'web', 0)")
  const key = db.prepare(
    "INSERT INTO keys (id, project_id, name, kind, hash, preview, created_at) VALUES (?, ?, ?, 'key', ?, 'mgw_…', 0)",
  )
  db.transaction(() => {
    for (let org = 0; org < ORGANIZATIONS; org++) {
      organization.run(`org-${org}`, `Organization ${org}`)
      project.run(`project-${org}`, `org-${org}`)
      for (let n = 0; n < KEYS; n++) {
        key.run(`key-${org}-${n}`, `project-${org}`, `label-${org}-${n}`, sha256(secretOf(org, n)))
      }
    }
  })()
  db.close()
}

/** A larger file is not checked when it is opened: what is read of it then is what a start needs. */
function enlarge(): void {
  const db = new Database(database)
  db.exec('CREATE TABLE filler (bytes)')
  db.prepare('INSERT INTO filler VALUES (zeroblob(?))').run(CHECK_LIMIT)
  db.close()
}

/** The least of a few starts. */
async function start() {
  const best = { ms: Number.POSITIVE_INFINITY, cpu: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }
  for (let round = 0; round < TIMINGS; round++) {
    await gateway.kill()
    const began = performance.now()
    await gateway.restart()
    best.ms = Math.min(best.ms, performance.now() - began)
    best.cpu = Math.min(best.cpu, cpuMs())
    best.bytes = Math.min(best.bytes, bytesRead())
  }
  return best
}

t.test('a start with many organizations reads hardly more than one with none', async t => {
  const nobody = await start()
  await gateway.kill()
  fill()
  const all = await start()
  const { size } = statSync(database)
  t.ok(all.bytes - nobody.bytes < 2 * size, `${all.bytes - nobody.bytes} bytes more: its pages are checked, once`)
  await gateway.kill()
  enlarge()
  const more = (await start()).bytes - nobody.bytes
  t.ok(more < MAX_SHARE * size, `${more} bytes more of ${size} where pages are not checked`)
  timing(t, { id: 'scale', what: 'a start', value: Math.min(all.ms, all.cpu), unit: 'ms', atMost: 1000 })
  const value = all.cpu - nobody.cpu
  timing(t, { id: 'scale', what: 'CPU that it takes more', value, unit: 'ms', atMost: MAX_MORE_MS })
})

t.test('each of them is known, and lists of them come in parts of which no more is read', async t => {
  const ask = async (secret: string) => {
    const response = await gateway.get('/v1/key', { authorization: `Bearer ${secret}` })
    return { status: response.status, ...((await response.json()) as { data?: { label: string } }) }
  }
  for (let i = 0; i < 100; i++) {
    const [org, n] = [(i * 7919) % ORGANIZATIONS, i % KEYS]
    t.match(await ask(secretOf(org, n)), { status: 200, data: { label: `label-${org}-${n}` } })
  }
  t.match(await ask(secretOf(ORGANIZATIONS, 0)), { status: 401 })

  const list = async (name: string, args: object) =>
    (await (await gateway.admin('POST', `/commands/${name}`, args)).json()) as { id: string; name: string }[]
  const { size } = statSync(database)
  for (const [name, after] of [
    ['keys.list', `key-${ORGANIZATIONS - 1}-4`],
    ['projects.list', `project-${ORGANIZATIONS - 6}`],
    ['orgs.list', `org-${ORGANIZATIONS - 6}`],
  ] as const) {
    for (const [args, length] of [
      [{}, 500],
      [{ after }, 5],
    ] as const) {
      const what = `${name} ${JSON.stringify(args)}`
      let value = Number.POSITIVE_INFINITY
      for (let round = 0; round < TIMINGS; round++) {
        const [before, began] = [bytesRead(), performance.now()]
        t.equal((await list(name, args)).length, length, name)
        value = Math.min(value, performance.now() - began)
        const bytes = bytesRead() - before
        t.ok(bytes < MAX_SHARE * size, `${what}: ${bytes} bytes of ${size}`)
      }
      timing(t, { id: 'scale', what, value, unit: 'ms', atMost: MAX_BLOCKED_MS })
    }
  }
})
