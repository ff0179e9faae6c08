/** The loop of attempts: who is asked after whom, how often, and what failures teach of providers and credentials. */

import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Filter } from '../../src/core/filter.ts'
import type { Reply } from '../../src/core/reply.ts'
import { route } from '../../src/filters/route/index.ts'
import { errorBody, errors, GatewayError } from '../../src/lib/error.ts'
import { OutlierDetector } from '../../src/routing/outlier-detector.ts'
import { MemoryCircuits } from '../../src/stores/memory/circuits.ts'
import { upstreamError } from '../../src/wire/upstream-error.ts'
import { principal } from '../core/kit.ts'
import { settlesInTurns } from '../helpers/cpu.ts'
import { asking, catalogOf, credential, Memory, type Offer, priced, provider, settingsOf } from '../routing/kit.ts'

/** What an attempt meets, by the key of its credential: an error, or an answer. */
type World = Record<string, (() => GatewayError) | undefined>

const status =
  (code: number, message = 'no', retryAfterMs?: number) =>
  () =>
    upstreamError(code, { message }, undefined, retryAfterMs)
const refused = () => errors.unreachable('ECONNREFUSED')
const slow = () => errors.upstreamTimeout('first event')
const stale = () => errors.unreachable('ECONNRESET').with({ stale: true })

/** A filter with a memory of its own; `asked` lists the credentials that were used, in order. */
function filterOf(options: object = {}) {
  const memory = new Memory()
  const filter: Filter = route.create(settingsOf({ exploration: 0, ...options }), memory as never)
  const asked: string[] = []
  const world: World = {}
  /** How the next answers end that have begun; the others are whole. */
  const broken: GatewayError[] = []
  async function ask(ex: Exchange): Promise<Reply | GatewayError> {
    asked.length = 0
    const next = async () => {
      const by = ex.target!.credential!.id
      asked.push(by)
      ex.timings.sent = performance.now()
      const failure = world[by]?.()
      if (failure) throw failure
      ex.timings.answered = performance.now()
      return { status: 200, headers: [], events: [] as never }
    }
    try {
      const reply = await filter.handle!(ex, next)
      ex.answer.failure = broken.shift()
      ex.answer.outcome = ex.answer.failure ? 'error' : 'ok'
      return reply
    } catch (error) {
      ex.answer.outcome = 'error'
      ex.answer.failure = error as GatewayError
      return error as GatewayError
    } finally {
      ex.timings.end = performance.now()
      filter.finish!(ex, true)
    }
  }
  return { memory, ask, asked, world, broken }
}
const offers = (...all: Offer[]): Catalog => catalogOf({ m: { offers: all } })
/** Providers a, b, c …, each dearer than the one before, so that this is their order. */
const row = (...ids: string[]) => offers(...ids.map((id, index): Offer => [provider(id), priced(`${index + 1}`)]))
const codeOf = (answer: Reply | GatewayError) => (answer instanceof GatewayError ? answer.code : answer.status)
const attempts = (ex: Exchange) => ex.attempts.map(({ status, succeeded, errorType }) => [status, errorType, succeeded])

t.test('UF-06 what a provider fails by leads to the next one', async t => {
  const failures = [408, 409, 425, 429, 500, 502, 503, 504, 520, 529, 401, 402, 403, 404].map(code => status(code))
  failures.push(
    refused,
    slow,
    () => errors.truncated(),
    () => errors.invalidAnswer('it is empty'),
  )
  failures.push(status(400, 'API key not valid'), status(400, 'Your credit balance is too low'))
  for (const failure of failures) {
    const says = `${failure().upstreamStatus} ${failure().code}`
    const { ask, asked, world } = filterOf()
    world.a = failure
    const ex = asking(row('a', 'b'))
    t.equal(codeOf(await ask(ex)), 200, says)
    t.strictSame(asked, ['a', 'b'], says)
    t.match(
      attempts(ex),
      [
        [failure().upstreamStatus, String, false],
        [200, 'none', true],
      ],
      says,
    )
  }
})

