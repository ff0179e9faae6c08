/** Long work in turns of the event loop. */
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { TurnBudget } from '../../src/lib/turn-budget.ts'
import { type Clock, Turns } from '../../src/lib/turns.ts'
import { runs } from '../helpers/runs.ts'

/** The same cases on every run. */
fc.configureGlobal({ seed: 20261120 })

/** Logs its name with each step. */
function* work(log: string[], name: string, steps = 3): Generator<undefined, string> {
  for (let step = 0; step < steps; step++) {
    log.push(name)
    yield
  }
  return name
}

/** The most that `log` grew by in one turn of the loop, until `ended`. */
async function mostInTurn(log: readonly string[], ended: Promise<unknown>): Promise<number> {
  let [most, before, isOver] = [0, 0, false]
  void ended.finally(() => {
    isOver = true
  })
  while (!isOver) {
    await setImmediate()
    most = Math.max(most, log.length - before)
    before = log.length
  }
  return most
}

t.test('tenants take turns, and the work of one goes on when that before it has ended', async t => {
  const turns = new Turns()
  const log: string[] = []
  const run = (tenant: string, name: string) => turns.run(tenant, work(log, name))
  t.strictSame(await Promise.all([run('a', 'a1'), run('a', 'a2'), run('b', 'b')]), ['a1', 'a2', 'b'])
  t.strictSame(log, ['a1', 'b', 'a1', 'b', 'a1', 'b', 'a2', 'a2', 'a2'])
})

t.test('callers get turns between the steps of their tenant', async t => {
  const turns = new Turns()
  const log: string[] = []
  const waits = async () => {
    await turns.next('a')
    log.push('caller')
  }
  await Promise.all([turns.run('a', work(log, 'a', 4)), waits(), waits()])
  t.strictSame(log, ['a', 'caller', 'a', 'caller', 'a', 'a'])
})

t.test('a step has a turn of the loop for itself, with what goes on behind it', async t => {
  const turns = new Turns()
  const log: string[] = []
  const goesOn = async (waited: Promise<unknown>, name: string) => {
    await waited
    log.push(name)
  }
  const some = Array.from({ length: 5 }, (_, at) => [
    goesOn(turns.run(`${at}`, work(log, 'step', 3)), 'work'),
    goesOn(turns.next('caller'), 'caller'),
  ])
  t.equal(await mostInTurn(log, Promise.all(some.flat())), 1)
})

t.test('a work that throws rejects, and the next one begins', async t => {
  const turns = new Turns()
  // biome-ignore lint/correctness/useYield: it throws before it would.
  function* broken(): Generator<undefined, never> {
    throw new Error('broken')
  }
  const log: string[] = []
  const rejected = turns.run('a', broken())
  const next = turns.run('a', work(log, 'b', 1))
  await t.rejects(rejected, { message: 'broken' })
  t.equal(await next, 'b')
})

/** Time that passes in steps of work, and while nothing else is to be done until it calls back. */
class VirtualClock implements Clock {
  time = 0
  /** When it was waited for a call, and until when. */
  readonly sleeps: { readonly from: number; readonly to: number }[] = []
  #call: { readonly at: number; readonly then: () => void } | undefined

  now(): number {
    return this.time
  }

