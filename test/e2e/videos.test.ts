/** Videos over the whole gateway: jobs that outlive their requests, their money, their results, and who is told. */

import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import OpenAI from 'openai'
import { Webhook } from 'standardwebhooks'
import t from 'tap'
import { Child } from '../helpers/child.ts'
import { commandsOf } from '../helpers/commands.ts'
import { FILM, type FilmStudio, filmStudio } from '../helpers/film-studio.ts'
import { type Gateway, startGateway } from '../helpers/gateway.ts'
import { fileServer } from '../helpers/listeners.ts'

const SECRET = `whsec_${Buffer.from('a secret of thirty-two bytes....').toString('base64')}`

const POLL_MS = 20

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

interface Heard {
  readonly headers: Record<string, string>
  readonly body: string
}
/** Answers with these statuses one after another, then 204. */
async function listener(statuses: number[]) {
  const heard: Heard[] = []
  let wake = (): void => undefined
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      heard.push({ headers: req.headers as Record<string, string>, body: Buffer.concat(chunks).toString('utf8') })
      res.writeHead(statuses.shift() ?? 204)
      res.end()
      wake()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const until = async (count: number) => {
    while (heard.length < count)
      await new Promise<void>(resolve => {
        wake = resolve
      })
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard, until }
}

const film = (studio: FilmStudio, extra: object = {}) => ({
  base_url: studio.url,
  wires: { videos: 'openai.videos' },
  models: [
    {
      model: 'film',
      id: 'film-1',
      pricing: { per_second: { '720p': '0.10', '720p/silent': '0.05', default: '0.50' } },
      video_sizes: ['1280x720', '720x1280'],
      video_seconds: [4, 8],
      supports: ['video_audio', 'video_without_audio', 'image_to_video', 'reference_images'],
      ...extra,
    },
  ],
})
const model = {
  id: 'film',
  name: 'film',
  family: 'test',
  input: ['text', 'image'],
  output: ['video'],
  stability: 'stable',
}

let studio: FilmStudio
let gateway: Gateway
let imageUrl: string
let hook: Awaited<ReturnType<typeof listener>>
t.before(async () => {
  studio = await filmStudio(t)
  hook = await listener([500, 500])
  const files = `http://images.example:${await fileServer(t, (_req, res) => void res.end(PNG))}`
  imageUrl = `${files}/a.png`
  gateway = await startGateway(t, {
    providers: { acme: film(studio) },
    models: [model],
    config: {
      server: { fetch_from: [files] },
      jobs: { poll: `${POLL_MS}ms`, poll_max: '40ms', callback_retry: '20ms', callback_to: [hook.url] },
    },
    env: {
      NODE_OPTIONS: `--require ${join(import.meta.dirname, '../helpers/names.cjs')}`,
      NAMES: JSON.stringify({ 'images.example': [['127.0.0.1']] }),
    },
  })
})
t.beforeEach(() => {
  Object.assign(studio, { script: ['queued', 'in_progress', 'completed'], create: 'ok', error: null })
  studio.creates.length = 0
})

interface Video {
  id: string
  status: string
  progress: number | null
  error: { code: string; details?: object } | null
  content?: { url: string }[]
  usage?: { cost: number }
}
const create = (body: object = {}, headers: Record<string, string> = {}) =>
  gateway.post('/v1/videos', { model: 'film', prompt: 'a cat', ...body }, headers)
const jobOf = async (answer: Response) => (await answer.json()) as Video
const read = async (id: string) => jobOf(await gateway.get(`/v1/videos/${id}`))
const PENDING = ['queued', 'in_progress']
/** Reads a job until it has ended, at the pace of its polls: faster reads pass the rate limit. */
async function ended(id: string, get: (path: string) => Promise<Response> = gateway.get): Promise<Video> {
  for (;;) {
    const answer = await get(`/v1/videos/${id}`)
    const job = await jobOf(answer)
    if (!PENDING.includes(job.status)) return job
    await setTimeout(POLL_MS)
  }
}
const credits = async () => {
  const answer = await gateway.admin('POST', '/commands/credits.show', { organization: 'default' })
  return (await answer.json()) as { held: string; used: string }
}
const differences = async () => (await gateway.admin('POST', '/commands/usage.check', {})).json()

