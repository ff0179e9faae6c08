/**
 * Three gateways on one PostgreSQL under load: nodes are killed and cut off, the server crashes and fails over to a
 * standby. Each answer that came whole is charged once, and the books agree. NODE_KILLS sets how many kills there are.
 */
import { randomInt } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import t from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { costOf } from '../helpers/cost.ts'
import { figure } from '../helpers/figure.ts'
import { type Gateway, startGateway, testMapping } from '../helpers/gateway.ts'
import { pause } from '../helpers/pause.ts'
import { startPostgres, withoutPostgres } from '../helpers/postgres.ts'
import { proxyTo, type TcpProxy } from '../helpers/proxy.ts'
import { random } from '../helpers/random.ts'
import { startUpstream } from '../helpers/upstream.ts'

const KILLS = Number(process.env.NODE_KILLS ?? 4)
const CLIENTS = 12
/** Answers that come whole between two events. */
const BETWEEN = { from: 5, to: 30 }

interface Row {
  readonly request_id: string
  readonly outcome: string
  readonly charged: string
  readonly entries: string
}

t.test(
  'what was answered whole is charged once, whatever happens to nodes and server',
  {
    skip: withoutPostgres,
    timeout: 3_600_000,
  },
  async t => {
    const seed = Number(process.env.CRASH_SEED ?? randomInt(2 ** 31))
    t.comment(`CRASH_SEED=${seed}`)
    const next = random(seed)
    const upstream = await startUpstream(t)
    await upstream.script('slow', [{ text: 'a slow answer comes in many small pieces', chunkDelayMs: 30 }])
    let server = await startPostgres({ fsync: true })
    const database = new URL(await server.database()).pathname
    const nodes: { gateway: Gateway; proxy: TcpProxy }[] = []
    for (let n = 0; n < 3; n++) {
      const proxy = await proxyTo(t, server.port)
      const postgres = `postgres://gateway@127.0.0.1:${proxy.port}${database}`
      const served = (prefix: string) => ({
        base_url: upstream.url(prefix),
        models: [{ ...testMapping, model: prefix }],
      })
      const endpoints = { chat: { ratelimit: { rpm: 1_000_000 }, admission: { lag: '60s' } } }
      const options = { providers: { quick: served('quick'), slow: served('slow') } }
      const gateway = await startGateway(t, { ...options, config: { endpoints, stores: { postgres } } })
      nodes.push({ gateway, proxy })
    }
    const rows = async <T>(text: string) => {
      const client = new pg.Client({ connectionString: `postgres://gateway@127.0.0.1:${server.port}${database}` })
      await client.connect()
      try {
        return (await client.query(text)).rows as T[]
      } finally {
        await client.end()
      }
    }
    const command = commandsOf(nodes[0]!.gateway)
    const { id: organization } = await command<{ id: string }>('orgs.create', { name: 'load' })
    await command('credits.add', { organization, amount: '1000' })
    const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
    const { key } = await command<{ key: string }>('keys.create', { project, limit: '900', limitPeriod: 'month' })

    /** Costs of answers that came whole, by the client's id. */
    const whole = new Map<string, number>()
    const answers = new EventEmitter().setMaxListeners(0)
    let over = false
    let sent = 0
    const client = async () => {
      while (!over) {
        const id = `k${sent++}`
        const { gateway } = nodes[Math.floor(next() * nodes.length)]!
        const stream = next() < 0.6
        const body = {
          model: next() < 0.5 ? 'quick' : 'slow',
          stream,
          messages: [{ role: 'user', content: 'word '.repeat(1 + Math.floor(next() * 50)) }],
        }
        // Whatever happens to it, a request that does not come whole is the client's to repeat.
        const cost = await gateway
          .chat(body, { authorization: `Bearer ${key}`, 'x-request-id': id })
          .then(response => costOf(response, stream))
          .catch(() => undefined)
        if (cost === undefined) {
          await pause()
          continue
        }
        whole.set(id, cost)
        answers.emit('whole')
      }
    }
    const clients = Promise.all(Array.from({ length: CLIENTS }, client))
    const some = async () => {
      for (let left = BETWEEN.from + next() * (BETWEEN.to - BETWEEN.from); left > 0; left--)
        await once(answers, 'whole')
    }

    const dead: number[] = []
    const killNode = async () => {
      const { gateway } = nodes[Math.floor(next() * nodes.length)]!
      dead.push(gateway.pid)
      await gateway.kill('SIGKILL')
      await gateway.restart()
    }
    const events: Record<string, () => Promise<void>> = {
      async 'crashed server'() {
        await server.crash()
        await server.start()
      },
      async 'node cut off'() {
        const { proxy } = nodes[Math.floor(next() * nodes.length)]!
        proxy.hang()
        await some()
        proxy.resume()
      },
      async 'node without connections'() {
        const { proxy } = nodes[Math.floor(next() * nodes.length)]!
        await proxy.refuse()
        await some()
        await proxy.listen()
      },
    }
    const failOver = async () => {
      const standby = await server.standby()
      await some()
      // The old one takes no more: what it answers now nobody else would know.
      for (const { proxy } of nodes) await proxy.refuse()
      await server.crash()
      await standby.run('SELECT pg_promote()')
      await standby.run('ALTER SYSTEM RESET synchronous_standby_names')
      await standby.run('SELECT pg_reload_conf()')
      server = standby
      for (const { proxy } of nodes) {
        proxy.lead(server.port)
        await proxy.listen()
      }
    }
    const names = Object.keys(events)
    const counts: Record<string, number> = { kills: 0, 'failed over': 1 }
    for (let n = 1; n <= KILLS; n++) {
      await some()
      await killNode()
      counts.kills!++
      await some()
      const name = names[n % names.length]!
      await events[name]!()
      counts[name] = (counts[name] ?? 0) + 1
    }
    await some()
    await failOver()
    await some()
    over = true
    await clients

    // Nodes that are gone count as silent at once. Once all rows are entered, holds whose release failed are expired.
    await rows(`UPDATE nodes SET seen_at = 0 WHERE pid IN (${dead.join(', ')})`)
    const isSpooled = ({ gateway }: (typeof nodes)[0]) =>
      readdirSync(join(gateway.dir, 'data')).some(name => name.startsWith('spool-'))
    while (nodes.some(isSpooled)) await rows('SELECT pg_sleep(0.2)')
    await rows('UPDATE holds SET expires_at = 0')
    while ((await rows('SELECT 1 FROM holds')).length > 0) await rows('SELECT pg_sleep(0.5)')
    const found = await rows<Row>(`
    SELECT request_id, outcome, charged,
      (SELECT -coalesce(sum(amount), 0) FROM ledger l WHERE kind = 'charge'
        AND l.request_id IN (r.id, r.id || ':rest')) AS entries
    FROM requests r`)
    const kept = grouped(found)
    const wrong = { lost: [] as unknown[], doubled: [] as unknown[], differs: [] as unknown[] }
    for (const [id, cost] of whole) {
      const charged = (kept.get(id) ?? []).filter(({ outcome }) => outcome !== 'orphaned')
      if (charged.length !== 1 || Number(charged[0]!.charged) !== cost)
        wrong.lost.push({ id, cost, rows: kept.get(id) })
    }
    for (const [id, all] of kept) if (all.filter(row => row.charged !== '0').length > 1) wrong.doubled.push({ id, all })
    for (const row of found) if (row.entries !== row.charged) wrong.differs.push(row)
    t.strictSame(wrong, { lost: [], doubled: [], differs: [] })
    t.strictSame(await command('usage.check'), { differences: [] })
    t.comment(JSON.stringify({ ...counts, sent, whole: whole.size, rows: found.length }))
    figure(t, { id: 'NP-03', what: 'kills of nodes on PostgreSQL', value: counts.kills!, unit: '' })
    figure(t, {
      id: 'NP-03',
      what: 'whole answers without their charge',
      value: wrong.lost.length,
      unit: '',
      atMost: 0,
    })
  },
)

function grouped(rows: readonly Row[]): Map<string, Row[]> {
  const groups = new Map<string, Row[]>()
  for (const row of rows) groups.set(row.request_id, [...(groups.get(row.request_id) ?? []), row])
  return groups
}
