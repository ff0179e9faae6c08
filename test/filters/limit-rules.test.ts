/** Rules of the rate limit: whom each is for, and what it counts apart. */
import t from 'tap'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Principal, Services } from '../../src/core/ports.ts'
import { ratelimit } from '../../src/filters/ratelimit/index.ts'
import { passedOf } from '../../src/filters/ratelimit/passed.ts'
import { compileRule } from '../../src/filters/ratelimit/rules.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import type { OwnLimits } from '../../src/limits/kinds.ts'
import type { NamedModel } from '../../src/routing/named-models.ts'
import { MemoryCounters } from '../../src/stores/memory/counters.ts'
import { byName, eventsOf, exchange, principal } from '../core/kit.ts'

type Rules = NonNullable<Parameters<typeof ratelimit.create>[0]['limits']>
type Rule = Rules[number]

function make(rules: Rules, clock: () => number = () => 0, rpm = 1000) {
  const told: object[] = []
  const log = { warn: (facts: object) => told.push(facts) }
  const services = { counters: new MemoryCounters(clock), ledger: {}, log, now: () => 0 } as unknown as Services
  const filter = ratelimit.create({ rpm, rules: [], limits: rules }, services)
  const enter = async (
    changes: Partial<Principal> = {},
    ex = exchange({ principal: { ...principal, ...changes } }),
  ) => {
    try {
      await filter.handle!(ex, async () => ({ status: 200, headers: [], events: eventsOf() }))
      return { ex, status: 200, message: '', headers: byName(ex.answer.headers) }
    } catch (thrown) {
      const { status, message, headers } = thrown as GatewayError
      return { ex, status, message, headers }
    }
  }
  const leave = (ex: Exchange) => filter.finish!(ex, true)
  return { enter, leave, told }
}

const member = { id: 'member-1', role: 'developer' } as const
const session = { id: 'session-1', models: undefined }

t.test('a rule counts apart what it names or what it says, and no one else', async t => {
  const rows: [says: string, rule: Rule, same: Partial<Principal>, other: Partial<Principal>, whose: string][] = [
    ['an organization', { rpm: 1 }, { keyId: 'k2', projectId: 'p2' }, { orgId: 'o2' }, 'organization "'],
    ['each project', { match: { projects: ['*'] }, rpm: 1 }, { keyId: 'k2' }, { projectId: 'p2' }, 'project "'],
    ['each key', { match: { keys: '*' }, rpd: 1 }, { projectId: 'p2' }, { keyId: 'k2' }, 'key "'],
    ['each member', { by: 'member', rph: 1 }, { member, keyId: 'k2' }, { member: { ...member, id: 'm2' } }, 'member "'],
    [
      'each session',
      { by: 'session', rpm: 1 },
      { session, projectId: 'p2' },
      { session: { ...session, id: 's2' } },
      'session "',
    ],
    ['all', { by: 'gateway', rpm: 1 }, { orgId: 'o2', keyId: 'k2' }, {}, 'this gateway'],
    ['a pair', { by: ['org', 'key'], rpm: 1 }, { projectId: 'p2' }, { orgId: 'o2' }, 'organization "'],
  ]
  for (const [says, rule, same, other, whose] of rows) {
    const { enter } = make([rule])
    const first = { member, session }
    t.equal((await enter(first)).status, 200, says)
    const refused = await enter({ ...first, ...same })
    t.match(refused, { status: 429 }, `${says}: another request of the same one`)
    t.ok(refused.message.includes(` of ${whose}`), refused.message)
    if (rule.by !== 'gateway') t.equal((await enter({ ...first, ...other })).status, 200, `${says}: another one`)
  }
})

t.test('a rule is for those whom it names, by id, name or pattern', async t => {
  const rows: [match: NonNullable<Rule['match']>, fits: boolean][] = [
    [{ orgs: principal.orgName }, true],
    [{ orgs: [principal.orgId, 'x'] }, true],
    [{ orgs: ['x'] }, false],
    [{ keys: `${principal.keyName.slice(0, 1)}*` }, true],
    [{ keys: 'x*', orgs: '*' }, false],
    [{ projects: principal.projectId }, true],
    [{ members: '*' }, false],
    [{ endpoint: 'nowhere' }, false],
    [{ endpoint: '*' }, true],
    [{ orgs: `.${principal.orgName.slice(1)}` }, false],
  ]
  for (const [match, fits] of rows) {
    const { enter } = make([{ match, rpm: 1 }])
    await enter()
    t.equal((await enter()).status, fits ? 429 : 200, JSON.stringify(match))
  }
})

t.test('a caller has its own limits, those of what it is part of, and those of rules', async t => {
  const own = (of: OwnLimits['of'], rpm: number): OwnLimits => ({
    of,
    id: `${of}-1`,
    name: `the ${of}`,
    limits: { rpm },
  })
  const rates = [own('key', 4), own('member', 3), own('project', 2), own('org', 9)]
  const { enter } = make([{ match: { keys: '*' }, rpm: 8 }])
  const got = await enter({ rates })
  t.match(got, { status: 200, headers: { ratelimit: '"project-rpm";r=1;t=60', 'x-ratelimit-limit-requests': '2' } })
  await enter({ rates })
  const refused = await enter({ rates })
  t.equal(
    refused.message,
    'The limit of 2 requests per minute (rpm) of project "the project" is reached. Please retry after 60 seconds.',
  )
  t.match(refused.headers, { 'retry-after': '60', 'ratelimit-policy': '"project-rpm";q=2;w=60' })
})