t.test('UF-07 a fault of the caller ends the request, and counts against no provider', async t => {
  const faults = [status(400), status(413), status(415), status(422), status(400, 'context_length_exceeded')]
  faults.push(
    status(400, 'content_policy'),
    () => errors.insufficientCredits(),
    () => errors.internal('a defect'),
  )
  for (const fault of faults) {
    const { memory, ask, asked, world } = filterOf()
    world.a = fault
    for (let count = 0; count < 25; count++) {
      t.equal(await ask(asking(row('a', 'b'))).then(codeOf), fault().code)
      t.strictSame(asked, ['a'])
    }
    t.notOk(memory.circuits.failing('a/m') || memory.circuits.failing('a/m#a'), fault().message)
    t.equal(memory.measurements.read('a/m', { ...history })?.requests ?? 0, 0)
  }
})
const history = {
  minutes: 60,
  newest: 1,
  recent: 5,
  newestWeight: 1,
  recentWeight: 1,
  restWeight: 1,
  usualLatency: 1000,
  usualThroughput: 50,
}

t.test('answers that break after they began open the circuit as those do that never begin', async t => {
  const { memory, ask, broken } = filterOf()
  const failing = async () => {
    broken.push(errors.truncated())
    await ask(asking(row('a')))
    return memory.circuits.state('a/m')
  }
  t.strictSame([await failing(), await failing()], ['closed', 'closed'])
  await ask(asking(row('a')))
  for (let count = 0; count < 4; count++) t.equal(await failing(), 'closed', 'a whole answer is a new beginning')
  t.equal(await failing(), 'open')
})

t.test('only calls count as attempts: not keys that are spent, and not providers without a free place', async t => {
  const { ask, asked, world } = filterOf()
  for (const id of ['a', 'b', 'c']) world[id] = () => errors.providerKeySpent('')
  for (const id of ['d', 'e']) world[id] = () => errors.providerBusy(id)
  const ex = asking(row('a', 'b', 'c', 'd', 'e', 'f'))
  t.match(await ask(ex), { status: 200 })
  t.strictSame(asked, ['a', 'b', 'c', 'd', 'e', 'f'])
  t.strictSame(
    ex.attempts.map(({ target }) => target.provider.id),
    ['f'],
  )
})

t.test('of attempts that are refused here there are 32 at most', async t => {
  const { ask, asked, world } = filterOf()
  const ids = Array.from({ length: 40 }, (_, at) => `p${at}`)
  for (const id of ids) {
    world[id] = () => errors.unsupported('this wire cannot carry it', 'messages').with({ failover: true })
  }
  const answer = await ask(asking(row(...ids)))
  t.match(answer, { status: 400, param: 'messages' })
  t.equal(asked.length, 32)
})

t.test('three attempts are made at most, each at another target', async t => {
  const { ask, asked, world } = filterOf()
  for (const id of ['a', 'b', 'c', 'd']) world[id] = status(500)
  t.equal(codeOf(await ask(asking(row('a', 'b', 'c', 'd')))), 'all_providers_failed')
  t.strictSame(asked, ['a', 'b', 'c'])
  const one = filterOf({ attempts: 1 })
  one.world.a = status(500)
  await one.ask(asking(row('a', 'b')))
  t.strictSame(one.asked, ['a'])
})

t.test(
  'a failing credential leads to the next one of its provider, a failing provider to another provider',
  async t => {
    const two = provider('a', { credentials: [credential('a1'), credential('a2')] })
    const catalog = offers([two, priced('1')], [provider('b'), priced('2')])
    const rows: [failure: () => GatewayError, asked: string[]][] = [
      [status(401), ['a1', 'a2', 'b']],
      [status(429), ['a1', 'a2', 'b']],
      [status(429, 'insufficient_quota'), ['a1', 'a2', 'b']],
      [status(503), ['a1', 'b']],
      [refused, ['a1', 'b']],
      [status(404), ['a1', 'b']],
    ]
    for (const [failure, order] of rows) {
      const { ask, asked, world } = filterOf()
      world.a1 = failure
      world.a2 = failure
      t.equal(codeOf(await ask(asking(catalog))), 200)
      t.strictSame(asked, order, String(failure().upstreamStatus))
    }
    const { ask, asked, world } = filterOf()
    world.a1 = status(503)
    world.b = status(503)
    t.equal(codeOf(await ask(asking(catalog))), 200)
    t.strictSame(asked, ['a1', 'b', 'a2'], 'when nobody else is left, another credential is tried')
  },
)