t.test(
  'J1, J2 a job is held for, polled to its end, charged once, and its content is what the provider has',
  async t => {
    const before = await credits()
    let release = () => undefined as unknown
    studio.held.poll = new Promise<void>(resolve => {
      release = resolve
    })
    const made = await jobOf(await create({}, { 'x-gateway-tags': 'team=film' }))
    t.match(made, { object: 'video', status: 'queued', seconds: '4', size: '1280x720', prompt: null, model: 'film' })
    t.match(await credits(), { held: '0.4', used: before.used })
    release()
    delete studio.held.poll
    const job = await ended(made.id)
    t.match(job, { status: 'completed', progress: 100, usage: { cost: 0.4 } })
    t.match(await credits(), { held: '0', used: String(Number(before.used) + 0.4) })
    const listed = await gateway.admin('POST', '/commands/requests.list', { tag: 'team=film' })
    t.match(await listed.json(), { rows: [{ status: 200, tags: { team: 'film' }, cost: '0.4' }] })
    const whole = await gateway.get(`/v1/videos/${made.id}/content`)
    t.same(Buffer.from(await whole.arrayBuffer()), FILM)
    t.match(whole.headers.get('content-type'), 'video/mp4')
    t.same(await differences(), { differences: [] })
  },
)

t.test('J11, SI-14, M20, M21 a signed address plays without a key, in ranges, and no other token does', async t => {
  const job = await ended((await jobOf(await create())).id)
  const url = new URL(job.content![0]!.url)
  const get = (range?: string, token = url.searchParams.get('token')!, method = 'GET') =>
    fetch(`${gateway.url}${url.pathname}?token=${token}`, { method, ...(range && { headers: { range } }) })
  const [, claims = ''] = url.searchParams.get('token')!.split('.')
  for (const [range, status, span] of [
    ['bytes=0-0', 206, [0, 1]],
    ['bytes=-1', 206, [FILM.length - 1, FILM.length]],
    ['bytes=5-', 206, [5, FILM.length]],
    ['bytes=9-1', 200, [0, FILM.length]],
    ['bytes=0-1,4-5', 200, [0, FILM.length]],
    ['lines=1', 200, [0, FILM.length]],
  ] as const) {
    const answer = await get(range)
    t.equal(answer.status, status, range)
    t.same(Buffer.from(await answer.arrayBuffer()), FILM.subarray(...span), range)
  }
  const head = await get(undefined, undefined, 'HEAD')
  t.equal(head.headers.get('content-length'), String(FILM.length))
  const none = Buffer.from('{"alg":"none"}').toString('base64url')
  const token = url.searchParams.get('token')!
  for (const wrong of [`${none}.${claims}.`, `${token}x`, `${token}.x`, 'x', `${token.slice(0, -1)}`]) {
    const answer = await get(undefined, wrong)
    t.equal(answer.status, 401, wrong)
    t.match(await answer.json(), { error: { code: 'invalid_token' } })
  }
  t.equal((await get(undefined, '')).status, 400)
  t.equal((await fetch(`${gateway.url}${url.pathname}`)).status, 401)
  t.equal((await gateway.get(`/v1/videos/${job.id}/content?variant=thumbnail`)).status, 400)
  const deleted = await fetch(`${gateway.url}/v1/videos/${job.id}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${gateway.key}` },
  })
  t.match(await deleted.json(), { id: job.id, object: 'video.deleted', deleted: true })
  t.equal((await get()).status, 404)
  t.equal((await gateway.get(`/v1/videos/${job.id}`)).status, 404)
})

t.test('a signed address ends with the key that asked for its video, and with zero data retention', async t => {
  const command = commandsOf(gateway)
  const { id: organization } = await command<{ id: string }>('orgs.create', { name: 'short-lived', account: 'open' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'films' })
  const made = async () => {
    const { id, key } = await command<{ id: string; key: string }>('keys.create', { project })
    const headers = { authorization: `Bearer ${key}` }
    const job = await jobOf(await create({}, headers))
    const { content } = await ended(job.id, path => fetch(`${gateway.url}${path}`, { headers }))
    const { pathname, search } = new URL(content![0]!.url)
    const status = async () => {
      const answer = await fetch(`${gateway.url}${pathname}${search}`)
      await answer.arrayBuffer()
      return answer.status
    }
    return { id, status }
  }
  const [one, two] = [await made(), await made()]
  t.strictSame([await one.status(), await two.status()], [200, 200])
  await command('keys.revoke', { id: one.id })
  t.strictSame([await one.status(), await two.status()], [404, 200], 'the key is revoked')
  await command('compliance.set', { organization, noLogging: true })
  t.equal(await two.status(), 404, 'nothing may be kept')
})

