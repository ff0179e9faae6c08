/** Charges of requests that are cut off: the client disconnects, or `kill -9` ends the gateway. */
import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import type { Sqlite } from '../../src/stores/sqlite/driver.ts'
import { readBooks } from '../helpers/books.ts'
import { costOf } from '../helpers/cost.ts'
import { figure } from '../helpers/figure.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants, untilInFlight } from '../helpers/invariants.ts'
import { random } from '../helpers/random.ts'
import { runs } from '../helpers/runs.ts'
import { type Entry, readRecord, type Step, startUpstream } from '../helpers/upstream.ts'

const ROUNDS = Number(process.env.CRASH_ROUNDS ?? runs(50))
const MAX_ROUNDS = 10 * ROUNDS
const CLIENTS = 30
/** After so many answers that came whole. */
const KILL = { from: 10, to: 150 }

const ctl = fileURLToPath(new URL('../../bin/gatewayctl.js', import.meta.url))
/** Nano-USD per token, of all providers. */
const rates = { prompt: 3000, completion: 7000 }
const priceOf = ({ prompt, completion }: { prompt: number; completion: number }) =>
  prompt * rates.prompt + completion * rates.completion

const mapping = (model: string) => ({
  ...testMapping,
  model,
  id: `${model}-1`,
  pricing: { prompt: '3', completion: '7' },
  // Without reasoning: nothing of a stream is out of sight.
  supports: ['streaming'],
})
const upstream = await startUpstream(t)
const served = (prefix: string, models: string[], more: object = {}) => ({
  base_url: upstream.url(prefix),
  models: models.map(mapping),
  ...more,
})
const gateway = await startGateway(t, {
  providers: {
    plain: served('plain', ['quick', 'gpt']),
    slow: served('slow', ['slow']),
    faulty: served('faulty', ['shaky'], { priority: 2 }),
    spare: served('spare', ['shaky']),
    other: served('other', ['claude'], {
      auth: { scheme: 'header', header: 'x-api-key', secret: upstreamSecret },
      headers: { 'anthropic-version': '2023-06-01' },
      wires: { chat: 'anthropic.messages' },
    }),
  },
  // A machine that is busy with other things is not judged here.
  config: { endpoints: { chat: { ratelimit: { rpm: 1_000_000 }, admission: { lag: '60s' } } } },
})

const books = <T>(read: (db: Sqlite) => T) => readBooks(gateway, read)

interface Row {
  id: string
  request_id: string
  key_id: string
  at: number
  outcome: string
  cost: number
  /** Charge in the ledger; null when nothing was charged. */
  charged: number | null
}
const rowsOf = (db: Sqlite) =>
  db
    .prepare(`
      SELECT requests.*, -ledger.amount AS charged
      FROM requests LEFT JOIN ledger ON ledger.request_id = requests.id AND ledger.kind = 'charge'`)
    .all() as Row[]

// Four characters each, hence one token each, as the gateway estimates and as the upstream counts.
const chunks = ['one ', 'two ', 'thr ', 'fou ', 'fiv ', 'six ', 'sev ', 'eig ']
const leaving: { says: string; model: string; prefix: string; stream: boolean; step: Step; after: number }[] = [
  { says: 'a stream', model: 'gpt', prefix: 'plain', stream: true, step: { chunks, hold: 4 }, after: 4 },
  {
    says: 'a stream of the other wire',
    model: 'claude',
    prefix: 'other',
    stream: true,
    step: { chunks, hold: 4 },
    after: 4,
  },
  { says: 'a stream before its content', model: 'gpt', prefix: 'plain', stream: true, step: { hold: 0 }, after: 0 },
  { says: 'a whole answer', model: 'gpt', prefix: 'plain', stream: false, step: { hold: 0 }, after: 0 },
]

