/** What routing remembers: weighted minutes, circuits and affinity, under a clock that only the test moves. */
import fc from 'fast-check'
import t from 'tap'
import type { CircuitPolicy, History } from '../../src/core/ports.ts'
import { MemoryAffinity } from '../../src/stores/memory/affinity.ts'
import { MemoryCircuits } from '../../src/stores/memory/circuits.ts'
import { MemoryMeasurements } from '../../src/stores/memory/measurements.ts'

const MINUTE = 60_000
const history: History = {
  minutes: 60,
  newest: 1,
  recent: 5,
  newestWeight: 10,
  recentWeight: 3,
  restWeight: 1,
  usualLatency: 1000,
  usualThroughput: 50,
}
const policy: CircuitPolicy = { failures: 5, baseMs: 30_000, maxMs: 300_000, jitter: 0 }

function measuring() {
  const clock = { ms: 500 * MINUTE }
  const measurements = new MemoryMeasurements(() => clock.ms)
  return { clock, measurements, read: (weights = history) => measurements.read('a/m', weights) }
}

t.test('uptime weighs the minute that runs ten times, the four before it three times', async t => {
  const { clock, measurements, read } = measuring()
  t.equal(read(), undefined, 'of whom nothing is known, nothing is told')
  const minute = (ok: number, failed: number) => {
    for (let count = 0; count < ok; count++) measurements.add('a/m', { ok: true })
    for (let count = 0; count < failed; count++) measurements.add('a/m', { ok: false })
  }
  minute(8, 2)
  t.match(read(), { requests: 10, uptime: 80, throughput: undefined, latency: undefined })
  clock.ms += MINUTE
  minute(10, 0)
  // 3 × 10 + 10 × 10, of which 3 × 2 failed.
  t.equal(read()!.uptime, 100 * (1 - 6 / 130))
  clock.ms += 4 * MINUTE
  minute(1, 1)
  // 1 × 10 (five minutes ago), 3 × 10, 10 × 2; 1 × 2 and 10 × 1 failed.
  t.equal(read()!.uptime, 100 * (1 - 12 / 60))
  t.equal(read()!.requests, 22)
  clock.ms += 54 * MINUTE
  t.equal(read()!.requests, 22)
  clock.ms += MINUTE
  t.equal(read()!.requests, 12, 'after an hour a minute is forgotten')
  clock.ms += 60 * MINUTE
  t.match(read(), { requests: 0, uptime: undefined })
})

t.test('offers of its own providers let an organization forget no measurements but its own', async t => {
  const { measurements } = measuring()
  const kept = ['openai/m', 'ollama/llama3:8b', 'B:mine/m']
  for (const offer of kept) measurements.add(offer, { ok: true }, 'B')
  const own = Array.from({ length: 2000 }, (_, n) => `A:mine/${n}`)
  for (const offer of own) measurements.add(offer, { ok: true }, 'A')
  t.strictSame(
    kept.map(offer => measurements.read(offer, history, 'B')?.requests),
    [1, 1, 1],
  )
  const read = own.filter(offer => measurements.read(offer, history, 'A') !== undefined)
  t.ok(read.length <= 1000, `${read.length} offers`)
  t.equal(read.at(-1), own.at(-1))
})

t.test('callers that left are in no count, but the speed of their answers is measured', async t => {
  const { measurements, read } = measuring()
  measurements.add('a/m', { firstTokenMs: 100, tokensPerSecond: 10 })
  measurements.add('a/m', { firstTokenMs: 300 })
  measurements.add('a/m', { ok: true, tokensPerSecond: 30 })
  measurements.add('a/m', { firstTokenMs: -1, tokensPerSecond: Number.POSITIVE_INFINITY })
  t.match(read(), { requests: 1, uptime: 100, latency: 200, throughput: 20 })
})

t.test('speed is weighted like uptime, and the last minutes are kept by themselves', async t => {
  const { clock, measurements, read } = measuring()
  measurements.add('a/m', { ok: false, tokensPerSecond: 10, firstTokenMs: 1000 })
  clock.ms += 10 * MINUTE
  measurements.add('a/m', { ok: true, tokensPerSecond: 120, firstTokenMs: 100 })
  t.match(read(), { throughput: 110, latency: 2000 / 11, lately: { requests: 1, errors: 0 } })
  clock.ms += MINUTE
  measurements.add('a/m', { ok: false })
  t.match(read()!.lately, { requests: 2, errors: 1 })
  clock.ms += 2 * MINUTE
  t.match(read()!.lately, { requests: 0, errors: 0 })
})

