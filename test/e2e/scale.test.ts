/** Ten thousand organizations with ten keys each: the gateway starts as with one, and knows each key. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { startGateway } from '../helpers/gateway.ts'
import { slowness } from '../helpers/slowness.ts'

const ORGANIZATIONS = 10_000
const KEYS = 10
const ROUNDS = 5
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

/** Starts that are like others: a machine that is busy with other things makes some of them dear, and none cheap. */
async function start(best = { wall: Number.POSITIVE_INFINITY, cpu: Number.POSITIVE_INFINITY }) {
  await gateway.kill()
  const before = slowness()
  const began = performance.now()
  await gateway.restart()
  const elapsed = performance.now() - began
  return { wall: Math.min(best.wall, elapsed / Math.max(before, slowness())), cpu: Math.min(best.cpu, cpuMs()) }
}

t.test('a start takes hardly longer for them than for nobody, and less than a second', async t => {
  // Both are the median of their kind or better: the one that was cheap by chance is no measure for the others.
  const nobody: number[] = []
  for (let round = 0; round < 3; round++) nobody.push((await start()).cpu)
  const empty = nobody.sort((a, b) => a - b)[1]!
  await gateway.kill()
  fill()
  let best = await start()
  for (let round = 1; round < ROUNDS && (best.wall >= 1000 || best.cpu - empty >= MAX_MORE_MS); round++) {
    best = await start(best)
  }
  t.comment(`${empty} ms of CPU for nobody, ${best.cpu} ms for all; ${best.wall.toFixed(0)} ms by the clock`)
  // A machine with too much to do gives the process less than a second of each second.
  t.ok(Math.min(best.wall, best.cpu) < 1000, `${best.wall} ms, ${best.cpu} ms of CPU`)
  t.ok(best.cpu - empty < MAX_MORE_MS, `${best.cpu - empty} ms of CPU more`)
})

t.test('each of them is known, and lists of them come in parts that hold nobody up', async t => {
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
  for (const [name, after] of [
    ['keys.list', `key-${ORGANIZATIONS - 1}-4`],
    ['projects.list', `project-${ORGANIZATIONS - 6}`],
    ['orgs.list', `org-${ORGANIZATIONS - 6}`],
  ] as const) {
    for (const [args, length] of [
      [{}, 500],
      [{ after }, 5],
    ] as const) {
      let least = Number.POSITIVE_INFINITY
      for (let round = 0; round < ROUNDS && least > MAX_BLOCKED_MS; round++) {
        const began = performance.now()
        t.equal((await list(name, args)).length, length, name)
        least = Math.min(least, performance.now() - began)
      }
      t.ok(least <= MAX_BLOCKED_MS, `${name} ${JSON.stringify(args)}: ${least.toFixed(0)} ms`)
    }
  }
})
