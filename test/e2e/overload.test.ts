/** More than there is room for: who is served, who waits, who is sent away, and that others do not feel it. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { groupsOf, openBooks } from '../helpers/books.ts'
import { timing } from '../helpers/figure.ts'
import { type Gateway, startGateway, testMapping } from '../helpers/gateway.ts'
import { isErrorBody, metric } from '../helpers/invariants.ts'
import { inspected, memory } from '../helpers/memory.ts'
import { raw } from '../helpers/raw.ts'
import { startUpstream } from '../helpers/upstream.ts'

const MIB = 1024 * 1024
const IN_FLIGHT = 50
const QUEUE = 20
const CONCURRENCY = 10
const WAIT_MS = 200
const STALL_MS = 700
/** For bodies, each of which is kept twice: as it was read and as it was sent. An eighth is for small ones alone. */
const BUFFER_MIB = 96
/** What one organization gets of the rest while no other has large bodies. */
const SHARE_MIB = ((BUFFER_MIB * 7) / 8) * 0.75

const upstream = await startUpstream(t)
const serve = (id: string, models: string[], more: object = {}) => ({
  [id]: {
    base_url: upstream.url(id),
    models: models.map(model => ({ ...testMapping, model, id: `${id}-1` })),
    ...more,
  },
})
const gateway = await startGateway(t, {
  providers: {
    ...serve('a', ['test']),
    ...serve('narrow', ['narrow', 'both'], { concurrency: CONCURRENCY, priority: 2 }),
    ...serve('wide', ['wide', 'both']),
    ...serve('large', ['large']),
  },
  config: {
    server: { max_connections: 300, buffer: `${BUFFER_MIB}MiB`, write_stall: `${STALL_MS}ms` },
    // A machine that is busy with other things is not judged here.
    endpoints: {
      chat: { admission: { in_flight: IN_FLIGHT, queue: QUEUE, wait: '1h', lag: '60s' } },
      messages: { admission: { in_flight: 2, wait: `${WAIT_MS}ms`, lag: '60s' } },
    },
  },
  env: inspected,
})
const books = openBooks(t, gateway)

const group = groupsOf(t, {
  gateway,
  upstream,
  books,
  after: async t => t.equal(metric(await gateway.metrics(), 'gateway_requests_waiting'), 0, 'INV-2: nobody waits'),
})

const ask = (model = 'test', headers = {}, signal?: AbortSignal) =>
  gateway.chat({ model, messages: [{ role: 'user', content: 'Hi' }] }, headers, signal)
const gauge = async (name: 'in_flight' | 'waiting') => metric(await gateway.metrics(), `gateway_requests_${name}`)!
async function until(name: 'in_flight' | 'waiting', count: number): Promise<void> {
  while ((await gauge(name)) !== count) await sleep(5)
}

async function checkOverloaded(t: Test, response: Response): Promise<void> {
  t.equal(response.status, 529)
  t.match(response.headers.get('retry-after'), /^[1-3]$/)
  const body = (await response.json()) as object
  t.match(body, { error: { type: 'overloaded', code: 'overloaded' } })
  t.ok(isErrorBody(body))
}

group('OB-04 so many are served, so many wait, and the rest are sent away at once', async t => {
  await upstream.script('a', [{ hold: 0 }])
  const answers = Array.from({ length: IN_FLIGHT + QUEUE }, () => ask())
  await upstream.record('a', { requests: IN_FLIGHT })
  await until('waiting', QUEUE)
  let value = Number.POSITIVE_INFINITY
  // None of those that wait goes on before all of these are refused.
  for (let n = 0; n < 10; n++) {
    const start = performance.now()
    await checkOverloaded(t, await ask())
    value = Math.min(value, performance.now() - start)
  }
  timing(t, { id: 'OB-04', what: 'a refusal', value, unit: 'ms', atMost: 20 })
  t.equal(await gauge('in_flight'), IN_FLIGHT)
  t.equal((await upstream.record('a')).length, IN_FLIGHT)
  await upstream.script('a', [{}])
  await upstream.release('a')
  const statuses = (await Promise.all(answers)).map(({ status }) => status)
  t.equal(statuses.filter(status => status === 200).length, IN_FLIGHT + QUEUE, 'who waited is served')
  await Promise.all((await Promise.all(answers)).map(answer => answer.text()))
  t.equal((await upstream.record('a')).length, IN_FLIGHT + QUEUE)
})

const message = (headers = {}, signal?: AbortSignal) => {
  const body = { model: 'test', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] }
  return gateway.post('/v1/messages', body, headers, signal)
}

