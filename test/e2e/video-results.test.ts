/** Results of videos over the whole gateway: whose headers reach whom, what a slow reader holds up, and who may read. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { FILM, type FilmStudio, filmStudio } from '../helpers/film-studio.ts'
import { type Gateway, startGateway, upstreamSecret } from '../helpers/gateway.ts'

const POLL_MS = 20
const LARGE = 96 * 1024 * 1024
/** Bytes that sockets hold on their way, with room. */
const IN_SOCKETS = 32 * 1024 * 1024
const CHUNK = Buffer.alloc(64 * 1024, 7)
const HEAD = Buffer.concat([FILM, CHUNK.subarray(FILM.length)])

const model = (id: string) => ({
  ...{ id, name: id, family: 'test', input: ['text'], output: ['video'], stability: 'stable' },
})
const models = (id: string) => [{ model: id, id: 'film-1', pricing: { per_second: { default: '0.10' } } }]

/** Jobs of ByteDance's shape: done at once, with a result at `result`. */
async function taskServer(t: { teardown(end: () => unknown): void }) {
  const tasks = { url: '', result: '', headers: [] as IncomingMessage['headers'][] }
  const server = createServer((req, res) => {
    tasks.headers.push(req.headers)
    req.resume()
    const done = { id: 'cgt-1', status: 'succeeded', content: { video_url: tasks.result } }
    res
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify(req.method === 'POST' ? { id: 'cgt-1' } : done))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  tasks.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return tasks
}

/** Another host, which a provider's addresses name: a film, a redirect to the provider, and one film that is large. */
async function filmHost(t: { teardown(end: () => unknown): void }) {
  const host = { origin: '', back: '', headers: [] as IncomingMessage['headers'][], sent: 0, closed: [] as boolean[] }
  const server = createServer((req, res) => {
    host.headers.push(req.headers)
    if (req.url === '/back') return void res.writeHead(302, { location: host.back }).end()
    if (req.url !== '/large') return void res.setHeader('content-type', 'video/mp4').end(FILM)
    res.writeHead(200, { 'content-type': 'video/mp4', 'content-length': LARGE })
    res.on('close', () => host.closed.push(res.writableFinished))
    host.sent = 0
    const pieces = function* () {
      for (; host.sent < LARGE; host.sent += CHUNK.length) yield host.sent === 0 ? HEAD : CHUNK
    }
    Readable.from(pieces(), { highWaterMark: 1 }).pipe(res)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  host.origin = `http://films.example:${(server.address() as AddressInfo).port}`
  return host
}

let studio: FilmStudio
let tasks: Awaited<ReturnType<typeof taskServer>>
let films: Awaited<ReturnType<typeof filmHost>>
let proxying: Gateway
let keeping: Gateway
t.before(async () => {
  studio = await filmStudio(t)
  studio.script = ['completed']
  tasks = await taskServer(t)
  films = await filmHost(t)
  const start = (results: 'proxy' | 'keep') =>
    startGateway(t, {
      providers: {
        acme: { base_url: studio.url, wires: { videos: 'openai.videos' }, models: models('film') },
        byte: { base_url: tasks.url, wires: { videos: 'bytedance.videos' }, models: models('task') },
      },
      models: [model('film'), model('task')],
      config: {
        server: { fetch_from: [films.origin], drain: '500ms' },
        endpoints: { 'video-reads': { ratelimit: { rpm: 100_000 } } },
        jobs: { poll: `${POLL_MS}ms`, poll_max: '40ms', results },
      },
      env: {
        NODE_OPTIONS: `--require ${join(import.meta.dirname, '../helpers/names.cjs')}`,
        NAMES: JSON.stringify({ 'films.example': [['127.0.0.1']] }),
      },
    })
  proxying = await start('proxy')
  keeping = await start('keep')
})

interface Video {
  readonly id: string
  readonly status: string
  readonly content?: readonly { readonly url: string }[]
}
async function create(gateway: Gateway, model: string, headers = {}): Promise<string> {
  const answer = await gateway.post('/v1/videos', { model, prompt: 'a cat' }, headers)
  return ((await answer.json()) as Video).id
}
async function ended(gateway: Gateway, id: string, headers = {}): Promise<Video> {
  for (;;) {
    const job = (await (await gateway.get(`/v1/videos/${id}`, headers)).json()) as Video
    if (job.status !== 'queued' && job.status !== 'in_progress') return job
    await setTimeout(POLL_MS)
  }
}
const make = async (gateway: Gateway, model: string) => ended(gateway, await create(gateway, model))
const command = async <T>(name: string, args: object) =>
  (await (await proxying.admin('POST', `/commands/${name}`, args)).json()) as T

t.test('J9 a credential goes to its provider alone, and no result of a private address is read', async t => {
  tasks.result = `${films.origin}/film`
  tasks.headers.length = 0
  const { id } = await make(proxying, 'task')
  t.same(
    tasks.headers.map(headers => JSON.stringify(headers).includes(upstreamSecret)),
    [true, true],
  )
  films.headers.length = 0
  const answer = await proxying.get(`/v1/videos/${id}/content`, { cookie: 'a=b', 'x-own': 'c' })
  t.same(Buffer.from(await answer.arrayBuffer()), FILM)
  t.same(Object.keys(films.headers[0]!).sort(), ['accept', 'accept-encoding', 'connection', 'host'])
  for (const address of ['http://169.254.169.254/latest/meta-data', 'https://127.1/', 'https://[::ffff:10.0.0.1]/']) {
    tasks.result = address
    const other = await make(proxying, 'task')
    const answer = await proxying.get(`/v1/videos/${other.id}/content`)
    t.equal(answer.status, 502, address)
    t.notMatch(await answer.text(), /169\.254|127\.|10\.0/, address)
    const kept = await make(keeping, 'task')
    t.match(kept, { status: 'failed', error: { code: 'upstream_error' } }, address)
    t.notMatch(JSON.stringify(kept), /169\.254|127\.|10\.0/, address)
  }
})

t.test('J10 a part of a kept result and of a proxied one is answered alike', async t => {
  const answers = await Promise.all(
    [proxying, keeping].map(async gateway => {
      const { id } = await make(gateway, 'film')
      const read = async (headers: Record<string, string>) => {
        const answer = await gateway.get(`/v1/videos/${id}/content`, headers)
        const bytes = Buffer.from(await answer.arrayBuffer())
        const names = ['content-range', 'content-length', 'accept-ranges', 'cache-control', 'content-disposition']
        const shown = names.map(name => answer.headers.get(name))
        const body = answer.status === 416 ? '' : createHash('sha256').update(bytes).digest('hex')
        return {
          status: answer.status,
          type: answer.headers.get('content-type'),
          shown,
          body,
          etag: answer.headers.get('etag'),
        }
      }
      const { etag } = await read({})
      const all = []
      for (const headers of [
        {},
        { range: 'bytes=0-0' },
        { range: 'bytes=-7' },
        { range: 'bytes=4000-' },
        { range: 'bytes=0-1,4-5' },
        { range: 'bytes=99999-' },
        { range: 'bytes=0-9', 'if-range': etag! },
        { range: 'bytes=0-9', 'if-range': '"another"' },
        { range: 'bytes=0-9', 'if-range': `W/${etag}` },
      ]) {
        const { etag: _, ...answer } = await read(headers)
        all.push(answer)
      }
      return all
    }),
  )
  t.same(
    answers[0]?.map(({ status }) => status),
    [200, 206, 206, 206, 200, 416, 206, 200, 200],
  )
  t.same(answers[0], answers[1])
})

t.test('J10 a reader that is slow holds up no more than sockets do, and one that leaves ends the read', async t => {
  tasks.result = `${films.origin}/large`
  for (const gateway of [proxying, keeping]) {
    const job = await make(gateway, 'task')
    const says = gateway === keeping ? 'kept' : 'proxied'
    const closed = films.closed.length
    const url = new URL(job.content![0]!.url)
    await gateway.get(`/v1/videos/${job.id}`)
    const rss = await gateway.rss()
    const files = await gateway.descriptors()
    const req = get(`${gateway.url}${url.pathname}${url.search}`)
    req.on('error', () => undefined)
    const [res] = (await once(req, 'response')) as [IncomingMessage]
    await once(res, 'readable')
    // Nothing more is read, while the gateway has turns for others.
    for (let turns = 0; turns < 50; turns++) await (await gateway.get(`/v1/videos/${job.id}`)).text()
    t.ok((await gateway.rss()) - rss < IN_SOCKETS, `${says}: memory is bounded`)
    if (gateway === proxying) t.ok(films.sent < IN_SOCKETS, `${films.sent} bytes were sent`)
    res.destroy()
    if (gateway === proxying) {
      while (films.closed.length === closed) await setTimeout(POLL_MS)
      t.same(films.closed.slice(closed), [false], 'the provider is not read to its end')
    }
    while ((await gateway.descriptors()) > files) await setTimeout(POLL_MS)
  }
})

t.test('J15 a key that is revoked reads nothing, and of an archived project nothing is read', async t => {
  const [project] = await Promise.all([
    command<{ id: string }>('projects.create', { organization: 'default', name: 'old' }),
  ])
  const { id: keyId, key } = await command<{ id: string; key: string }>('keys.create', { project: 'old', name: 'k' })
  const { key: spare } = await command<{ key: string }>('keys.create', { project: 'old', name: 'spare' })
  const own = { authorization: `Bearer ${key}` }
  const other = { authorization: `Bearer ${spare}` }
  const { id, content } = await ended(proxying, await create(proxying, 'film', own), own)
  const path = new URL(content![0]!.url).pathname
  const statuses = (headers: Record<string, string>) =>
    Promise.all(
      ['/v1/videos', `/v1/videos/${id}`, `/v1/videos/${id}/content`, path].map(
        async path => (await proxying.get(path, headers)).status,
      ),
    )
  t.same(await statuses(own), [200, 200, 200, 200])
  t.same((await statuses({})).slice(1), [404, 404, 404], 'a key of another project')
  await command('keys.revoke', { id: keyId })
  t.same(await statuses(own), [401, 401, 401, 401])
  t.same(await statuses(other), [200, 200, 200, 200])
  await command('projects.archive', { project: project!.id })
  t.same(await statuses(other), [410, 410, 410, 410])
})

t.test(
  'J16 a gateway that is stopped during polls and reads ends well, and its jobs go on at the next start',
  async t => {
    tasks.result = `${films.origin}/large`
    const { content } = await make(proxying, 'task')
    const url = new URL(content![0]!.url)
    let release = () => undefined as unknown
    studio.held.poll = new Promise<void>(resolve => {
      release = resolve
    })
    const before = studio.polls.size
    const ids = [await create(proxying, 'film'), await create(proxying, 'film')]
    await studio.until(() => studio.polls.size === before + ids.length)
    const reader = get(`${proxying.url}${url.pathname}${url.search}`)
    reader.on('error', () => undefined)
    const [res] = (await once(reader, 'response')) as [IncomingMessage]
    res.on('error', () => undefined)
    const exit = proxying.kill('SIGTERM')
    release()
    delete studio.held.poll
    t.equal(await exit, 0)
    await proxying.restart()
    for (const id of ids) t.match(await ended(proxying, id), { status: 'completed' })
    t.same(await command('usage.check', {}), { differences: [] })
  },
)
