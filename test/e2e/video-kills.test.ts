/** Jobs whose process is killed, frozen or replaced: none is lost, made twice, charged twice, or untold. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { type FilmStudio, filmStudio } from '../helpers/film-studio.ts'
import { type Gateway, startGateway } from '../helpers/gateway.ts'
import { random } from '../helpers/random.ts'
import { runs } from '../helpers/runs.ts'

const SEED = Number(process.env.CRASH_SEED ?? Math.floor(Math.random() * 2 ** 31))
const next = random(SEED)
const COST = 0.4
const LEASE = '1s'

const model = { id: 'film', name: 'film', family: 'test', input: ['text'], output: ['video'], stability: 'stable' }
const providerOf = (studio: FilmStudio) => ({
  base_url: studio.url,
  wires: { videos: 'openai.videos' },
  models: [{ model: 'film', id: 'film-1', pricing: { per_second: { default: '0.10' } } }],
})
const endpoints = { videos: { ratelimit: { rpm: 100_000 } }, 'video-reads': { ratelimit: { rpm: 100_000 } } }

interface Video {
  readonly id: string
  readonly status: string
  readonly error: { readonly code: string } | null
}
const command = async <T>(gateway: Gateway, name: string, args: object = {}) =>
  (await (await gateway.admin('POST', `/commands/${name}`, args)).json()) as T

/** All of the project, once nothing runs and nothing is to be told. */
async function settled(gateway: Gateway, headers: Record<string, string> = {}): Promise<Video[]> {
  for (;;) {
    const { running, callbacks } = await command<{ running: object; callbacks: number }>(gateway, 'jobs.status')
    if (Object.keys(running).length === 0 && callbacks === 0) break
    await setTimeout(50)
  }
  const all: Video[] = []
  for (let after = ''; ; ) {
    const page = await (await gateway.get(`/v1/videos?limit=100${after && `&after=${after}`}`, headers)).json()
    const { data, has_more, last_id } = page as { data: Video[]; has_more: boolean; last_id: string }
    all.push(...data)
    if (!has_more) return all
    after = last_id
  }
}

async function checkBooks(t: Test, gateway: Gateway, videos: readonly Video[]): Promise<void> {
  const completed = videos.filter(({ status }) => status === 'completed').length
  const { held, used } = await command<{ held: string; used: string }>(gateway, 'credits.show', {
    organization: 'default',
  })
  t.equal(held, '0')
  t.equal(Number(used).toFixed(2), (completed * COST).toFixed(2), 'each that is completed is charged once')
  t.same(await command(gateway, 'usage.check'), { differences: [] })
}