group('OB-05, OB-06 who leaves the queue, or waits too long, costs nothing and reaches no provider', async t => {
  await upstream.script('a', [{ hold: 0 }])
  const served = [message(), message()]
  await upstream.record('a', { requests: 2 })
  const client = new AbortController()
  const leaving = message({ 'x-request-id': 'leaving' }, client.signal)
  await until('waiting', 1)
  client.abort()
  await t.rejects(leaving)
  await until('waiting', 0)
  const start = performance.now()
  const refused = await message({ 'x-request-id': 'waiting' })
  t.ok(performance.now() - start >= WAIT_MS - 5, 'after the time that is allowed')
  t.equal(refused.status, 529)
  t.match(refused.headers.get('retry-after'), /^[1-3]$/)
  t.match(await refused.json(), { type: 'error', error: { type: 'overloaded_error' } }, 'in the words of its client')
  t.equal((await gateway.get('/')).status, 200, 'OB-13 health is not asked to wait')
  t.equal((await gateway.get('/v1/models')).status, 200)
  t.equal((await upstream.record('a')).length, 2)
  await upstream.release('a')
  for (const answer of served) await (await answer).text()
  const rows = books.prepare("SELECT request_id FROM requests WHERE request_id IN ('leaving', 'waiting') AND cost > 0")
  t.strictSame(rows.all(), [])
})

/** A key of an organization of its own, as the accounts' commands will make it. */
async function keyOf(name: string): Promise<{ authorization: string }> {
  const writer = openBooks(t, gateway, { writable: true })
  const made = await gateway.admin('POST', '/commands/keys.create', { project: 'default', name })
  const { id, key } = (await made.json()) as { id: string; key: string }
  const columns = (table: string) =>
    (writer.pragma(`table_info(${table})`) as { name: string }[]).map(column => column.name)
  const copy = (table: string, changes: Record<string, string>) => {
    const names = columns(table)
    const values = names.map(column => (column in changes ? `'${changes[column]}'` : column)).join()
    writer.exec(`INSERT INTO ${table} (${names}) SELECT ${values} FROM ${table} WHERE name = 'default' LIMIT 1`)
  }
  copy('organizations', { id: `org-${name}`, name })
  copy('projects', { id: `project-${name}`, org_id: `org-${name}`, name })
  writer.prepare('UPDATE keys SET project_id = ? WHERE id = ?').run(`project-${name}`, id)
  return { authorization: `Bearer ${key}` }
}

group('OB-07 an organization that floods takes its share, and does not keep another one waiting', async t => {
  const quiet = await keyOf('quiet')
  const share = Math.floor(IN_FLIGHT / 4)
  t.equal((await ask('wide', quiet)).status, 200)
  await upstream.script('a', [{ hold: 0 }])
  const flood = Array.from({ length: 150 }, () => ask())
  await upstream.record('a', { requests: share })
  const waits = Math.floor(QUEUE / 4)
  await until('waiting', waits)
  for (let n = 0; n < 20; n++) {
    const response = await ask('wide', quiet)
    t.equal(response.status, 200)
    await response.text()
  }
  t.equal((await upstream.record('a')).length, share)
  t.strictSame([await gauge('in_flight'), await gauge('waiting')], [share, waits], 'places stay free for others')
  await upstream.script('a', [{}])
  await upstream.release('a')
  const statuses = (await Promise.all(flood)).map(({ status }) => status)
  t.equal(statuses.filter(status => status === 200).length, share + waits)
  t.equal(statuses.filter(status => status === 529).length, 150 - share - waits)
  for (const answer of flood) await (await answer).text()
})

group('OB-08 a provider that stalls takes its own places, and no others', async t => {
  await upstream.script('narrow', [{ hold: 0 }])
  const stalled = Array.from({ length: CONCURRENCY }, () => ask('narrow'))
  await upstream.record('narrow', { requests: CONCURRENCY })
  await checkOverloaded(t, await ask('narrow'))
  const other = await ask('wide')
  t.equal(other.status, 200)
  await other.text()
  const both = await ask('both')
  t.equal(both.status, 200, 'another provider of the same model takes what this one cannot')
  const { metadata } = (await both.json()) as { metadata: { used_provider: string; routing: object[] } }
  t.equal(metadata.used_provider, 'wide')
  t.equal(metadata.routing.length, 1, 'what was not sent is no attempt')
  t.equal((await upstream.record('narrow')).length, CONCURRENCY)
  await upstream.release('narrow')
  for (const answer of stalled) t.equal((await answer).status, 200)
  for (const answer of stalled) await (await answer).text()
  await upstream.script('narrow', [{}])
  const again = await ask('narrow')
  t.equal(again.status, 200, 'its places are free again')
  await again.text()
})