  after(ms: number, then: () => void): () => void {
    const call = { at: this.time + ms, then }
    this.#call = call
    return () => {
      if (this.#call === call) this.#call = undefined
    }
  }

  async passUntil(ended: Promise<unknown>): Promise<void> {
    let isOver = false
    void ended.finally(() => {
      isOver = true
    })
    while (!isOver) {
      await setImmediate()
      if (!this.#call) continue
      const { at, then } = this.#call
      this.sleeps.push({ from: this.time, to: at })
      this.time = at
      this.#call = undefined
      then()
    }
  }
}

interface Step {
  readonly tenant: number
  readonly from: number
  readonly to: number
}

/** Steps of tenants that take so many milliseconds each, all of which wait from the beginning. */
async function stepsOf(tenants: readonly (readonly number[])[]) {
  const clock = new VirtualClock()
  const turns = new Turns(clock)
  const steps: Step[] = []
  const working = tenants.map(async (lengths, tenant) => {
    for (const length of lengths) {
      await turns.next(`${tenant}`)
      const from = clock.time
      clock.time += length
      steps.push({ tenant, from, to: clock.time })
    }
  })
  await clock.passUntil(Promise.all(working))
  return { steps, sleeps: clock.sleeps }
}

const lengthOf = ({ from, to }: Step): number => to - from
const [LONG, ARREARS] = [4, 100]
const isLong = (step: Step): boolean => lengthOf(step) >= LONG

t.test('no tenant waits for the pause of another one, and long steps take no more than half of the time', async t => {
  const short = fc.double({ min: 0.1, max: LONG - 0.1, noNaN: true })
  const any = fc.oneof(short, fc.double({ min: LONG, max: 60, noNaN: true }))
  const tenants = fc.array(fc.array(any, { minLength: 1, maxLength: 40 }), { minLength: 1, maxLength: 8 })
  const holds = fc.asyncProperty(tenants, async lengths => {
    const { steps, sleeps } = await stepsOf(lengths)
    for (const { from } of sleeps) {
      const before = steps.filter(({ to }) => to <= from)
      /** By how much the free time that half of each stretch would be has been too little. */
      let even = 0
      for (const step of before.filter(isLong)) even = Math.max(even, step.from) + 2 * lengthOf(step)
      if (even - from > ARREARS) continue
      for (const [tenant, { length }] of lengths.entries()) {
        const own = before.filter(step => step.tenant === tenant)
        if (own.length === length) continue
        const last = own.at(-1)
        if (!last || !isLong(last)) return false
        if (last.to + lengthOf(last) * (2 * lengths.length - 1) <= from) return false
      }
    }
    const long = steps.filter(isLong)
    const most = Math.max(0, ...long.map(lengthOf))
    return long.every(({ from }, at) => {
      let sum = 0
      return long.slice(at).every(step => {
        sum += lengthOf(step)
        return sum <= (step.to - from + ARREARS) / 2 + most
      })
    })
  })
  await t.resolves(fc.assert(holds, { numRuns: runs(500) }))
})

t.test(
  'tenants with long steps share half of the loop, and one with short steps beside them waits for none',
  async t => {
    for (const count of [1, 2, 3, 5]) {
      const busy = Array.from({ length: count }, () => Array.from({ length: 100 }, () => 10))
      const { steps } = await stepsOf(busy)
      const end = steps.at(-1)!.to
      t.ok(1000 * count <= end * 0.55, `${count}: ${1000 * count} of ${end} ms`)
      const beside = await stepsOf([...busy, Array.from({ length: 50 }, () => 1)])
      const own = beside.steps.filter(({ tenant }) => tenant === count)
      t.ok(own.at(-1)!.to <= 2 * (50 + 10 * count), `${count}: ended after ${own.at(-1)!.to} ms`)
    }
  },
)

t.test('parts of work share a step as long as it has only begun', async t => {
  const clock = new VirtualClock()
  const turns = new Turns(clock)
  const log: string[] = []
  t.ok(turns.nextPart('a'), 'outside of any step')
  const parts = turns.next('a').then(async () => {
    for (const ms of [0.4, 0.4, 0.4, 0.1]) {
      log.push(turns.nextPart('b') ? 'b waits' : 'b')
      const turn = turns.nextPart('a')
      log.push(turn ? 'next' : 'same')
      await turn
      clock.time += ms
    }
  })
  await clock.passUntil(parts)
  t.strictSame(log, ['b waits', 'same', 'b waits', 'same', 'b waits', 'same', 'b waits', 'next'])
})

t.test('a full turn of the loop makes others wait, of each tenant in its turn, and no fuller than it was', async t => {
  let now = 1
  const budget = new TurnBudget(() => now)
  t.equal(budget.next('a'), undefined, 'the first piece of a turn')
  now += 19
  t.equal(budget.next('a'), undefined, 'there is room')
  now += 1
  const log: string[] = []
  const waits = async (tenant: string, name: string) => {
    await budget.next(tenant)
    log.push(name)
    now += 6
  }
  const all = [waits('a', 'a1'), waits('a', 'a2'), waits('a', 'a3'), waits('b', 'b1')]
  t.strictSame(log, [])
  t.equal(await mostInTurn(log, Promise.all(all)), 2, 'ten milliseconds of those that have waited')
  t.strictSame(log, ['a1', 'b1', 'a2', 'a3'])
  t.equal(budget.next('a'), undefined, 'a new turn has room')
})