t.test('x-no-fallback and sessions that must stay leave no provider, but may take its other credentials', async t => {
  const two = provider('a', { credentials: [credential('a1'), credential('a2')] })
  const catalog = offers([two, priced('1')], [provider('b'), priced('2')])
  const strict = { session: { failover: false } }
  const rows: [options: object, headers: Record<string, string>][] = [
    [{}, { 'x-no-fallback': 'true' }],
    [strict, { 'x-session-id': 's' }],
  ]
  for (const [options, headers] of rows) {
    const { ask, asked, world } = filterOf(options)
    world.a1 = status(429)
    world.a2 = status(500)
    t.equal(codeOf(await ask(asking(catalog, {}, { headers }))), 'all_providers_failed')
    t.strictSame(asked, ['a1', 'a2'])
  }
})

t.test('UF-08 a credential that is refused is not used again at once; others of its provider are', async t => {
  for (const failure of [status(401), status(402), status(403), status(429, 'insufficient_quota')]) {
    const { memory, ask, asked, world } = filterOf()
    world.a = failure
    const catalog = row('a', 'b')
    await ask(asking(catalog))
    t.match(memory.logged, [{ offer: 'a/m#a' }])
    await ask(asking(catalog))
    t.strictSame(asked, ['b'])
    t.strictSame([memory.circuits.state('a/m#a'), memory.circuits.state('a/m')], ['open', 'closed'])
    t.equal(memory.measurements.read('a/m', history), undefined, 'the provider is as good as it was')
    memory.time += 30_000
    delete world.a
    await ask(asking(catalog))
    t.strictSame([asked, memory.circuits.state('a/m#a')], [['a'], 'closed'], 'later it is tried again')
  }
})

t.test('UF-09 Retry-After of a provider is honoured for at most five minutes', async t => {
  const rows: [failure: () => GatewayError, key: string, ms: number][] = [
    [status(429, 'slow down', 7000), 'a/m#a', 7000],
    [status(429, 'slow down', 3_600_000), 'a/m#a', 300_000],
    [status(503, 'overloaded', 2000), 'a/m', 2000],
    [status(429), 'a/m#a', 0],
    [status(503), 'a/m', 0],
  ]
  for (const [failure, key, ms] of rows) {
    const { memory, ask, asked, world } = filterOf()
    world.a = failure
    const answered = ask(asking(row('a', 'b')))
    t.ok(await settlesInTurns(answered), 'nobody waits for it')
    t.equal(codeOf(await answered), 200)
    t.equal(memory.circuits.openMs(key), ms)
    await ask(asking(row('a', 'b')))
    t.strictSame(asked, ms > 0 ? ['b'] : ['a', 'b'])
    memory.time += ms
    delete world.a
    await ask(asking(row('a', 'b')))
    t.strictSame(asked, ['a'])
  }
})

t.test(
  'UF-16 after five failures in a row a provider is left, and one probe at a time finds out whether it is back',
  async t => {
    const { memory, ask, asked, world } = filterOf({ preference: { enabled: false } })
    const catalog = row('a', 'b')
    world.a = status(500)
    let tries = 0
    for (let count = 0; count < 100; count++) {
      t.equal(codeOf(await ask(asking(catalog))), 200)
      tries += asked.filter(by => by === 'a').length
    }
    t.equal(tries, 5)
    memory.time += 30_000
    await ask(asking(catalog))
    t.strictSame(asked, ['a', 'b'], 'a probe fails')
    await ask(asking(catalog))
    t.strictSame(asked, ['b'])
    memory.time += 60_000
    delete world.a
    // The second one comes while the first has no answer yet.
    const both = await Promise.all([ask(asking(catalog)), ask(asking(catalog))])
    t.strictSame(both.map(codeOf), [200, 200])
    t.strictSame(asked.sort(), ['a', 'b'])
    await ask(asking(catalog))
    t.strictSame(asked, ['a'])
  },
)

