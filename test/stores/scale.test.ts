/** Ten thousand organizations with ten keys each: finding a key stays cheap, and so does starting. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { openStores } from '../../src/stores/sqlite/index.ts'
import { SqliteKeys } from '../../src/stores/sqlite/keys.ts'
import { openDatabase } from '../../src/stores/sqlite/open.ts'
import { temporaryFolder } from './subject.ts'

const ORGANIZATIONS = 10_000
const KEYS = 10
const MAX_MICROSECONDS = 20
const ROUNDS = 9
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const path = join(temporaryFolder(t), 'gateway.db')
const hashes: string[] = []

t.before(() => {
  const db = openDatabase(path)
  const organization = db.prepare(
    "INSERT INTO organizations (id, name, account, created_at) VALUES (?, ?, 'prepaid', 0)",
  )
  const project = db.prepare("INSERT INTO projects (id, org_id, name, created_at) VALUES (?, ?, 'web', 0)")
  const key = db.prepare(
    "INSERT INTO keys (id, project_id, name, kind, hash, preview, created_at) VALUES (?, ?, 'k', 'key', ?, 'mgw_…', 0)",
  )
  db.transaction(() => {
    for (let org = 0; org < ORGANIZATIONS; org++) {
      organization.run(`org-${org}`, `Organization ${org}`)
      project.run(`project-${org}`, `org-${org}`)
      for (let n = 0; n < KEYS; n++) {
        const hash = sha256(`mgw_${org}-${n}`)
        hashes.push(hash)
        key.run(`key-${org}-${n}`, `project-${org}`, hash)
      }
    }
  })()
  db.close()
})

/** Each of `found`, in microseconds, sorted. */
function timed(hashes: readonly string[], find: (hash: string) => unknown): number[] {
  const took: number[] = []
  for (const hash of hashes) {
    const start = performance.now()
    if (find(hash) === undefined) throw new Error('a key was not found')
    took.push((performance.now() - start) * 1000)
  }
  return took.sort((a, b) => a - b)
}
const median = (sorted: readonly number[]): number => sorted[Math.floor(sorted.length / 2)]!

t.test('a key is found in under 20 microseconds, in memory or not', async t => {
  const db = openDatabase(path)
  t.teardown(() => db.close())
  // Far apart, so that neither the cache of keys nor the pages of those before help.
  const scattered = Array.from({ length: 20_000 }, (_, i) => hashes[(i * 7919) % hashes.length]!)
  // The best of some rounds, because a machine that is busy with other things is not judged here.
  const round = () => {
    const keys = new SqliteKeys(db)
    return { keys, took: timed(scattered, hash => keys.find(hash)) }
  }
  let best = round()
  for (let more = 0; more < ROUNDS && median(best.took) >= MAX_MICROSECONDS; more++) {
    const next = round()
    if (median(next.took) < median(best.took)) best = next
  }
  const { keys, took: cold } = best
  t.comment(`read: p50 ${median(cold).toFixed(1)} µs, p99 ${cold[19_800]!.toFixed(1)} µs`)
  // On a slow machine the row alone takes its time.
  const row = db.prepare('SELECT * FROM keys WHERE hash = ?')
  const alone = median(timed(scattered, hash => row.get(hash)))
  t.comment(`its row alone: p50 ${alone.toFixed(1)} µs`)
  const most = Math.max(MAX_MICROSECONDS, 3 * alone)
  t.ok(median(cold) < most, `${median(cold)} µs from the file, of ${most} µs`)
  const few = scattered.slice(-1000)
  const warm = timed([...few, ...few, ...few, ...few], hash => keys.find(hash))
  t.comment(`known: p50 ${median(warm).toFixed(2)} µs`)
  t.ok(median(warm) < MAX_MICROSECONDS, `${median(warm)} µs from memory`)
})

t.test('the stores open in much less than a second', async t => {
  const start = performance.now()
  const stores = openStores(path)
  await stores.ledger.recover()
  const took = performance.now() - start
  t.teardown(() => stores.close())
  t.comment(`open: ${took.toFixed(0)} ms`)
  t.ok(took < 700, `${took} ms`)
  t.equal((await stores.accounts.listKeys('project-77')).length, KEYS)
})