t.test('another history weighs the same minutes anew, and a clock that runs back changes nothing', async t => {
  const { clock, measurements, read } = measuring()
  measurements.add('a/m', { ok: false })
  clock.ms += 2 * MINUTE
  measurements.add('a/m', { ok: true })
  t.equal(read()!.uptime, 100 * (1 - 3 / 13))
  t.equal(read({ ...history, newestWeight: 1, recentWeight: 1 })!.uptime, 50)
  t.equal(read({ ...history, minutes: 2 })!.uptime, 100)
  clock.ms -= 60 * MINUTE
  measurements.add('a/m', { ok: true })
  t.equal(read()!.requests, 3)
  clock.ms += 500 * MINUTE
  t.equal(read()!.requests, 0, 'a gap of any length empties all minutes')
})

t.test('of very many offers the ones that were used last are remembered', async t => {
  const { measurements, read } = measuring()
  measurements.add('a/m', { ok: true })
  for (let count = 0; count < 3000; count++) measurements.add(`${count}/m`, { ok: true })
  t.equal(read(), undefined)
  t.equal(measurements.read('2999/m', history)!.requests, 1)
})

t.test('each organization sees its own samples, and of others what two of them agree on', async t => {
  const { measurements } = measuring()
  const tell = (org: string, times: number, sample: object) => {
    for (let count = 0; count < times; count++) measurements.add('a/m', sample, org)
  }
  const seen = (org: string | null) => {
    const { requests, uptime, latency, throughput } = measurements.read('a/m', history, org)!
    const whole = (value: number | undefined) => (value === undefined ? undefined : Math.round(value))
    return [requests, whole(uptime), whole(latency), whole(throughput)]
  }
  const nothing = [0, undefined, undefined, undefined]
  tell('x', 50, { ok: false, firstTokenMs: 60_000, tokensPerSecond: 1 })
  t.strictSame([seen('x'), seen('y')], [[50, 0, 60_000, 1], nothing])
  t.strictSame(seen(null), seen('x'), 'the only one speaks for the offer, where nobody in particular wants to know')
  tell('y', 50, { ok: true, firstTokenMs: 200, tokensPerSecond: 100 })
  t.strictSame(
    [seen('x'), seen('y')],
    [
      [50, 0, 60_000, 1],
      [50, 100, 200, 100],
    ],
  )
  t.strictSame(seen('z'), [100, 100, 1000, 50], 'two that contradict each other tell nothing')
  tell('z', 50, { ok: true, firstTokenMs: 200, tokensPerSecond: 100 })
  t.strictSame(seen('z'), [150, 100, 600, 75])
  t.match(seen('y'), [150, 100, 600, 75])
  t.strictSame(measurements.read('a/m', history, 'y')!.lately, { requests: 100, errors: 0 })
  tell('y', 500, { ok: false })
  tell('z', 500, { ok: false })
  t.ok(measurements.read('a/m', history, 'new')!.uptime! < 20, 'what two have found out moves a third one')
  t.match(measurements.read('a/m', history, 'new'), { organizations: 3 })
})

t.test('whatever one organization does, what another one sees stays within what it and a third one found', async () => {
  const count = fc.integer({ min: 1, max: 40 })
  const sample = fc.record({ ok: fc.boolean(), firstTokenMs: fc.nat(100_000), tokensPerSecond: fc.nat(5000) })
  fc.assert(
    fc.property(
      count,
      count,
      fc.nat(2000),
      fc.nat(2000),
      fc.array(sample, { maxLength: 300 }),
      (n, m, one, two, attack) => {
        const { measurements } = measuring()
        for (let at = 0; at < n; at++)
          measurements.add('a/m', { ok: true, firstTokenMs: one, tokensPerSecond: one }, 'x')
        for (let at = 0; at < m; at++)
          measurements.add('a/m', { ok: true, firstTokenMs: two, tokensPerSecond: two }, 'y')
        for (const told of attack) measurements.add('a/m', told, 'attacker')
        const { uptime, latency, throughput } = measurements.read('a/m', history, 'x')!
        const within = (value: number, usual: number) =>
          value >= Math.min(one, two, usual) - 1e-3 && value <= Math.max(one, two, usual) + 1e-3
        return uptime === 100 && within(latency!, 1000) && within(throughput!, 50)
      },
    ),
    { seed: 20261123 },
  )
})

t.test('active organizations are counted one by one, all others together', async t => {
  const { clock, measurements } = measuring()
  const tell = (org: string, ok: boolean) => {
    for (let count = 0; count < 20; count++) measurements.add('a/m', { ok }, org)
  }
  for (let org = 0; org < 20; org++) tell(`org-${org}`, true)
  tell('late', false)
  t.match(measurements.read('a/m', history, 'late'), { requests: 420, organizations: 7 })
  clock.ms += 10 * MINUTE
  tell('late', false)
  t.match(measurements.read('a/m', history, 'late')!.requests, 440)
  t.ok(measurements.read('a/m', history, 'late')!.uptime! < 60, 'it has a place of its own now')
})

