/** Long work in turns of the event loop. */
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { TurnBudget } from '../../src/lib/turn-budget.ts'
import { Turns } from '../../src/lib/turns.ts'

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