t.test('a provider that fails one time in five is left too, by its share of the last minute', async t => {
  const { memory, ask, asked, world } = filterOf({ preference: { enabled: false } })
  let [count, tries] = [0, 0]
  for (; memory.circuits.state('a/m') === 'closed' && count < 1000; count++) {
    if (count % 5 === 4) world.a = status(500)
    else delete world.a
    await ask(asking(row('a', 'b')))
    tries += asked.includes('a') ? 1 : 0
  }
  t.equal(tries, 20)
})

/** A request of one organization. */
const askingOf = (org: string, catalog: Catalog, request: object = {}): Exchange =>
  asking(catalog, request, { principal: { ...principal, orgId: org } })

t.test('failures of one organization move its own requests, those of two move all', async t => {
  const { memory, ask, asked, world } = filterOf()
  const failing = async (org: string, times: number) => {
    world.a = status(500)
    for (let count = 0; count < times; count++) await ask(askingOf(org, row('a', 'b')))
    delete world.a
  }
  const choiceOf = async (org: string) => {
    await ask(askingOf(org, row('a', 'b')))
    return [...asked]
  }
  for (let count = 0; count < 3; count++) await choiceOf('victim')
  await failing('attacker', 8)
  t.strictSame(
    [await choiceOf('attacker'), await choiceOf('victim'), await choiceOf('newcomer')],
    [['b'], ['a'], ['a']],
  )
  await failing('attacker', 100)
  t.strictSame([await choiceOf('victim'), await choiceOf('newcomer')], [['a'], ['a']])
  t.equal(memory.circuits.openMs('a/m', 'victim'), 0)
  t.match(memory.logged, [{ offer: 'a/m', organization: 'attacker' }])
  memory.time += 30_000
  await failing('attacker', 1)
  await failing('other', 5)
  t.strictSame([await choiceOf('victim'), await choiceOf('newcomer')], [['b'], ['b']], 'two of them have told it')
  t.match(memory.logged.at(-1), { offer: 'a/m', organization: undefined })
})

t.test('slow streams of one organization move scores for itself alone', async t => {
  const { memory, ask, asked } = filterOf()
  const catalog = offers([provider('a'), priced('1')], [provider('b'), priced('5')])
  const measured = (offer: string, org: string, ms: number) => {
    for (let count = 0; count < 30; count++) {
      memory.measurements.add(offer, { ok: true, firstTokenMs: ms, tokensPerSecond: 50_000 / ms }, org)
    }
  }
  const choiceOf = async (org: string) => {
    await ask(askingOf(org, catalog, { stream: true }))
    return asked[0]
  }
  measured('a/m', 'victim', 1000)
  measured('b/m', 'victim', 1000)
  measured('a/m', 'attacker', 60_000)
  measured('b/m', 'attacker', 10)
  t.strictSame([await choiceOf('attacker'), await choiceOf('victim'), await choiceOf('newcomer')], ['b', 'a', 'a'])
  measured('a/m', 'other', 60_000)
  measured('b/m', 'other', 10)
  t.strictSame([await choiceOf('newcomer'), await choiceOf('victim')], ['b', 'b'], 'two that agree move everybody')
})

t.test('an organization whose retries are used up leaves others theirs', async t => {
  const { ask, asked, world } = filterOf()
  for (const id of ['a', 'b', 'c']) world[id] = status(503)
  const attemptsOf = async (org: string) => {
    await ask(askingOf(org, row('a', 'b', 'c')))
    return asked.length
  }
  for (let count = 0; count < 100; count++) await attemptsOf('attacker')
  t.equal(await attemptsOf('attacker'), 1)
  t.equal(await attemptsOf('victim'), 3)
})