group('OB-09 bodies take a bounded room, and who finds none is sent away before a byte is read', async t => {
  const body = `{"model":"large","messages":[{"role":"user","content":"${'x'.repeat(15 * MIB)}"}]}`
  await upstream.script('large', [{ hold: 0, text: 'ok' }])
  const before = await memory(gateway)
  const served = Array.from({ length: 2 }, () => gateway.post('/v1/chat/completions', body))
  await upstream.record('large', { requests: 2 })
  const grown = (await memory(gateway)).rss - before.rss
  t.comment(`two bodies of 15 MiB: ${Math.round(grown)} MiB`)
  t.ok(grown < 2 * SHARE_MIB + 32, 'with what is left of reading them, twice the share at most')
  const head = ['POST /v1/chat/completions HTTP/1.1', 'Host: g', `Authorization: Bearer ${gateway.key}`]
  head.push('Content-Type: application/json')
  const announced = [...head, `Content-Length: ${body.length}`, '', ''].join('\r\n')
  const refused = await raw(gateway.port, announced, { responses: 1 })
  t.equal(refused.status, 529, 'announced, and not sent')
  t.equal(refused.headers.connection, 'close')
  const chunk = `${(8 * MIB).toString(16)}\r\n${'x'.repeat(8 * MIB)}\r\n`
  const inPieces = await raw(gateway.port, [[...head, 'Transfer-Encoding: chunked', '', ''].join('\r\n'), chunk], {
    responses: 1,
  })
  t.equal(inPieces.status, 529, 'not announced')
  const small = await ask('wide')
  t.equal(small.status, 200)
  await small.text()
  await upstream.release('large')
  for (const answer of served) await (await answer).text()
  await upstream.script('large', [{ text: 'ok' }])
  const again = await gateway.post('/v1/chat/completions', body)
  t.equal(again.status, 200, 'the room is given back')
  await again.text()
})

group('OB-09 bodies that are declared large and drip take no memory from others', async t => {
  const other = await keyOf('other')
  const drips = Array.from({ length: 4 }, () => {
    const socket = connect(gateway.port, '127.0.0.1').on('error', () => undefined)
    const head = ['POST /v1/chat/completions HTTP/1.1', 'Host: g', `Authorization: Bearer ${gateway.key}`]
    head.push('Content-Type: application/json', `Content-Length: ${20 * MIB}`, '', '{"model":"large"')
    socket.write(head.join('\r\n'))
    return socket
  })
  await until('in_flight', drips.length)
  await upstream.script('large', [{ text: 'ok' }])
  const body = `{"model":"large","messages":[{"role":"user","content":"${'x'.repeat(10 * MIB)}"}]}`
  for (const sent of [body, body.replace(/x+/, 'x')]) {
    const answer = await gateway.post('/v1/chat/completions', sent, other)
    t.equal(answer.status, 200, `a body of ${sent.length} bytes beside them`)
    await answer.text()
  }
  for (const socket of drips) socket.destroy()
  await until('in_flight', 0)
})

group(
  'OB-01 a client that takes nothing for too long is cut off, its provider is told, and what was sent is paid',
  async t => {
    const text = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(16_000) } }] })}\n\n`
    await upstream.script('large', [{ raw: [{ text, times: 1e9 }] }])
    const body = JSON.stringify({ model: 'large', stream: true, messages: [{ role: 'user', content: 'Hi' }] })
    const head = ['POST /v1/chat/completions HTTP/1.1', 'Host: g', `Authorization: Bearer ${gateway.key}`]
    head.push('Content-Type: application/json', 'x-request-id: stalled', `Content-Length: ${body.length}`, '', body)
    const socket = connect(gateway.port, '127.0.0.1')
    const start = performance.now()
    socket.on('error', () => undefined).write(head.join('\r\n'))
    await once(socket, 'readable')
    const [entry] = await upstream.record('large', { ended: 1 })
    const ms = performance.now() - start
    t.equal(entry!.outcome, 'aborted')
    t.ok(ms > STALL_MS - 10, `after ${Math.round(ms)} ms`)
    timing(t, {
      id: 'OB-01',
      what: 'a client that stalls is cut off after',
      value: ms,
      unit: 'ms',
      atMost: STALL_MS + 2000,
    })
    await until('in_flight', 0)
    const row = books.prepare("SELECT outcome, cost > 0 AS paid FROM requests WHERE request_id = 'stalled'").get()
    t.strictSame(row, { outcome: 'aborted', paid: 1 })
    socket.destroy()
  },
)

group('OB-03 connections above the limit are closed at once, and the admin listener still answers', async t => {
  const sockets: Socket[] = []
  const open = () =>
    new Promise<boolean>(resolve => {
      const socket = connect(gateway.port, '127.0.0.1')
      sockets.push(socket)
      socket.on('error', () => resolve(false))
      socket.once('close', () => resolve(false))
      // One that stays is answered.
      socket.once('data', () => resolve(true))
      socket.write('GET /nowhere HTTP/1.1\r\nHost: g\r\n\r\n')
    })
  const opened = await Promise.all(Array.from({ length: 350 }, open))
  const kept = opened.filter(Boolean).length
  t.ok(kept <= 300 && kept > 50, `${kept} of 350 stay, beside those that were there`)
  t.equal((await gateway.admin('GET', '/ready')).status, 200)
  for (const socket of sockets) socket.destroy()
  await Promise.all(sockets.map(socket => socket.closed || once(socket, 'close')))
  t.equal(await served(gateway), 200, 'then there is room again')
})

async function served({ url }: Gateway): Promise<number> {
  for (const start = performance.now(); performance.now() - start < 30_000; ) {
    const response = await fetch(url).catch(() => undefined)
    if (response) return response.status
    await sleep(20)
  }
  return 0
}
