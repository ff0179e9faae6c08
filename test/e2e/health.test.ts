/** Tables what probes see of the stores: `GET /`, and `/ready` and `/live` of the admin listener. */
import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { timing } from '../helpers/figure.ts'
import { type Gateway, startGateway } from '../helpers/gateway.ts'
import { pause } from '../helpers/pause.ts'
import { postgresServer, withoutPostgres } from '../helpers/postgres.ts'
import { proxyTo } from '../helpers/proxy.ts'
import { needsRedis, proxyFor, redisFor } from '../helpers/redis.ts'

type Tree = Record<string, unknown>

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as Tree
const providers = { a: { base_url: 'http://127.0.0.1:9/v1' } }
const UP = { connected: true }
const AWAY = { connected: false, error: /^(?:unavailable|no answer within 900 ms)$/ }
const SKIPPED = { connected: false, error: 'skipped' }
const NOT_CONFIGURED = { connected: false, error: 'not configured' }
const isDown = (state: Tree) => state === AWAY

/** The record of section 2.8, and its status: 503 where a configured store that was asked for is away. */
function recordOf(redis: Tree, database: Tree) {
  const healthy = ![redis, database].some(isDown)
  return {
    status: healthy ? 200 : 503,
    body: {
      message: healthy ? 'Model Gateway is running' : 'A configured store does not answer',
      version,
      health: { status: healthy ? 'ok' : 'unhealthy', redis, database },
    },
  }
}

async function answerOf(address: string) {
  const start = performance.now()
  const response = await fetch(address)
  const type = response.headers.get('content-type')?.split(';')[0]
  const body = (await response.json()) as Tree
  return { status: response.status, type, body, ms: performance.now() - start }
}

const TRIES = 500

/** Asks until the answer is this one: on a busy machine a store may be late just now. */
async function shows(t: Test, address: string, { status, body }: { status: number; body: Tree }, says: string) {
  const isIt = ({ status: got, body: found }: Awaited<ReturnType<typeof answerOf>>) =>
    got === status && isDeepStrictEqual(plainOf(found), plainOf(body))
  let got = await answerOf(address)
  for (let tries = 1; tries < TRIES && !isIt(got); tries++) {
    await pause()
    got = await answerOf(address)
  }
  t.match(got, { status, type: 'application/json', body }, says)
  t.strictSame(plainOf(got.body), plainOf(body), `${says}: no other fields`)
  timing(t, { id: 'NP-09', what: `${says}: answer`, value: got.ms, unit: 'ms', atMost: 2500 })
}

/** The value with one text for all reasons why a store is away. */
const plainOf = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_, inner) =>
      inner instanceof RegExp || (typeof inner === 'string' && AWAY.error.test(inner)) ? 'away' : inner,
    ),
  )

async function probes(t: Test, gateway: Gateway, redis: Tree, database: Tree) {
  const skips = [
    ['', redis, database],
    ['?skip=', redis, database],
    ['?skip=redis', SKIPPED, database],
    ['?skip=database', redis, SKIPPED],
    ['?skip=redis,database', SKIPPED, SKIPPED],
  ] as const
  for (const [query, ofRedis, ofDatabase] of skips) {
    await shows(t, `${gateway.url}/${query}`, recordOf(ofRedis, ofDatabase), `GET /${query}`)
  }
  const shown = redis === NOT_CONFIGURED ? {} : { redis: isDown(redis) ? { ...AWAY, error: 'unavailable' } : redis }
  const ready = isDown(database)
    ? { status: 503, body: { status: 'not ready', reason: 'the database is down', ...shown } }
    : { status: 200, body: { status: 'ready', ...shown } }
  await shows(t, `${gateway.adminUrl}/ready`, ready, '/ready')
  await shows(t, `${gateway.adminUrl}/live`, { status: 200, body: { status: 'live' } }, '/live')
}

t.test('SQLite alone', async t => {
  const gateway = await startGateway(t, { providers })
  await probes(t, gateway, NOT_CONFIGURED, UP)
  const wrong = await answerOf(`${gateway.url}/?skip=disk`)
  t.match(wrong, { status: 400, body: { error: { code: 'invalid_parameters', param: 'skip' } } })
})

const skip = withoutPostgres || needsRedis.skip
t.test('PostgreSQL and Redis', { skip, timeout: 240_000 }, async t => {
  const address = new URL(await (await postgresServer()).database())
  const database = await proxyTo(t, Number(address.port))
  address.port = String(database.port)
  const redis = await proxyFor(t, await redisFor(t))
  const stores = { postgres: String(address), redis: redis.address }
  const gateway = await startGateway(t, { providers, config: { stores } })
  const nothing = async () => {}
  for (const [says, change, ofRedis, ofDatabase, undo] of [
    ['both answer', nothing, UP, UP, nothing],
    ['Redis is away', () => redis.refuse(), AWAY, UP, () => redis.listen()],
    ['Redis hangs', async () => redis.hang(), AWAY, UP, async () => redis.resume()],
    ['PostgreSQL is away', () => database.refuse(), UP, AWAY, () => database.listen()],
    ['PostgreSQL hangs', async () => database.hang(), UP, AWAY, async () => database.resume()],
    [
      'both are away',
      () => Promise.all([redis.refuse(), database.refuse()]),
      AWAY,
      AWAY,
      () => Promise.all([redis.listen(), database.listen()]),
    ],
    ['both answer again', nothing, UP, UP, nothing],
  ] as const) {
    await t.test(says, async t => {
      await change()
      await probes(t, gateway, ofRedis, ofDatabase)
      await undo()
    })
  }
})