t.test('an offer is silent for the organization that finds it so, and for all when two do', async t => {
  let offset = 0
  t.intercept(performance, 'now', { value: () => offset })
  const standing = new OutlierDetector(new MemoryCircuits())
  const wait = (org: string, count: number) => Array.from({ length: count }, () => standing.began('a', 1000, org))
  const seen = (...orgs: string[]) => orgs.map(org => standing.state('a', org))
  wait('x', 6)
  const [due] = wait('y', 1)
  t.strictSame(seen('x', 'y', 'z'), ['closed', 'closed', 'closed'], 'nothing is late yet')
  offset = 1000
  t.strictSame(seen('x', 'y', 'z'), ['open', 'closed', 'closed'])
  standing.ended('a', due!, 'y')
  offset = 2000
  wait('y', 2)
  t.strictSame(seen('x', 'y', 'z'), ['open', 'closed', 'closed'], 'those of the other are not late')
  offset = 3000
  t.strictSame(seen('x', 'y', 'z'), ['open', 'open', 'open'])
  standing.answered('a')
  t.strictSame(seen('x', 'y', 'z'), ['closed', 'closed', 'closed'])
})

t.test('OB-08 a provider that falls silent is left before any deadline, and back with its first answer', async t => {
  const memory = new Memory()
  const filter = route.create(settingsOf({ exploration: 0 }), memory as never)
  let offset = 0
  t.intercept(performance, 'now', { value: () => offset })
  let stalls = false
  const held: (() => void)[] = []
  const ask = (stream: boolean) => {
    const ex = asking(row('a', 'b'), { stream })
    const next = async () => {
      ex.timings.sent = performance.now()
      if (stalls && ex.target!.provider.id === 'a') await new Promise<void>(resolve => held.push(resolve))
      ex.timings.answered = ex.timings.sent + 400
      return { status: 200, headers: [], events: [] as never }
    }
    const answer = filter.handle!(ex, next).then(() => {
      ex.answer.outcome = 'ok'
      ex.timings.end = performance.now()
      filter.finish!(ex, true)
    })
    const by = new Promise<string>(resolve => setImmediate(() => resolve(ex.target!.provider.id)))
    return { answer, by, signal: ex.signal }
  }
  for (let count = 0; count < 20; count++) await ask(true).answer
  stalls = true
  const waiting: Promise<void>[] = []
  const tried: string[] = []
  for (let count = 0; count < 100; count++) {
    offset += 200
    const { answer, by } = ask(true)
    tried.push(await by)
    if (tried.at(-1) === 'a') waiting.push(answer)
    else await answer
  }
  // Three times 400 ms.
  const attempts = tried.filter(by => by === 'a').length
  t.ok(attempts >= 5 && attempts <= 7, `${attempts} of a hundred in twenty seconds`)
  t.strictSame(tried.slice(-90), Array(90).fill('b'))
  t.equal(memory.circuits.state('a/m'), 'closed', 'it has failed nobody yet')
  held.shift()!()
  await waiting.shift()
  stalls = false
  t.equal(await ask(true).by, 'a')
  for (const go of held) go()
  await Promise.all(waiting)

  stalls = true
  const whole = Array.from({ length: 10 }, () => ask(false))
  await Promise.all(whole.map(({ by }) => by))
  offset += 60_000
  t.equal(await ask(false).by, 'a', 'a whole answer may take as long as it takes')
  for (const go of held) go()
})

t.test('UF-16 the only candidate is called even when its circuit is open', async t => {
  const { memory, ask, asked, world } = filterOf()
  world.a = status(500)
  for (let count = 0; count < 10; count++) {
    t.equal(codeOf(await ask(asking(row('a')))), 'all_providers_failed')
    t.strictSame(asked, ['a'])
  }
  t.equal(memory.circuits.state('a/m'), 'open')
  delete world.a
  t.equal(codeOf(await ask(asking(row('a')))), 200)
})

t.test('UF-17 when all providers fail, retries are a fifth of the requests and three more', async t => {
  const { ask, asked, world } = filterOf()
  for (const id of ['a', 'b', 'c']) world[id] = status(503)
  let made = 0
  for (let count = 0; count < 1000; count++) {
    t.equal(codeOf(await ask(asking(row('a', 'b', 'c')))), 'all_providers_failed')
    made += asked.length
  }
  // The first request fails at each of them before any of them is known to fail.
  t.ok(made <= 1.2 * 1000 + 3 + 2, `${made} attempts`)
  t.ok(made > 1100, 'some are made')
})