for (const { says, model, prefix, stream, step, after } of leaving) {
  t.test(`SF-10 SF-11 a client that leaves ${says} takes the upstream with it, and pays for what was done`, async t => {
    await upstream.reset()
    await upstream.script(prefix, [step])
    for (let n = 1; n <= 2; n++) {
      const id = `leave-${says.replaceAll(' ', '-')}-${n}`
      const messages = [{ role: 'user', content: 'Count to eight, please.' }]
      const client = new AbortController()
      const response = gateway.chat({ model, stream, messages }, { 'x-request-id': id }, client.signal)
      const gone = response.then(got => readUntil(got, chunks.slice(0, after).join(''))).catch(() => 'gone')
      if (after > 0) await gone
      else await upstream.record(prefix, { requests: n })
      client.abort()
      const entry = (await upstream.record(prefix, { ended: n })).at(-1)!
      await gone
      t.equal(entry.outcome, 'aborted')
      await untilInFlight(gateway, 0)
      const rows = books(rowsOf).filter(row => row.request_id === id)
      // The charge covers what was sent and delivered; for a whole answer, also what could have been written besides.
      const least = priceOf(entry.tokens)
      t.match(rows, [{ outcome: 'aborted', cost: rows[0]?.charged }])
      t.ok(stream ? rows[0]?.charged === least : rows[0]!.charged! >= least, `${rows[0]?.charged} of ${least}`)
      t.equal(entry.tokens.completion, after)
    }
  })
}

/** Resolves as soon as the texts of the answer's chunks begin with `text`; what follows stays unread. */
async function readUntil(response: Response, text: string): Promise<void> {
  const decoder = new TextDecoder()
  const reader = response.body!.getReader()
  let seen = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) throw new Error(`the answer ended before "${text}": ${seen}`)
    seen += decoder.decode(value, { stream: true })
    const contents = [...seen.matchAll(/"(?:content|text)":"([^"]*)"/g)].map(match => match[1])
    if (contents.join('').startsWith(text)) return
  }
}

/** One request as its client knows it. `cost` is in nano-USD, and there when the answer came whole. */
interface Sent {
  id: string
  key: string
  stream: boolean
  cost?: number
}
interface Round {
  sent: Sent[]
  from: number
  to: number
}
/** Clients ask again and again, each with a key of its own, until the gateway is killed under them. */
async function killUnderLoad(round: number, keys: { id: string; key: string }[], next: () => number): Promise<Round> {
  const sent: Sent[] = []
  const from = Date.now()
  let killed = false
  let left = Math.round(KILL.from + next() * (KILL.to - KILL.from))
  const answers = new EventEmitter()
  const enough = once(answers, 'enough')
  const clients = keys.map(async ({ id: key, key: secret }, client) => {
    for (let n = 0; !killed; n++) {
      const stream = next() < 0.6
      const model = ['quick', 'slow', 'shaky'][Math.floor(next() * 3)]!
      const content = 'word '.repeat(1 + Math.floor(next() * 100))
      const request: Sent = { id: `r${round}.${client}.${n}`, key, stream }
      sent.push(request)
      const headers = { authorization: `Bearer ${secret}`, 'x-request-id': request.id }
      const body = { model, stream, messages: [{ role: 'user', content }] }
      const cut = (error: unknown) => {
        if (!killed) throw error
        return undefined
      }
      const cost = await gateway
        .chat(body, headers)
        .then(response => costOf(response, stream))
        .catch(cut)
      if (cost === undefined) continue
      request.cost = cost
      if (--left === 0) answers.emit('enough')
    }
  })
  await Promise.race([enough, Promise.all(clients)])
  killed = true
  await gateway.kill('SIGKILL')
  await Promise.all(clients)
  return { sent, from, to: Date.now() }
}

/** The file is whole, nothing is held, and the balance follows from the ledger. */
function checkBooks(t: Test, round: number): void {
  books(db => {
    const facts = db
      .prepare(`
        SELECT balance - (SELECT coalesce(sum(amount), 0) FROM ledger) AS unexplained, balance + used AS rest, held,
          (SELECT count(*) FROM holds) AS open
        FROM balances`)
      .all()
    t.strictSame(facts, [{ unexplained: 0, rest: 0, held: 0, open: 0 }], `round ${round}: the sums agree`)
    t.equal(db.pragma('integrity_check', { simple: true }), 'ok', `round ${round}: the file is whole`)
  })
}