function breaking(random = () => 0) {
  const clock = { ms: MINUTE }
  const circuits = new MemoryCircuits({ now: () => clock.ms, random })
  const fail = (times = 1) => Array.from({ length: times }, () => circuits.failed('a', policy)).at(-1)
  return { clock, circuits, fail, state: () => circuits.state('a') }
}

t.test(
  'UF-16 a circuit opens at the fifth failure in a row, lets one probe through, and closes after a success',
  async t => {
    const { clock, circuits, fail, state } = breaking()
    fail(4)
    circuits.succeeded('a')
    t.notOk(circuits.failing('a'))
    t.equal(fail(4), undefined)
    t.strictSame([state(), circuits.failing('a'), circuits.openMs('a')], ['closed', true, 0])
    t.equal(fail(), 'organization')
    t.strictSame([state(), circuits.openMs('a')], ['open', 30_000])
    t.equal(fail(), undefined, 'what was under way opens it no further')
    t.equal(circuits.openMs('a'), 30_000)
    clock.ms += 30_000
    t.equal(state(), 'half-open')
    circuits.begin('a')
    t.equal(state(), 'open', 'one probe at a time')
    circuits.succeeded('a')
    t.strictSame([state(), circuits.failing('a')], ['closed', false])
  },
)

t.test('UF-16 every opening in a row is longer, to a bound; a time of peace ends the row', async t => {
  const { clock, circuits, fail, state } = breaking()
  fail(5)
  for (const seconds of [60, 90, 120, 150, 180, 210, 240, 270, 300, 300]) {
    clock.ms += circuits.openMs('a')
    circuits.begin('a')
    t.equal(fail(), 'organization')
    t.equal(circuits.openMs('a'), seconds * 1000)
  }
  clock.ms += 300_000
  circuits.begin('a')
  circuits.succeeded('a')
  clock.ms += 1000
  fail(5)
  t.equal(circuits.openMs('a'), 300_000, 'it was closed for a second only')
  clock.ms += 300_000
  circuits.begin('a')
  circuits.succeeded('a')
  clock.ms += 300_001
  fail(5)
  t.equal(circuits.openMs('a'), 30_000)
  t.equal(state(), 'open')
})

t.test('a probe without a verdict leaves its place, and who answers while it is open is probed next', async t => {
  const { clock, circuits, fail, state } = breaking()
  fail(5)
  clock.ms += 30_000
  circuits.begin('a')
  circuits.left('a')
  t.equal(state(), 'half-open')
  fail()
  t.equal(state(), 'open')
  circuits.succeeded('a')
  t.equal(state(), 'half-open')
  circuits.succeeded('a')
  t.equal(state(), 'closed')
  for (const nothing of [() => circuits.succeeded('b'), () => circuits.left('b'), () => circuits.begin('b')]) nothing()
  t.equal(circuits.state('b'), 'closed')
})

t.test('a credential that was refused is skipped at once, and for as long as the provider says', async t => {
  const { clock, circuits, state } = breaking()
  t.equal(circuits.trip('a', policy), 'organization')
  t.equal(circuits.trip('a', policy), undefined)
  t.equal(circuits.openMs('a'), 30_000)
  circuits.cool('a', 90_000)
  t.equal(circuits.openMs('a'), 90_000)
  circuits.cool('a', 1000)
  t.equal(circuits.openMs('a'), 90_000, 'never for less than before')
  clock.ms += 90_000
  t.equal(state(), 'half-open')
  circuits.cool('b', 10)
  t.equal(circuits.state('b'), 'open')
})

const STATES = ['x', 'y', 'z'] as const
function opening() {
  const clock = { ms: MINUTE }
  const circuits = new MemoryCircuits({ now: () => clock.ms, random: () => 0 })
  const fail = (org: string, times: number) =>
    Array.from({ length: times }, () => circuits.failed('a', policy, org)).at(-1)
  return { clock, circuits, fail, states: () => STATES.map(org => circuits.state('a', org)) }
}