t.test('a request that its retry budget stops says so, in its error, the log and the metrics', async t => {
  const rows: [failure: () => GatewayError, status: number, code: string][] = [
    [status(500, 'the words of a provider'), 502, 'all_providers_failed'],
    [status(429), 503, 'upstream_rate_limited'],
    [refused, 502, 'fetch_failed'],
    [slow, 504, 'timeout'],
    [status(404), 502, 'all_providers_failed'],
  ]
  for (const [failure, expected, code] of rows) {
    const { ask, world, asked, memory } = filterOf({ retry: { budget: 0, reserve: 0 } })
    for (const id of ['a', 'b']) {
      world[id] = status(500)
      await ask(asking(row(id)))
      world[id] = failure
    }
    memory.logged.length = 0
    const error = (await ask(asking(row('a', 'b')))) as GatewayError
    const says = `${failure().upstreamStatus} ${code}`
    t.strictSame(asked, ['a'], says)
    t.match(
      error,
      { status: expected, code, message: /^Not every provider was tried: .* retry budget .* a minute/ },
      says,
    )
    t.strictSame(errorBody(error).error.metadata, { reason: 'retry_budget_spent' }, says)
    t.match(memory.logged, [{ model: 'm', untried: 'b/m#b' }], says)
    t.strictSame(memory.spent, ['m'], says)
  }
})

t.test('a provider that is down costs no budget of retries: one that works can always be tried next', async t => {
  const { ask, world, asked } = filterOf({ retry: { budget: 0, reserve: 0 } })
  world.a = status(503)
  for (let count = 0; count < 200; count++) t.equal(codeOf(await ask(asking(row('a', 'b')))), 200)
  t.strictSame(asked, ['b'])
})

t.test('UF-13 a request on a stale socket is repeated once, and counts against no provider', async t => {
  const { memory, ask, asked, world } = filterOf()
  let breaks = 1
  world.a = () => (breaks-- > 0 ? stale() : (undefined as never))
  const ex = asking(row('a', 'b'))
  t.equal(codeOf(await ask(ex)), 200)
  t.strictSame(asked, ['a', 'a'])
  t.strictSame(attempts(ex), [
    [0, 'network_error', false],
    [200, 'none', true],
  ])
  t.notOk(memory.circuits.failing('a/m'))
  world.a = stale
  t.equal(codeOf(await ask(asking(row('a', 'b')))), 200)
  t.strictSame(asked, ['a', 'a', 'b'], 'the second time it counts')
  t.ok(memory.circuits.failing('a/m'))
})

t.test(
  'UF-18 once the time of all attempts is over no other provider is called, and a short last attempt counts against none',
  async t => {
    const timeouts = { connect: 1, firstEvent: 10_000, idle: 1, total: 0 }
    const catalog = offers([provider('a', { timeouts }), priced('1')], [provider('b', { timeouts }), priced('2')])
    const { memory, ask, asked, world } = filterOf()
    world.a = refused
    t.equal(codeOf(await ask(asking(catalog))), 'fetch_failed')
    t.strictSame(asked, ['a'])

    const patient = filterOf()
    patient.world.a = slow
    await patient.ask(asking(row('a', 'b')))
    t.notOk(patient.memory.circuits.failing('a/m'), 'it was given no ten seconds')
    const hasty = offers([provider('a', { timeouts: { ...timeouts, firstEvent: 0, total: 60_000 } })])
    await patient.ask(asking(hasty))
    t.ok(patient.memory.circuits.failing('a/m'))
    t.ok(memory.circuits.failing('a/m'))
  },
)

t.test('SF-10 a caller that leaves ends the request, and counts against no provider', async t => {
  const { memory, ask, asked, world } = filterOf()
  const signal = new Cancellation()
  world.a = () => {
    signal.abort(errors.aborted())
    return errors.aborted()
  }
  await ask(asking(row('a', 'b'), {}, { signal }))
  t.strictSame(asked, ['a'])
  t.notOk(memory.circuits.failing('a/m'))
  memory.circuits.trip('a/m', { failures: 1, baseMs: 10, maxMs: 10, jitter: 0 }, principal.orgId)
  memory.circuits.trip('b/m', { failures: 1, baseMs: 1e6, maxMs: 1e6, jitter: 0 }, principal.orgId)
  memory.time += 10
  const again = new Cancellation()
  world.a = () => {
    again.abort(errors.aborted())
    return errors.aborted()
  }
  await ask(asking(row('a', 'b'), {}, { signal: again }))
  t.equal(memory.circuits.state('a/m'), 'half-open', 'the place of the probe is free again')
})