t.test("an end user reaches no video of its project's, nor of another end user", async t => {
  const command = commandsOf(gateway)
  const { id: organization } = await command<{ id: string }>('orgs.create', { name: 'audience', account: 'open' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'films' })
  const secretOf = async (kind: string) => (await command<{ key: string }>('keys.create', { project, kind })).key
  const [key, made] = [await secretOf('key'), await secretOf('session')]
  const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` })
  const begun = await gateway.post('/v1/sessions', { customer: 'ada' }, bearer(key))
  const { sessionToken: ada } = (await begun.json()) as { sessionToken: string }
  const callers = { key, made, ada }
  const status = async (secret: string, path: string, method = 'GET') => {
    const answer = await fetch(`${gateway.url}${path}`, { method, headers: bearer(secret) })
    await answer.arrayBuffer()
    return answer.status
  }
  for (const [maker, secret] of Object.entries(callers)) {
    const { id } = await jobOf(await create({}, bearer(secret)))
    const done = await ended(id, path => fetch(`${gateway.url}${path}`, { headers: bearer(secret) }))
    const { pathname } = new URL(done.content![0]!.url)
    for (const [reader, other] of Object.entries(callers)) {
      const expected = reader === maker || reader === 'key' ? 200 : 404
      for (const path of [`/v1/videos/${id}`, `/v1/videos/${id}/content`, pathname]) {
        t.equal(await status(other, path), expected, `${reader} reads what ${maker} made: ${path}`)
      }
      if (expected === 404)
        t.equal(await status(other, `/v1/videos/${id}`, 'DELETE'), 404, `${reader} removes no ${maker}'s`)
    }
    t.equal(await status(secret, `/v1/videos/${id}`, 'DELETE'), 200, `${maker} removes its own`)
  }
})

t.test('J12, SI-07 a callback is repeated until it is acknowledged, and every attempt verifies', async t => {
  const { id } = await jobOf(await create({ callback_url: `${hook.url}/in`, callback_secret: SECRET }))
  await hook.until(3)
  const ids = new Set(hook.heard.map(({ headers }) => headers['webhook-id']))
  t.equal(ids.size, 1)
  for (const { headers, body } of hook.heard) {
    t.match(new Webhook(SECRET).verify(body, headers), { type: 'video.completed', data: { id, status: 'completed' } })
  }
  const client = new OpenAI({ apiKey: 'x', webhookSecret: SECRET })
  t.match(await client.webhooks.unwrap(hook.heard[0]!.body, hook.heard[0]!.headers), { object: 'event' })
  for (const url of [
    'https://127.0.0.1/',
    'https://localhost/',
    'https://0x7f000001/',
    'https://[::1]/',
    'http://a.example/',
  ])
    t.match(await (await create({ callback_url: url, callback_secret: 's' })).json(), {
      error: { code: 'url_not_allowed' },
    })
})

t.test('SI-14 ranges and paths that make no sense read nothing else, and a foreign key reads nothing', async t => {
  const job = await ended((await jobOf(await create())).id)
  const url = new URL(job.content![0]!.url)
  const get = (path: string, range: string) => fetch(`${gateway.url}${path}`, { headers: { range } })
  for (const [range, status] of [
    [`bytes=${Array.from({ length: 1000 }, () => '0-').join(',')}`, 200],
    ['bytes=-0', 416],
    ['bytes=99999-', 416],
    ['bytes=9999999999999999999999-', 416],
  ] as const) {
    const answer = await get(url.pathname + url.search, range)
    t.equal(answer.status, status, range.slice(0, 40))
    if (status === 200) t.equal(answer.headers.get('x-content-type-options'), 'nosniff')
    await answer.arrayBuffer()
  }
  for (const path of ['a%2fb', '..%2f..%2fetc', '%00', 'x'.repeat(500)]) {
    const answer = await fetch(`${gateway.url}/v1/videos/logs/${path}/content${url.search}`)
    t.ok([400, 401, 404, 414].includes(answer.status), `${path.slice(0, 20)}: ${answer.status}`)
    await answer.arrayBuffer()
  }
  const command = commandsOf(gateway)
  await command('projects.create', { organization: 'default', name: 'other' })
  const { key } = await command<{ key: string }>('keys.create', { project: 'other', name: 'k' })
  const foreign = { authorization: `Bearer ${key}` }
  for (const path of [`/v1/videos/${job.id}`, `/v1/videos/${job.id}/content`, url.pathname]) {
    t.equal((await gateway.get(path, foreign)).status, 404, path)
  }
  t.match(await (await gateway.get('/v1/videos', foreign)).json(), { data: [] })
})