t.test(`after kill -9 under load, ${ROUNDS} times, the ledger agrees with the upstream's own record`, async t => {
  await upstream.reset()
  await upstream.script('slow', [
    { chunks: 'a slow answer comes in many small pieces'.split(/(?= )/), chunkDelayMs: 10 },
  ])
  await upstream.script('faulty', [{ status: 500 }])
  await upstream.script('spare', [{ chunkDelayMs: 5 }])
  const keys = await Promise.all(
    Array.from({ length: CLIENTS }, async (_, n) => {
      const made = await gateway.admin('POST', '/commands/keys.create', { project: 'default', name: `client ${n}` })
      return (await made.json()) as { id: string; key: string }
    }),
  )
  const seed = Number(process.env.CRASH_SEED ?? randomInt(2 ** 31))
  t.comment(`CRASH_SEED=${seed}`)
  const next = random(seed)
  const rounds: Round[] = []
  const isAnyCut = () => books(rowsOf).some(({ outcome }) => outcome === 'orphaned')
  // Which requests a kill finds is chance: it goes on until it has found one that it cuts.
  for (let round = 0; round < ROUNDS || (round < MAX_ROUNDS && !isAnyCut()); round++) {
    rounds.push(await killUnderLoad(round, keys, next))
    await gateway.restart()
    checkBooks(t, round)
  }
  const entries = (await readRecord(upstream.recordFile)).filter(entry => /^r\d/.test(idOf(entry)))
  compare(t, rounds, entries, books(rowsOf))
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...[ctl, 'usage', 'check', '--json', '--admin', gateway.adminUrl],
    ...['--token-file', join(gateway.dir, 'data/admin.token')],
  ])
  t.strictSame(JSON.parse(stdout), { differences: [] })
})

const idOf = (entry: Entry): string => entry.headers['x-request-id'] ?? ''

const isOf = ({ key_id, at }: Row, key: string, from: number, to: number) => key_id === key && at >= from && at <= to

/** Every request in three accounts: what its client saw, what the upstream did for it, and what stands in the books. */
function compare(t: Test, rounds: Round[], entries: Entry[], rows: Row[]): void {
  const done = new Map<string, number>()
  for (const entry of entries)
    if (entry.usage) done.set(idOf(entry), priceOf(entry.usage) + (done.get(idOf(entry)) ?? 0))
  const reached = new Set(entries.map(idOf))
  const kept = new Map<string, Row[]>()
  const orphans = rows.filter(row => row.outcome === 'orphaned')
  for (const row of rows.filter(row => !orphans.includes(row)))
    kept.set(row.request_id, [...(kept.get(row.request_id) ?? []), row])
  const wrong: Record<string, unknown[]> = { answers: [], charges: [], lost: [] }
  const sums = { whole: 0, streams: 0, charged: 0, orphaned: 0 }

  for (const { sent, from, to } of rounds) {
    for (const request of sent) {
      const found = kept.get(request.id) ?? []
      const [row] = found
      const price = done.get(request.id) ?? 0
      if (request.cost !== undefined) {
        sums[request.stream ? 'streams' : 'whole']++
        const agreed = found.length === 1 && row!.outcome === 'ok' && row!.charged === request.cost
        if (!agreed || request.cost !== price) wrong.answers!.push({ request, found, price })
      }
      if (row?.charged) sums.charged += row.charged
      if (found.length > 1 || (row?.charged ?? 0) > price) wrong.charges!.push({ request, found, price })
      if (found.length === 0) {
        const mine = orphans.filter(row => row.request_id === request.id && isOf(row, request.key, from, to))
        sums.orphaned += mine.length
        if (reached.has(request.id) ? mine.length !== 1 : mine.length > 1) wrong.lost!.push({ request, mine })
      }
    }
  }
  const total = [...done.values()].reduce((sum, price) => sum + price, 0)
  t.comment(JSON.stringify({ ...sums, priced: total, reached: reached.size }))
  t.strictSame(wrong, { answers: [], charges: [], lost: [] })
  t.equal(sums.orphaned, orphans.length, 'every orphan is a request that was cut short')
  t.ok(sums.whole > 0 && sums.streams > 0 && sums.orphaned > 0, 'the load was mixed, and some of it was cut')
  figure(t, { id: 'CS-01', what: 'kills with kill -9', value: rounds.length, unit: '', atLeast: ROUNDS })
  figure(t, {
    id: 'CS-01',
    what: 'charged, of what the upstream did',
    value: (100 * sums.charged) / total,
    unit: '%',
    atMost: 100,
  })
  figure(t, {
    id: 'CS-01',
    what: 'requests without a charge or an orphan',
    value: wrong.lost!.length,
    unit: '',
    atMost: 0,
  })
}

t.test('the gateway that is left is as the first one was', t => checkInvariants(t, gateway, upstream))