t.test('what a refused request has taken of other limits is free again', async t => {
  const { enter, leave } = make([
    { match: { keys: '*' }, rpm: 3, concurrency: 5 },
    { match: { orgs: '*' }, rpd: 2 },
  ])
  const running = [await enter(), await enter()]
  for (let times = 0; times < 9; times++) {
    const { ex, message } = await enter()
    t.match(message, /2 requests per day \(rpd\)/)
    await leave(ex)
  }
  for (const { ex } of running) await leave(ex)
  t.equal((await enter({ orgId: 'o2' })).status, 200, 'the third of the key')
  t.match(await enter({ orgId: 'o3' }), { status: 429, message: /3 requests per minute/ })
})

/** The model "m", which writes 100 tokens at most, by one of its names. */
const namedAs = (requestedModel: string) => {
  const reference = { kind: 'model', model: { maxOutput: 100 } }
  return { requested: { reference, requestedId: 'm', requestedModel } } as unknown as NamedModel
}

t.test('a limit of a model counts it under each of its names, with the tokens that it can write', async t => {
  const { enter } = make([
    { match: { model: 'm' }, rpm: 3, otpm: 1000 },
    { match: { model: 'alias' }, rpm: 2 },
  ])
  const ask = async (name: string) => {
    const { ex } = await enter({}, exchange({ principal, request: { model: name, messages: [], max_tokens: 100_000 } }))
    return passedOf(ex)!
      .check([namedAs(name)])
      .then(() => 200)
      .catch((thrown: GatewayError) => thrown.message.replace(/ is reached.*/, ''))
  }
  for (const name of ['alias', 'alias', 'm-2026-01:nitro']) t.equal(await ask(name), 200, name)
  t.equal(await ask('m'), 'The limit of 3 requests per minute (rpm) of model "m"')
  t.equal(await ask('m-2026-01'), 'The limit of 3 requests per minute (rpm) of model "m"')
})

t.test('what a limit of the model or the end user refuses counts nowhere', async t => {
  const { enter, leave } = make([{ match: { end_user: '*' }, rpm: 1 }], undefined, 3)
  const ask = async (endUser: string) => {
    const ex = exchange({ principal, request: { model: 'm', messages: [] } })
    ex.caller.labels = { endUser, tags: new Map() }
    const entered = await enter({}, ex)
    if (entered.status !== 200) return entered.message
    const refused = await passedOf(ex)!
      .check([namedAs('m')])
      .catch((thrown: GatewayError) => thrown.message)
    await leave(ex)
    return refused ?? 200
  }
  t.equal(await ask('ada'), 200)
  for (let times = 0; times < 9; times++) t.match(await ask('ada'), /1 requests per minute \(rpm\) of end user "ada"/)
  t.equal(await ask('bob'), 200)
  t.equal(await ask('eve'), 200, 'the third of the organization')
  t.match(await ask('joe'), /^Rate limit exceeded for /)
})

t.test('requests at a time leave their places, and the refusal says so', async t => {
  const { enter, leave } = make([{ match: { keys: '*' }, concurrency: 1 }])
  const { ex } = await enter()
  const refused = await enter()
  t.match(
    refused.message,
    /^The limit of 1 requests at a time \(concurrency\) of key ".+" is reached\. .* 1 seconds\.$/,
  )
  t.match(refused.headers, { 'retry-after': '1', 'ratelimit-policy': '"key-concurrency";q=1;qu="concurrent-requests"' })
  await leave(refused.ex)
  t.equal((await enter()).status, 429)
  await leave(ex)
  t.equal((await enter()).status, 200)
})

t.test('a limit that only notifies lets requests pass, and is logged once in each window', async t => {
  let now = 0
  const { enter, told } = make([{ rpm: 1, on_limit: 'notify' }], () => now)
  await enter()
  t.strictSame(told, [])
  t.match(await enter(), { status: 200, headers: { 'ratelimit-remaining': '0' } })
  await enter()
  t.match(told, [{ limit: 'rpm', value: 1, of: 'org', whose: /^organization / }])
  now += 61_000
  await enter()
  t.equal(told.length, 1)
  await enter()
  t.equal(told.length, 2)
})

t.test('what clients name displaces no counter of a record, and none of another organization', async t => {
  const counters = new MemoryCounters(() => 0)
  const keysBy = (rule: Rule) => {
    const compiled = compileRule(rule)
    return (name: string, caller: Partial<Principal> = {}) => {
      const facts = { models: ['m'], labels: { endUser: name, tags: new Map([['team', name]]) } }
      return compiled.limitsFor({ ...principal, ...caller }, 'chat', facts).map(({ key }) => key)
    }
  }
  const records = (['org', 'project', 'key', 'model', 'gateway'] as const).flatMap(by => keysBy({ by, rpd: 1 })(''))
  const kept = [...records, ...keysBy({ by: 'end_user', rpd: 1 })('ann', { orgId: 'o2' }), `${principal.orgId} chat`]
  for (const key of kept) t.ok(counters.take(key, 1, 86_400_000).allowed, key)
  // In all more than the most that are named by one organization.
  const session = (id: string) => ({ session: { id, models: undefined } })
  for (const by of ['end_user', ['key', 'session']]) {
    const keysOf = keysBy({ by, rpm: 1 })
    for (let n = 0; n < 11_000; n++) for (const key of keysOf(`${n}`, session(`${n}`))) counters.take(key, 1, 60_000)
  }
  for (let address = 0; address < 11_000; address++) counters.take(`address v6 ${address}`, 1, 60_000)
  for (const key of kept) t.notOk(counters.take(key, 1, 86_400_000).allowed, key)
})