t.test(
  'J13 nothing of a prompt, a secret, a token or an address is in the database, a metric, a log or the configuration',
  async t => {
    const before = hook.heard.length
    const canaries = {
      prompt: 'PROMPT-CANARY',
      callback_secret: 'SECRET-CANARY',
      callback_url: `${hook.url}/URL-CANARY`,
    }
    const job = await ended((await jobOf(await create(canaries))).id)
    await hook.until(before + 1)
    const token = new URL(job.content![0]!.url).searchParams.get('token')!
    const names = ['gateway.db', 'gateway.db-wal']
    const files = await Promise.all(names.map(name => readFile(join(gateway.dir, 'data', name), 'latin1')))
    const metrics = await (await gateway.admin('GET', '/metrics')).text()
    const config = await (await gateway.admin('GET', '/config')).text()
    t.match(config, /acme/)
    for (const text of [...files, metrics, config, gateway.stdout(), gateway.stderr()]) {
      for (const secret of [...Object.values(canaries), 'CANARY', token]) t.notOk(text.includes(secret), secret)
    }
    t.match(metrics, /gateway_job_polls_total\{outcome="completed",provider="acme"\} \d/)
  },
)

t.test('J7 a create that was cut is not repeated, and one that was refused costs nothing', async t => {
  for (const [how, status] of [
    ['cut', 502],
    [500, 502],
  ] as const) {
    studio.create = how
    studio.creates.length = 0
    t.equal((await create()).status, status, String(how))
    t.equal(studio.creates.length, 1)
    t.equal((await credits()).held, '0')
  }
  t.same(await differences(), { differences: [] })
})

t.test('J14, CC-08 one idempotency key is one job', async t => {
  const answers = await Promise.all(Array.from({ length: 10 }, () => create({}, { 'idempotency-key': 'k1' })))
  const bodies = await Promise.all(answers.map(async answer => ({ status: answer.status, body: await answer.json() })))
  const ids = new Set(bodies.filter(({ status }) => status === 200).map(({ body }) => (body as Video).id))
  t.equal(ids.size, 1)
  t.equal(studio.creates.length, 1)
  const again = await create({}, { 'idempotency-key': 'k1' })
  t.equal(again.headers.get('x-gateway-replayed'), 'true')
  t.match(await (await create({ prompt: 'a dog' }, { 'idempotency-key': 'k1' })).json(), {
    error: { code: 'idempotency_key_reused' },
  })
})

t.test('J2 a job that fails costs nothing and says why; one that runs can be canceled', async t => {
  Object.assign(studio, { script: ['failed'], error: { code: 'content_policy_violation', message: 'no cats' } })
  const failed = await ended((await jobOf(await create())).id)
  t.match(failed, { status: 'failed', error: { code: 'content_filter' }, usage: { cost: 0 } })
  t.match(await (await gateway.get(`/v1/videos/${failed.id}/content`)).json(), { error: { code: 'video_failed' } })
  Object.assign(studio, { script: ['in_progress'], error: null })
  const { id } = await jobOf(await create())
  t.match(await (await gateway.get(`/v1/videos/${id}/content`)).json(), { error: { code: 'video_not_ready' } })
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key })
  await client.videos.delete(id)
  t.match(await read(id), { status: 'canceled', error: { code: 'canceled' } })
  t.equal((await credits()).held, '0')
})

t.test('the official client makes, finds, lists and downloads videos', async t => {
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key })
  const made = await client.videos.create({
    model: 'film' as 'sora-2',
    prompt: 'a cat',
    seconds: '8',
    size: '720x1280',
    input_reference: new File([PNG], 'a.png', { type: 'image/png' }),
  })
  t.match(studio.creates[0], /name="input_reference"; filename="image-0.png"/)
  t.match(await ended(made.id), { status: 'completed', seconds: '8' })
  t.match(await client.videos.retrieve(made.id), { id: made.id, size: '720x1280' })
  const page = await client.videos.list({ limit: 2 })
  t.match(page.data, [{ id: made.id }, {}])
  t.same(Buffer.from(await (await client.videos.downloadContent(made.id)).arrayBuffer()), FILM)
})