/** How an answer has ended, as rows of tables say it. */
type Ended = Partial<
  Pick<Exchange, 'timings' | 'usage' | 'estimated'> & Pick<Exchange['answer'], 'outcome' | 'failure'>
>

t.test('what an answer shows of its provider is measured when it has ended', async t => {
  const memory = new Memory()
  const filter = route.create(settingsOf({}), memory as never)
  const rows: [says: string, end: Ended, measured: object][] = [
    ['ok', { outcome: 'ok' }, { requests: 1, uptime: 100, latency: 250, throughput: 100 }],
    ['left', { outcome: 'aborted' }, { requests: 0, uptime: undefined, latency: 250, throughput: undefined }],
    ['broken', { outcome: 'error', failure: errors.truncated() }, { requests: 1, uptime: 0, latency: 250 }],
    ['read slowly', { outcome: 'ok', timings: { stalled: 500 } as never }, { latency: 250, throughput: undefined }],
    ['drained', { outcome: 'error', failure: errors.shuttingDown() }, { requests: 0, latency: 250 }],
  ]
  for (const [says, end, measured] of rows) {
    const ex = asking(catalogOf({ m: { offers: [[provider(says)]] } }), { stream: true })
    await filter.handle!(ex, async () => {
      ex.timings.sent = 1000
      ex.timings.answered = 1250
      return { status: 200, headers: [], events: [] as never }
    })
    ex.timings.end = 3000
    ex.usage.completion = 200
    const { timings, ...answer } = end
    Object.assign(ex.answer, answer)
    Object.assign(ex.timings, timings)
    filter.finish!(ex, true)
    t.match(memory.measurements.read(`${says}/m`, history), measured, says)
    t.equal(memory.circuits.failing(`${says}/m`), says === 'broken', says)
  }
  const ex = asking(catalogOf({ m: { offers: [[provider('whole')]] } }))
  await filter.handle!(ex, async () => {
    ex.timings.sent = 1000
    ex.timings.answered = 2000
    return { status: 200, headers: [], events: [] as never }
  })
  ex.timings.end = 9000
  ex.usage.completion = 200
  ex.answer.outcome = 'ok'
  filter.finish!(ex, true)
  const measured = memory.measurements.read('whole/m', history)
  t.match(measured, { latency: undefined, throughput: 200 }, 'of a whole answer only its provider is timed')
})

t.test('a total deadline that passes in mid-answer counts against no provider: the reader may be slow', async t => {
  const memory = new Memory()
  const filter = route.create(settingsOf({}), memory as never)
  const ex = asking(row('a'), { stream: true })
  await filter.handle!(ex, async () => ({ status: 200, headers: [], events: [] as never }))
  ex.timings.end = ex.timings.read + 60_000
  ex.answer.outcome = 'error'
  ex.answer.failure = errors.upstreamTimeout('total time')
  filter.finish!(ex, true)
  t.notOk(memory.circuits.failing('a/m'))
})

t.test('a provider that is full is not asked again in each of its regions', async t => {
  const regions = ['r1', 'r2', 'r3', 'r4', 'r5', 'r6']
  const { ask, asked, world } = filterOf()
  world.a = () => errors.providerBusy('a')
  const a = provider('a', { baseUrl: 'https://{region}.example' })
  const full = offers([a, { ...priced('1'), regions }], [provider('b'), priced('2')])
  t.equal(await ask(asking(full)).then(codeOf), 200)
  t.strictSame(asked, ['a', 'b'])
  t.equal(await ask(asking(offers([a, { ...priced('1'), regions }]))).then(codeOf), 'overloaded')
  t.strictSame(asked, ['a'])
})