t.test('one organization opens a circuit for itself, and two of them open it for all', async t => {
  const { clock, circuits, fail, states } = opening()
  t.equal(fail('x', 5), 'organization')
  fail('x', 100)
  t.strictSame(states(), ['open', 'closed', 'closed'])
  t.equal(circuits.state('a', null), 'open', 'alone it speaks for the target where nobody in particular wants to know')
  circuits.succeeded('a', 'y')
  t.equal(circuits.state('a', null), 'closed')
  t.ok(circuits.failing('a', 'x') && !circuits.failing('a', 'y'))
  fail('x', 1)
  t.equal(fail('y', 2), undefined)
  t.strictSame(states(), ['open', 'closed', 'closed'], 'one counts for half at most')
  t.equal(fail('y', 1), 'everyone')
  t.strictSame(states(), ['open', 'open', 'open'])
  t.equal(circuits.openMs('a', 'z'), 30_000)

  clock.ms += 60_000
  t.strictSame(states(), ['half-open', 'half-open', 'half-open'])
  circuits.begin('a', 'z')
  t.strictSame(states(), ['open', 'open', 'open'], 'one probe at a time')
  clock.ms += 30_000
  t.equal(circuits.state('a', 'z'), 'half-open', 'a probe that hangs keeps others out for as long as it was open')
  t.equal(fail('x', 1), 'everyone')
  clock.ms += 61_000
  fail('x', 1)
  t.strictSame(states(), ['open', 'half-open', 'half-open'], 'nobody holds it open alone')
  circuits.begin('a', 'y')
  circuits.succeeded('a', 'y')
  t.strictSame(states(), ['open', 'closed', 'closed'])
})

t.test('failures of several organizations in a row add up, until one of them is answered', async t => {
  const { clock, circuits, fail, states } = opening()
  for (const org of ['o1', 'o2', 'o3', 'o4']) fail(org, 1)
  circuits.succeeded('a', 'o9')
  t.equal(fail('o5', 1), undefined)
  for (const org of ['o1', 'o2', 'o3']) t.equal(fail(org, 1), undefined)
  t.equal(fail('o4', 1), 'everyone')
  t.strictSame(states(), ['open', 'open', 'open'])
  const other = opening()
  other.fail('x', 4)
  other.clock.ms += 6 * MINUTE
  t.equal(other.fail('y', 3), undefined, 'what was told long ago does not count')
  t.equal(clock.ms, MINUTE)
})

t.test('two organizations open a circuit for all, for a refused credential and for Retry-After', async t => {
  const { circuits, states } = opening()
  t.equal(circuits.trip('a', policy, 'x'), 'organization')
  t.strictSame(states(), ['open', 'closed', 'closed'])
  t.equal(circuits.cool('a', 90_000, 'y'), 'everyone')
  t.strictSame([circuits.openMs('a', 'x'), circuits.openMs('a', 'z')], [90_000, 90_000])
  circuits.cool('a', 120_000, 'y')
  t.strictSame([circuits.openMs('a', 'y'), circuits.openMs('a', 'z')], [120_000, 90_000], 'not by later failures')
  circuits.cool('a', 150_000, null)
  t.equal(circuits.openMs('a', 'z'), 150_000)
  t.equal(circuits.trip('b', policy, null), 'everyone')
  t.equal(circuits.state('b', 'z'), 'open')
})

t.test('an organization of very many targets that fail makes others forget nothing', async t => {
  const { circuits, fail, states } = opening()
  fail('y', 5)
  for (let count = 0; count < 12_000; count++) circuits.failed(`${count}`, policy, 'x')
  t.strictSame([states()[1], circuits.failing('0', 'x'), circuits.failing('11999', 'x')], ['open', false, true])
})

t.test('chance spreads the openings, so that not all come back at once', async t => {
  const { circuits } = breaking(() => 0.5)
  circuits.trip('a', { ...policy, jitter: 0.2 })
  t.equal(circuits.openMs('a'), 33_000)
})

t.test('an affinity entry lasts as long as its time', async t => {
  const clock = { ms: MINUTE }
  const affinity = new MemoryAffinity(() => clock.ms)
  affinity.set('k', 'a/m', 1000, 'org')
  clock.ms += 1000
  t.equal(affinity.get('k'), 'a/m')
  clock.ms += 1
  t.equal(affinity.get('k'), undefined)
  affinity.set('k', 'a/m', 1000, 'org')
  affinity.set('k', 'b/m', 0, 'org')
  t.equal(affinity.get('k'), undefined)
  for (let count = 0; count < 25_000; count++) affinity.set(`${count}`, 'a/m', 1000, 'org')
  t.strictSame([affinity.get('0'), affinity.get('24999')], [undefined, 'a/m'], 'there is a bound')
  affinity.set('other', 'a/m', 100_000, 'other')
  for (let count = 0; count < 25_000; count++) affinity.set(`more ${count}`, 'a/m', 1000, 'org')
  t.equal(affinity.get('other'), 'a/m', 'whatever one organization does, what another one has stays')
})