/** Hears callbacks; those that come while `holds` is set wait for the next kill. */
async function ear(t: Test) {
  const heard: { id: string; video: string }[] = []
  const open: ServerResponse[] = []
  let wake: (() => void)[] = []
  const hook = {
    heard,
    holds: false,
    url: '',
    async until(wanted: () => boolean) {
      while (!wanted()) await new Promise<void>(resolve => wake.push(resolve))
    },
    letGo() {
      hook.holds = false
      for (const res of open.splice(0)) res.end()
    },
  }
  const server = createServer((req, res) => {
    let body = ''
    req.on('data', chunk => {
      body += chunk
    })
    req.on('end', () => {
      const { data } = JSON.parse(body) as { data: Video }
      heard.push({ id: String(req.headers['webhook-id']), video: data.id })
      if (hook.holds) open.push(res)
      else res.end()
      const waiting = wake
      wake = []
      for (const one of waiting) one()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  hook.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return hook
}

t.test('J3, CS-09 a job goes on after a kill at every transition', async t => {
  t.comment(`CRASH_SEED=${SEED}`)
  const studio = await filmStudio(t)
  const hook = await ear(t)
  const gateway = await startGateway(t, {
    providers: { acme: providerOf(studio) },
    models: [model],
    config: {
      endpoints,
      jobs: {
        poll: '20ms',
        poll_max: '40ms',
        lease: LEASE,
        results: 'keep',
        callback_retry: '20ms',
        callback_timeout: '1s',
        callback_to: [hook.url],
      },
    },
  })
  let made = 0
  const prompts: string[] = []
  const create = async () => {
    const prompt = `film number ${++made}.`
    prompts.push(prompt)
    const body = { model: 'film', prompt, callback_url: hook.url, callback_secret: 's' }
    const answer = await gateway.post('/v1/videos', body).catch(() => undefined)
    return answer?.status === 200 ? ((await answer.json()) as Video).id : undefined
  }
  const hold = (what: keyof FilmStudio['held']) => {
    studio.held[what] = new Promise(resolve => {
      release = resolve
    })
  }
  let release = () => undefined as unknown
  const told: (string | undefined)[] = []
  const lock = () => {
    const db = new Database(join(gateway.dir, 'data/gateway.db'))
    db.exec('BEGIN IMMEDIATE')
    release = () => {
      db.exec('ROLLBACK')
      db.close()
    }
  }
  const count = () => [...studio.polls.values()].reduce((sum, polls) => sum + polls, 0)

  /** Each brings the gateway to a point, with two jobs on their way. */
  const points: Readonly<Record<string, (creates: Promise<unknown>) => Promise<unknown>>> = {
    'a create that its provider has': async () => {
      const before = studio.creates.length
      await studio.until(() => studio.creates.length >= before + 1)
    },
    'a poll that is open': async creates => {
      const before = count()
      hold('poll')
      await creates
      await studio.until(() => count() > before)
    },
    'a result that is copied': async () => {
      const before = studio.contents
      hold('content')
      await studio.until(() => studio.contents > before)
    },
    'an end that cannot be written': async creates => {
      const before = studio.contents
      await creates
      await studio.until(() => studio.contents > before)
      lock()
    },
    'an end that is stored, and not reported': async creates => {
      const db = new Database(join(gateway.dir, 'data/gateway.db'), { readonly: true })
      const events = db.prepare<[], number>('SELECT count(DISTINCT event_id) FROM job_events').pluck()
      const before = events.get()!
      await creates
      while (events.get() === before) await new Promise<void>(resolve => setImmediate(resolve))
      db.close()
    },
    'a callback that is not answered': async () => {
      const before = hook.heard.length
      hook.holds = true
      await hook.until(() => hook.heard.length > before)
    },
    'a callback that was answered': async () => {
      const before = hook.heard.length
      await hook.until(() => hook.heard.length > before)
    },
    'any moment': async () => setTimeout(next() * 200),
  }
  const names = Object.keys(points)
  const rounds = Math.max(names.length, runs(50))
  for (let round = 0; round < rounds; round++) {
    const name = names[round % names.length]!
    if (name === 'a create that its provider has') hold('create')
    const creates = Promise.all([create(), create()])
    await points[name]!(creates)
    // At once, or up to some ten turns of the engine later.
    if (next() < 0.8) await setTimeout(next() * 15)
    await gateway.kill('SIGKILL')
    release()
    release = () => undefined
    for (const what of ['create', 'poll', 'content'] as const) delete studio.held[what]
    hook.letGo()
    told.push(...(await creates))
    await gateway.restart()
  }
  const videos = await settled(gateway)
  for (const id of told) {
    if (id !== undefined)
      t.match(
        videos.find(video => video.id === id),
        { status: 'completed' },
        `${id} was told of`,
      )
  }
  for (const video of videos) {
    if (video.status !== 'completed') t.match(video, { status: 'failed', error: { code: 'interrupted' } })
    const ids = new Set(hook.heard.filter(one => one.video === video.id).map(({ id }) => id))
    t.equal(ids.size, 1, `${video.id} was told of, with one id`)
  }
  const creates = prompts.map(prompt => studio.creates.filter(body => body.includes(prompt)).length)
  t.ok(
    creates.every(times => times <= 1),
    'none was made twice at the provider',
  )
  t.ok(videos.length >= studio.creates.length - told.filter(id => id === undefined).length, 'none is lost')
  await checkBooks(t, gateway, videos)
})

/** In the nightly run. */
const SHARED = 200

t.test('J4, J5, J6 two gateways on one store share jobs; one is frozen, and killed, and the other goes on', async t => {
  const studio = await filmStudio(t)
  Object.assign(studio, { script: ['queued', 'in_progress'], lag: 20 })
  const start = (stores: object) =>
    startGateway(t, {
      providers: { acme: providerOf(studio) },
      models: [model],
      config: { ...stores, endpoints, jobs: { poll: '20ms', poll_max: '40ms', lease: LEASE } },
    })
  const one = await start({})
  const two = await start({ stores: { sqlite: join(one.dir, 'data/gateway.db') } })
  const key = { authorization: `Bearer ${one.key}` }
  /** A store that is busy refuses before a provider is called: the client tries again. */
  const create = async (at: Gateway) => {
    for (;;) {
      const { status } = await at.post('/v1/videos', { model: 'film', prompt: 'a cat' }, key)
      if (status !== 503) return status
    }
  }
  const shared = Math.max(40, runs(SHARED))
  const statuses: number[] = []
  for (let n = 0; n < shared; n += 10) {
    statuses.push(...(await Promise.all(Array.from({ length: 10 }, (_, at) => create(at % 2 ? one : two)))))
  }
  t.same(new Set(statuses), new Set([200]))
  await studio.until(() => studio.polls.size > 10)
  process.kill(one.pid, 'SIGSTOP')
  const total = () => [...studio.polls.values()].reduce((sum, polls) => sum + polls, 0)
  const before = total()
  // It may have been frozen within a transaction, which keeps the other one waiting.
  await Promise.race([studio.until(() => total() > before + shared), setTimeout(5_000)])
  studio.script = ['completed']
  // Two leases: what it had claimed is the other one's by now.
  await setTimeout(2_000)
  process.kill(one.pid, 'SIGCONT')
  await setTimeout(next() * 100)
  await one.kill('SIGKILL')
  const videos = await settled(two, key)
  t.equal(videos.length, shared)
  t.same(new Set(videos.map(({ status }) => status)), new Set(['completed']))
  t.equal(studio.creates.length, shared)
  await checkBooks(t, two, videos)
})
