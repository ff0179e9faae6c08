/**
 * Ten thousand requests through the `route` filter, under a clock and a chance of the test's own: five providers that
 * change their speed, their price and their faults. Prints what it finds.
 */
import t from 'tap'
import type { Catalog } from '../../src/core/catalog.ts'
import { route } from '../../src/filters/route/index.ts'
import { type Facts, scoresOf, weightsFor } from '../../src/routing/score.ts'
import { upstreamError } from '../../src/wire/upstream-error.ts'
import { asking, catalogOf, Memory, priced, provider, settingsOf } from './kit.ts'

const REQUESTS = 10_000
/** A request every two seconds. */
const EVERY_MS = 2000
const TOKENS = 200

interface Nature {
  /** USD per million tokens. */
  readonly price: string
  /** Tokens per second, and milliseconds to the first of them. */
  readonly speed: number
  readonly firstMs: number
  /** Share of requests that fail. */
  readonly faults: number
}
const calm: Record<string, Nature> = {
  a: { price: '1', speed: 100, firstMs: 400, faults: 0.002 },
  b: { price: '1.2', speed: 80, firstMs: 500, faults: 0.002 },
  c: { price: '1.5', speed: 90, firstMs: 300, faults: 0.001 },
  d: { price: '2', speed: 120, firstMs: 300, faults: 0.001 },
  e: { price: '0.7', speed: 60, firstMs: 900, faults: 0.3 },
}
const phases: { says: string; change: Record<string, Partial<Nature>> }[] = [
  { says: 'all are as they are', change: {} },
  { says: 'a is slow', change: { a: { speed: 20, firstMs: 1500 } } },
  { says: 'and b costs more', change: { a: { speed: 20, firstMs: 1500 }, b: { price: '3' } } },
  {
    says: 'and c is down',
    change: { a: { speed: 20, firstMs: 1500 }, b: { price: '3' }, c: { faults: 1 } },
  },
]
const natures = phases.map(({ change }) =>
  Object.fromEntries(Object.entries(calm).map(([id, nature]) => [id, { ...nature, ...change[id] }])),
)
const providers = new Map(Object.keys(calm).map(id => [id, provider(id)]))
const catalogs: Catalog[] = natures.map(nature =>
  catalogOf({ m: { offers: Object.entries(nature).map(([id, { price }]) => [providers.get(id)!, priced(price)]) } }),
)

/** Always the same numbers, from 0 to below 1 (mulberry32). */
function chance(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const settings = settingsOf({})

/** Providers whose true score is within the margin of the best one's, which is all that a preference promises. */
function bestOf(nature: Record<string, Nature>): Set<string> {
  const ids = Object.keys(nature)
  const facts: Facts[] = ids.map(id => {
    const { price, speed, firstMs, faults } = nature[id]!
    const uptime = 100 * (1 - faults)
    const throughput = TOKENS / (firstMs / 1000 + TOKENS / speed)
    return { price: Number(price), uptime, throughput, latency: firstMs, caching: false, priority: 1 }
  })
  const weights = weightsFor({ strategy: 'auto', streaming: true, long: false, image: false }, settings)
  const totals = scoresOf(facts, weights, settings).map(({ total }) => total)
  const least = Math.min(...totals)
  return new Set(ids.filter((_, index) => totals[index]! <= least + settings.preference.margin))
}

/** Runs all phases; `at` is told of every attempt. */
async function run(exploration: number) {
  const memory = new Memory()
  const random = chance(20261120)
  const draws: number[] = []
  const drawn = () => {
    const value = random()
    draws.push(value)
    return value
  }
  const world = chance(7)
  const filter = route.create({ ...settings, exploration }, { ...memory, random: drawn } as never)
  const attempts: { request: number; phase: number; by: string; ok: boolean }[] = []
  const visible: number[] = []
  const explored: number[] = []
  let cost = 0
  let extra = 0
  for (let request = 0; request < REQUESTS; request++) {
    const phase = Math.floor((request * phases.length) / REQUESTS)
    const nature = natures[phase]!
    memory.time += EVERY_MS
    draws.length = 0
    const ex = asking(catalogs[phase]!, { stream: true })
    const next = async () => {
      const by = ex.target!.provider.id
      const { speed, firstMs, faults } = nature[by]!
      const ok = world() >= faults
      attempts.push({ request, phase, by, ok })
      if (!ok) throw upstreamError(500, { message: 'down' })
      const noise = 0.8 + 0.4 * world()
      ex.timings.sent = ex.timings.start
      ex.timings.answered = ex.timings.start + firstMs * noise
      ex.timings.end = ex.timings.answered + (1000 * TOKENS) / (speed * noise)
      ex.usage.completion = TOKENS
      return { status: 200, headers: [], events: [] as never }
    }
    try {
      await filter.handle!(ex, next)
      ex.answer.outcome = 'ok'
    } catch {
      visible.push(request)
      ex.answer.outcome = 'error'
    }
    filter.finish!(ex, true)
    const by = attempts.at(-1)!.by
    const paid = Number(nature[by]!.price)
    cost += paid
    if (draws.length > 0 && draws[0]! < exploration) {
      explored.push(request)
      extra += Math.max(0, paid - Math.min(...[...bestOf(nature)].map(id => Number(nature[id]!.price))))
    }
  }
  return { attempts, visible, explored, cost, extra }
}

t.test('most requests go to the best provider, and one that newly fails is soon left', async t => {
  const { attempts, visible, explored, cost, extra } = await run(settings.exploration)
  const share = (phase: number) => {
    const best = bestOf(natures[phase]!)
    const own = attempts.filter(attempt => attempt.phase === phase && attempt.ok)
    return own.filter(({ by }) => best.has(by)).length / own.length
  }
  const shares = phases.map((_, phase) => share(phase))
  const total = shares.reduce((sum, one) => sum + one) / shares.length
  for (const [phase, { says }] of phases.entries()) {
    t.comment(
      `${says}: best ${[...bestOf(natures[phase]!)].join()}, ${(100 * shares[phase]!).toFixed(1)} % of requests`,
    )
  }
  t.comment(`on the best provider: ${(100 * total).toFixed(2)} %`)
  t.ok(total >= 0.9)
  t.ok(shares.every(one => one >= 0.7))

  t.comment(`explored: ${explored.length} requests, which cost ${((100 * extra) / cost).toFixed(3)} % of all`)
  t.ok(explored.length > REQUESTS * 0.005 && explored.length < REQUESTS * 0.015)
  t.ok(extra / cost < 0.01)

  const down = phases.length - 1
  const late = attempts.filter(({ phase, by }) => phase === down && by === 'c').map(({ request }) => request)
  // It is left when ten requests in a row have gone elsewhere.
  const before = 1 + late.findIndex((request, index) => (late[index + 1] ?? REQUESTS) - request > 10)
  const probes = late.length - before
  t.comment(`the failing provider got ${before} attempts before it was left, and ${probes} probes afterwards`)
  t.ok(before <= 10)
  t.ok(before > 0 && probes < 40)

  const retries = attempts.length - REQUESTS
  t.comment(`attempts: ${attempts.length} for ${REQUESTS} requests; failures that a client saw: ${visible.length}`)
  t.strictSame(visible, [])
  t.ok(attempts.length < 1.2 * REQUESTS + 3)
  t.ok(retries > 0, 'there were failures')
})

t.test('without chance, every run is the same', async t => {
  const [one, two] = [await run(0), await run(0)]
  t.strictSame(one.attempts.slice(0, 2000), two.attempts.slice(0, 2000))
  t.strictSame([one.cost, one.explored], [two.cost, []])
})