t.test('an image at an address is fetched for a wire that takes files', async t => {
  for (const body of [{ image: imageUrl }, { reference_images: [{ image_url: imageUrl }] }]) {
    studio.creates.length = 0
    const made = await jobOf(await create(body))
    t.match(await ended(made.id), { status: 'completed' }, JSON.stringify(body))
    t.match(studio.creates[0], /name="input_reference"; filename="image-0.png"/)
  }
})

t.test('M19 what a request may say is checked', async t => {
  for (const [body, param] of [
    [{ seconds: 8.5 }, 'seconds'],
    [{ seconds: 'eight' }, 'seconds'],
    [{ seconds: 5 }, 'seconds'],
    [{ size: '1920x1080' }, 'size'],
    [{ n: 2 }, 'n'],
    [{ negative_prompt: 'x'.repeat(32_001) }, 'negative_prompt'],
    [{ last_frame: 'data:image/png;base64,iVBORw0KGgo=' }, 'last_frame'],
    [{ callback_url: 'https://a.example/' }, 'callback_secret'],
  ] as const) {
    const answer = await create(body)
    t.equal(answer.status, 400, JSON.stringify(body))
    t.match(await answer.json(), { error: { param } })
  }
  t.match(await ended((await jobOf(await create({ seconds: '8' }))).id), { status: 'completed' })
})

t.test('UF-20 a job that never ends fails in time, is canceled at its provider, and costs nothing', async t => {
  const endless = await filmStudio(t)
  endless.script = ['in_progress']
  const other = await startGateway(t, {
    providers: { acme: film(endless) },
    models: [model],
    config: { jobs: { poll: '10ms', poll_max: '20ms', timeout: '50ms' } },
  })
  const { id } = await jobOf(await other.post('/v1/videos', { model: 'film', prompt: 'a cat' }))
  await endless.until(() => endless.deleted.length > 0)
  t.match(await ended(id, other.get), { status: 'failed', error: { code: 'timeout' }, usage: { cost: 0 } })
})

t.test('gatewayctl writes the video that it has asked for, with a session or a key', async t => {
  const dir = t.testdir({})
  const video = async (out: string, env = {}) => {
    const args = ['--admin', gateway.adminUrl, '--config', gateway.configPath, '--model', 'film', '--out', out]
    const bin = join(import.meta.dirname, '../../bin/gatewayctl.js')
    const ctl = new Child(bin, ['video', 'a cat', ...args], { cwd: dir, env, stdio: ['ignore', 'pipe', 'pipe'] })
    return { code: await ctl.exited, said: ctl.stderr }
  }
  for (const [out, env] of [
    ['a.mp4', {}],
    ['b.mp4', { GATEWAY_API_KEY: gateway.key }],
  ] as const) {
    t.match(await video(out, env), { code: 0 })
    t.ok((await readFile(join(dir, out))).length > 0)
  }
  const newest = async () => (await commandsOf(gateway)<{ id: string }[]>('videos.list', { limit: 1 }))[0]!.id
  const before = await newest()
  t.match(await video('no/such/a.mp4'), { code: 1, said: /^cannot write no\/such\/a\.mp4: ENOENT$/m })
  t.equal(await newest(), before, 'no video is paid for that nobody gets')
})

t.test('gatewayctl asks for no video whose progress it cannot read', async t => {
  const before = await gateway.get('/v1/videos?limit=100').then(listed => listed.text())
  const args = ['video', 'a cat', '--model', 'film', '--url', gateway.url, '--admin', 'http://127.0.0.1:1']
  const bin = join(import.meta.dirname, '../../bin/gatewayctl.js')
  const env = { GATEWAY_API_KEY: gateway.key, GATEWAY_ADMIN_TOKEN: 'x' }
  const ctl = new Child(bin, args, { cwd: t.testdir({}), env, stdio: ['ignore', 'pipe', 'pipe'] })
  t.equal(await ctl.exited, 1)
  t.match(ctl.stderr, /^cannot reach the gateway at http:\/\/127\.0\.0\.1:1; /)
  t.equal(await gateway.get('/v1/videos?limit=100').then(listed => listed.text()), before)
})
