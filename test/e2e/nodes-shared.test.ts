/** Three gateways on one PostgreSQL and one Redis: money, limits and changes are the same on all of them. */
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { type RateKind, rateKinds, windowKinds } from '../../src/limits/kinds.ts'
import { commandsOf } from '../helpers/commands.ts'
import { figure, judged, timing } from '../helpers/figure.ts'
import { type Gateway, startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { pause } from '../helpers/pause.ts'
import { postgresServer, withoutPostgres } from '../helpers/postgres.ts'
import { needsRedis, proxyFor, redisFor } from '../helpers/redis.ts'
import { runs } from '../helpers/runs.ts'
import { startUpstream } from '../helpers/upstream.ts'

const RPM = 300
const usage = { prompt: 5, completion: 10 }
const request = {
  model: 'test',
  max_tokens: usage.completion,
  messages: [{ role: 'user', content: 'What does this c' }],
}
/** What is held for one request, in USD; the provider reports a token more than that. */
const ESTIMATE = 0.000024
const PRICE = 0.000025
const PREMIUM_ESTIMATE = 0.000044
const ten = (ESTIMATE * 10).toFixed(6)
const twenty = (ESTIMATE * 20).toFixed(6)
const tenOfPremium = (PREMIUM_ESTIMATE * 10).toFixed(6)
const premium = { ...testMapping, model: 'premium', id: 'premium-1', pricing: { prompt: '6.00', completion: '2.00' } }

/** Requests of a rate limit, or tokens that twenty requests reserve. */
const most = (kind: RateKind) => (kind === 'concurrency' || windowKinds[kind].counts === 'requests' ? 9 : 20 * 14)
const TRIES_OF_ONE = 20
/** Runs of a race in which Redis was late, after which nodes decide by themselves. */
const TRIES = judged ? 5 : 1
/** Requests at once: more than any limit here admits. */
const AT_ONCE = runs(200, 2)
/** One script decides all kinds that count within a window: the nightly run has a race of each. */
const kinds = judged ? rateKinds : (['rpd', 'tpm', 'concurrency'] as const)
const rounds = Array.from({ length: TRIES }, (_, round) => round)
/** Subjects that have no part of a tenant: each round has a rule of its own. */
const common = ['gateway', 'model', 'endpoint'] as const
const limits = [
  ...rateKinds.map(kind => ({ match: { tags: `${kind}=*` }, [kind]: most(kind) })),
  ...common.flatMap(of => rounds.map(round => ({ match: { tags: `of=${of}-${round}` }, by: of, rpm: most('rpm') }))),
  ...['session', 'end_user'].map(of => ({ match: { tags: `of=${of}` }, by: of, rpm: most('rpm') })),
]

const skip = withoutPostgres || needsRedis.skip
t.test('three gateways on one PostgreSQL and one Redis', { skip, timeout: judged ? 1_800_000 : 300_000 }, async t => {
  const upstream = await startUpstream(t)
  const server = await postgresServer()
  const postgres = await server.database()
  const redisServer = await redisFor(t)
  const proxy = await proxyFor(t, redisServer)
  const config = {
    endpoints: { chat: { ratelimit: { rpm: RPM, rules: [], limits }, admission: { in_flight: 10_000, lag: '60s' } } },
    stores: { postgres, redis: proxy.address },
    plans: { lite: { monthly: ten, weekly_premium: '1' }, pro: { monthly: '1', weekly_premium: tenOfPremium } },
    end_users: { default_limit: { amount: twenty, period: 'day' } },
  }
  const options = { providers: { a: { base_url: upstream.url('a'), models: [testMapping, premium] } }, config }
  const gateways = await Promise.all([1, 2, 3].map(() => startGateway(t, options)))
  const command = commandsOf(gateways[0]!)
  let made = 0
  /** Requests that were sent again. */
  let repeated = 0
  const tenant = async ({ credits = '10', key = {}, member = {}, project: web = {}, org: more = {} }: Terms = {}) => {
    const name = `tenant-${++made}`
    const { id: org } = await command<{ id: string }>('orgs.create', { name, ...more })
    await command('credits.add', { organization: org, amount: credits })
    const { id: project } = await command<{ id: string }>('projects.create', { organization: org, name: 'web', ...web })
    await command('members.add', { organization: org, email: 'dev@x.example', role: 'owner', ...member })
    const { id, key: secret } = await command<{ id: string; key: string }>('keys.create', {
      ...{ project, name: 'k', createdBy: 'dev@x.example' },
      ...key,
    })
    return { org, project, id, as: { authorization: `Bearer ${secret}` } }
  }
  const sessionOf = async ({ as }: { as: Record<string, string> }, maxSpend?: string) => {
    const response = await gateways[1]!.post('/v1/sessions', { customer: 'Ada', scope: { maxSpend } }, as)
    const { id, sessionToken } = (await response.json()) as { id: string; sessionToken: string }
    return { id, as: { authorization: `Bearer ${sessionToken}` } }
  }
  /** On a busy machine a node may wait too long for the database, and says to try again. */
  const ask = async (gateway: Gateway, as: Record<string, string>, more: object = {}) => {
    for (let tries = 1; ; tries++) {
      const response = await gateway.chat({ ...request, ...more }, as)
      const { error } = (await response.json()) as { error?: { message: string } }
      const { status, headers } = response
      if (status !== 503 || tries === TRIES_OF_ONE) return { status, headers, message: error?.message ?? '' }
      repeated++
    }
  }
  const statusOf = async (gateway: Gateway, as: Record<string, string>, more?: object) =>
    (await ask(gateway, as, more)).status
  const askEverywhere = (count: number, as: Record<string, string>, more?: object) =>
    Array.from({ length: count }, (_, i) => ask(gateways[i % gateways.length]!, as, more))
  const everywhere = (count: number, as: Record<string, string>) =>
    askEverywhere(count, as).map(async one => (await one).status)

  /** Commands that Redis has not answered in time, of all nodes. */
  const lateAnswers = async () => {
    const texts = await Promise.all(gateways.map(gateway => gateway.metrics()))
    const counts = texts.flatMap(text => [
      ...text.matchAll(/^gateway_redis_seconds_count\{outcome="(?!ok).*\} (\d+)$/gm),
    ])
    return counts.reduce((sum, [, count]) => sum + Number(count), 0)
  }

  const reachesRedis = async (gateway: Gateway) => {
    const { health } = (await (await fetch(gateway.url)).json()) as { health: { redis: { connected: boolean } } }
    return health.redis.connected
  }

  const planned = async (plan: string) => {
    const who = await tenant()
    await command('plans.set', { organization: who.org, plan })
    return who
  }
  const withOwnKey = async (limit = '1') => {
    const who = await tenant({ project: { mode: 'api-keys' } })
    const { id: own } = await command<{ id: string }>('provider-keys.add', {
      ...{ organization: who.org, provider: 'a', secret: upstreamSecret, limit },
    })
    return { ...who, own }
  }
  const bounds: readonly Bound[] = [
    ['credit', () => tenant({ credits: ten }), /insufficient credits/],
    ['a limit of a key', () => tenant({ key: { limit: ten } }), /^API key reached its usage limit\./],
    ...['hour', 'month'].map(
      (limitPeriod): Bound => [
        `a limit of a key for a${limitPeriod === 'hour' ? 'n' : ''} ${limitPeriod}`,
        () => tenant({ key: { limit: ten, limitPeriod } }),
        /^API key reached its current period usage limit\. It resets at /,
      ],
    ),
    ['a limit of a member', () => tenant({ member: { limit: ten } }), /^Member has reached their total spend budget\./],
    [
      'a limit of a member for a week',
      () => tenant({ member: { limit: ten, limitPeriod: 'week' } }),
      /^Member has reached their period spend budget\. It resets at /,
    ],
    [
      'a limit of a session',
      async () => {
        const who = await tenant()
        return { ...who, ...(await sessionOf(who, ten)) }
      },
      /^Session reached its usage limit\./,
    ],
    [
      'a limit of an end user',
      async () => ({ ...(await tenant()), more: { user: 'ann' } }),
      /^End user "ann" has reached their period spend limit\. It resets at /,
    ],
    [
      'a limit of a key at a provider',
      () => withOwnKey(ten),
      /^The organization's key for the provider reached its usage limit\./,
    ],
    ['a plan', () => planned('lite'), /^Coding plan credit limit reached\. .* renewal on \d{4}-\d\d-\d\d\./],
    [
      'premium models of a plan',
      async () => ({ ...(await planned('pro')), more: { model: 'premium' } }),
      /^Coding plan weekly premium limit reached\. Use a model that is not premium\./,
    ],
  ]
  for (const [says, caller, message] of bounds) {
    await t.test(`${AT_ONCE} requests on ${says} overspend it by less than one`, async t => {
      const count = says.includes('end user') ? 20 : 10
      await upstream.reset()
      const isPremium = says.startsWith('premium')
      await upstream.script('a', [{ hold: 0, usage: isPremium ? { ...usage, prompt: 4 } : usage }])
      const { as, org, more } = await caller()
      const [estimate, price] = isPremium ? [PREMIUM_ESTIMATE, PREMIUM_ESTIMATE] : [ESTIMATE, PRICE]
      const asked = askEverywhere(AT_ONCE, as, more)
      await upstream.record('a', { requests: count })
      await upstream.release('a')
      const answers = await Promise.all(asked)
      t.equal(answers.filter(({ status }) => status === 200).length, count)
      const refused = answers.filter(({ status }) => status === 402)
      t.equal(refused.length, AT_ONCE - count, `${tallied(answers)}`)
      for (const { message: said } of refused) if (!message.test(said)) t.match(said, message)
      t.equal((await upstream.record('a')).length, count, 'the refused were refused before any call')
      t.equal((await command<{ held: string }>('credits.show', { organization: org })).held, '0')
      const { groups } = await command<{ groups: { cost: string }[] }>('usage', {
        ...{ organization: org, groupBy: 'api_key' },
      })
      const used = groups.reduce((sum, { cost }) => sum + Number(cost), 0)
      t.equal(used, Number((count * price).toFixed(9)))
      t.ok(used - count * estimate <= estimate, 'what is overspent is less than one estimate')
      t.strictSame(await command('usage.check'), { differences: [] })
    })
  }

  await t.test('a node opens six connections at full load', async t => {
    await upstream.reset()
    const { as } = await tenant()
    const asked = everywhere(250, as)
    const most = await mostConnections(() => server.run(CONNECTIONS) as Promise<{ count: bigint }[]>, asked)
    await Promise.all(asked)
    figure(t, { id: 'NP-07', what: 'connections of three nodes at full load', value: most, unit: '', atMost: 18 })
  })

  /** Runs what is counted until each store has answered each request in time. */
  const raced = async <T>(run: (round: number) => Promise<T>): Promise<[got: T, isExact: boolean]> => {
    for (let round = 0; ; round++) {
      while (!(await Promise.all(gateways.map(reachesRedis))).every(Boolean)) await pause()
      const before = [await lateAnswers(), repeated]
      const got = await run(round)
      const isExact = isDeepStrictEqual(before, [await lateAnswers(), repeated])
      if (isExact || round + 1 === TRIES) return [got, isExact]
    }
  }

  await t.test('a limit of requests holds for all of them together', async t => {
    const [admitted, isExact] = await raced(async () => {
      await upstream.reset()
      const { as } = await tenant()
      const statuses: number[] = []
      for (let sent = 0; sent < RPM * 1.2; sent += 12) statuses.push(...(await Promise.all(everywhere(12, as))))
      return statuses.filter(status => status === 200).length
    })
    // A node decides by itself where Redis is late, as it is on a busy machine.
    const what = `admitted of ${RPM} a minute${isExact ? '' : ', since Redis was late'}`
    timing(t, { id: 'NP-04', what, value: admitted, unit: '', atMost: RPM * 1.01 })
    t.ok(admitted >= RPM * 0.99 && (!isExact || admitted <= RPM * 1.01), `${admitted}`)
  })

  const ofTenant = (of: string, terms: Terms): Race => [of, 'rpm', async () => ({ as: (await tenant(terms)).as })]
  const rpm = most('rpm')
  /** Counted like the other two: in the nightly run. */
  const rarer: readonly Race[] = [
    ...common.map((of): Race => [of, 'rpm', async round => tagged(await tenant(), `of=${of}-${round}`)]),
    ['end_user', 'rpm', async () => ({ ...tagged(await tenant(), 'of=end_user'), more: { user: 'ann' } })],
    ofTenant('member', { member: { rpm } }),
    ofTenant('project', { project: { rpm } }),
    ofTenant('org', { org: { rpm } }),
  ]
  const races: readonly Race[] = [
    ...kinds.map((kind): Race => [`tag:${kind}`, kind, async () => tagged(await tenant(), `${kind}=${made}`)]),
    ['session', 'rpm', async () => tagged(await sessionOf(await tenant()), 'of=session')],
    ofTenant('key', { key: { rpm } }),
    ...(judged ? rarer : []),
  ]
  for (const [of, kind, caller] of races) {
    await t.test(`${AT_ONCE} requests pass the limit ${of}-${kind} by less than one, and refusals name it`, async t => {
      const expected = kind === 'concurrency' || windowKinds[kind].counts === 'requests' ? most(kind) : expectedOf(kind)
      const [answers, isExact] = await raced(async round => {
        await upstream.reset()
        await upstream.script('a', [{ usage: { ...usage, prompt: 4 }, ...(kind === 'concurrency' && { hold: 0 }) }])
        const { as, more } = await caller(round)
        let refused = 0
        const asked = askEverywhere(AT_ONCE, as, more)
        for (const one of asked) one.then(({ status }) => status !== 200 && refused++)
        while (kind === 'concurrency' && refused + (await upstream.record('a')).length < AT_ONCE) await pause()
        await upstream.release('a')
        return Promise.all(asked)
      })
      const served = answers.filter(({ status }) => status === 200).length
      t.comment(`${served} of ${expected}${isExact ? '' : ', since a store was late'}`)
      // Where Redis was late, each node has taken its share besides what it had admitted before.
      if (isExact) t.equal(served, expected)
      else t.ok(served > 0 && served <= 2 * expected + gateways.length)
      const refused = answers.filter(({ status }) => status === 429)
      t.equal(refused.length, AT_ONCE - served, `${tallied(answers)}`)
      const said = new RegExp(
        `^The limit of ${most(kind)} .* \\(${kind}\\) of .* is reached\\. Please retry after \\d+ s`,
      )
      for (const { message, headers } of refused) {
        const policy = headers.get('ratelimit-policy') ?? ''
        if (policy.startsWith(`"${of}-${kind}";q=${most(kind)};`) && said.test(message)) continue
        t.match({ policy, message }, { policy: `"${of}-${kind}";q=${most(kind)};`, message: said })
      }
    })
  }

  await t.test('no request is refused after Redis was flushed', async t => {
    await upstream.reset()
    const { as } = await tenant()
    await Promise.all(everywhere(12, as))
    await redisServer.run('FLUSHALL')
    const statuses = await Promise.all(everywhere(12, as))
    t.ok(
      statuses.every(status => status === 200),
      `${statuses}`,
    )
  })

  const changes = async (t: Test, what: string, atMost: number) => {
    await upstream.reset()
    await upstream.script('a', [{ usage: { ...usage, prompt: 4 } }])
    const who = await tenant()
    const { as, id, project, org: organization } = who
    const session = await sessionOf(who)
    const own = await withOwnKey()
    const pro = await planned('pro')
    for (const gateway of gateways) {
      for (const one of [who, session, own]) t.equal(await statusOf(gateway, one.as), 200)
    }
    const paid = { model: 'premium' }
    while ((await Promise.all(askEverywhere(9, pro.as, paid))).every(({ status }) => status === 200));
    const member = { organization, member: 'dev@x.example' }
    for (const [says, change, status, of = as, more = {}] of [
      ['a limit', () => command('keys.update', { id, limit: '0' }), 402],
      ['a raised limit', () => command('keys.update', { id, limit: '1' }), 200],
      ['a limit of requests', () => command('keys.update', { id, rpm: 1 }), 429],
      ['no limit of requests', () => command('keys.update', { id, rpm: 'none' }), 200],
      ['a limit of a member', () => command('members.update', { ...member, limit: '0' }), 402],
      ['no limit of a member', () => command('members.update', { ...member, limit: 'none' }), 200],
      [
        'a limit of a key at a provider',
        () => command('provider-keys.update', { id: own.own, limit: '0' }),
        402,
        own.as,
      ],
      ['a reset plan', () => command('plans.reset', { organization: pro.org }), 200, pro.as, paid],
      ['an ended session', () => command('keys.revoke', { id: session.id }), 401, session.as],
      ['an archived project', () => command('projects.archive', { project }), 410],
      ['a restored project', () => command('projects.restore', { project }), 200],
      ['a revoked key', () => command('keys.revoke', { id }), 401],
    ] as const) {
      await change()
      const start = performance.now()
      for (const gateway of gateways) while ((await statusOf(gateway, of, more)) !== status) await pause()
      const value = performance.now() - start
      timing(t, { id: 'NP-05', what: `${says}, until it holds everywhere ${what}`, value, unit: 'ms', atMost })
    }
  }
  await t.test('a change holds on all nodes soon', t => changes(t, 'with Redis', 1000))

  await t.test('while Redis is away, nodes share limits and tell each other what changes', async sub => {
    await proxy.refuse()
    await changes(sub, 'without Redis', 5000)
    // This one has never seen Redis: PostgreSQL tells it how many share.
    const late = await startGateway(t, options)
    gateways.push(late)
    const { as } = await tenant()
    const statuses: number[] = []
    for (let sent = 0; sent < RPM / 2; sent += 10) {
      statuses.push(...(await Promise.all(Array.from({ length: 10 }, () => statusOf(late, as)))))
    }
    sub.equal(statuses.filter(status => status === 200).length, RPM / 4)
    await proxy.listen()
    const start = performance.now()
    for (const gateway of gateways) while (!/^gateway_redis_up 1$/m.test(await gateway.metrics())) await pause()
    const value = performance.now() - start
    timing(sub, { id: 'NP-10', what: 'Redis is back, until all nodes use it', value, unit: 'ms', atMost: 5000 })
    const [served, isExact] = await raced(async () => {
      const who = await tenant({ key: { rpm } })
      const statuses = await Promise.all(everywhere(40, who.as))
      return statuses.filter(status => status === 200).length
    })
    sub.ok(isExact ? served === rpm : served >= 1, `all share one limit again: ${served} of ${rpm}`)
  })

  await t.test('Redis that hangs delays one request of a node', async sub => {
    await upstream.reset()
    const { as } = await tenant()
    const timesOf = async (gateway: Gateway) => {
      const times: number[] = []
      for (let sent = 0; sent < 15; sent++) {
        const start = performance.now()
        sub.equal(await statusOf(gateway, as), 200)
        times.push(performance.now() - start)
      }
      return times.sort((a, b) => b - a)
    }
    for (const gateway of gateways) {
      while (!(await reachesRedis(gateway))) await pause()
      const usual = (await timesOf(gateway))[7]!
      proxy.hang()
      const [slowest, second] = await timesOf(gateway)
      proxy.resume()
      const what = 'ms that a request took beyond the median while Redis hung'
      timing(sub, { id: 'NP-11', what: `${what}, the slowest`, value: slowest! - usual, unit: 'ms', atMost: 150 })
      timing(sub, { id: 'NP-11', what: `${what}, the next`, value: second! - usual, unit: 'ms', atMost: 50 })
    }
  })

  for (const gateway of gateways) {
    // On a busy machine Redis may be late just now.
    while ((await fetch(gateway.url)).status !== 200) await pause()
    await checkInvariants(t, gateway, upstream)
  }
})

interface Terms {
  readonly credits?: string
  readonly key?: object
  readonly member?: object
  readonly project?: object
  readonly org?: object
}
interface Caller {
  readonly as: Record<string, string>
  /** Fields of its requests. */
  readonly more?: object
}
type Bound = readonly [says: string, caller: () => Promise<Caller & { readonly org: string }>, message: RegExp]
type Race = readonly [of: string, kind: RateKind, caller: (round: number) => Promise<Caller>]

/** Numbers of answers by status. */
const tallied = (answers: readonly { readonly status: number }[]): string => {
  const counts = new Map<number, number>()
  for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1)
  return JSON.stringify([...counts])
}

const tagged = ({ as }: Caller, tags: string): Caller => ({ as: { ...as, 'x-gateway-tags': tags } })

/** Requests that a limit of tokens lets in: the last one while any token is left. */
function expectedOf(kind: Exclude<RateKind, 'concurrency'>): number {
  const tokens = { requests: 1, tokens: 14, 'input tokens': 4, 'output tokens': 10 }[windowKinds[kind].counts]
  return Math.ceil(most(kind) / tokens)
}

const CONNECTIONS = "SELECT count(*) AS count FROM pg_stat_activity WHERE application_name = 'model-gateway'"

/** Counts connections until all has been answered. */
async function mostConnections(count: () => Promise<{ count: bigint }[]>, asked: Promise<unknown>[]): Promise<number> {
  let most = 0
  let isOver = false
  const over = Promise.all(asked).then(() => {
    isOver = true
  })
  for (; !isOver; await pause()) most = Math.max(most, Number((await count())[0]!.count))
  await over
  return most
}
