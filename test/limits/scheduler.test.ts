/** Long work on the event loop: at once while it is little, and in fair turns beyond that. */
import t from 'tap'
import { type Clock, Scheduler } from '../../src/limits/scheduler.ts'

/** A clock that moves only when work or a wait says so. */
class ManualClock implements Clock {
  #now = 1000
  readonly #timers: { at: number; then: () => void }[] = []

  now(): number {
    return this.#now
  }

  after(ms: number, then: () => void): void {
    this.#timers.push({ at: this.#now + ms, then })
  }

  pass(ms: number): void {
    this.#now += ms
  }

  /** Goes on to the next timer; false where there is none. */
  next(): boolean {
    const timer = this.#timers.shift()
    if (!timer) return false
    this.#now = Math.max(this.#now, timer.at)
    timer.then()
    return true
  }
}

function scheduled() {
  const clock = new ManualClock()
  const scheduler = new Scheduler(clock)
  const log: string[] = []
  const run = (tenant: string, name: string, ms: number) =>
    scheduler.run(tenant, () => {
      clock.pass(ms)
      log.push(name)
      return name
    })
  return { clock, scheduler, log, run }
}

t.test('work runs at once while it is little', t => {
  const { run, log } = scheduled()
  for (let count = 0; count < 5; count++) t.equal(run('a', 'short', 1), 'short')
  t.equal(log.length, 5)
  t.end()
})

t.test('long work is followed by a pause as long as itself, in which other work waits', async t => {
  const { clock, run, log } = scheduled()
  t.equal(run('a', 'long', 100), 'long')
  const from = clock.now()
  const waiting = run('a', 'next', 1)
  t.type(waiting, Promise)
  t.strictSame(log, ['long'])
  t.ok(clock.next())
  t.ok(clock.now() - from >= 80, `${clock.now() - from} ms`)
  t.equal(await waiting, 'next')
})

t.test('tenants take turns, however much one of them has to do', async t => {
  const { clock, run, log } = scheduled()
  run('a', 'a0', 100)
  const all = [run('a', 'a1', 30), run('a', 'a2', 30), run('a', 'a3', 30), run('b', 'b1', 30), run('c', 'c1', 30)]
  while (clock.next());
  await Promise.all(all)
  t.strictSame(log, ['a0', 'a1', 'b1', 'c1', 'a2', 'a3'])
})

t.test('other work comes in between the parts of work', async t => {
  const { clock, scheduler, run, log } = scheduled()
  function* parts() {
    for (const name of ['a1', 'a2', 'a3']) {
      clock.pass(30)
      log.push(name)
      if (name !== 'a3') yield
    }
    return 'whole'
  }
  const whole = scheduler.runAll('a', parts())
  run('b', 'b1', 30)
  let ended = false
  void whole.then(() => {
    ended = true
  })
  while (!ended) {
    clock.next()
    await new Promise(setImmediate)
  }
  t.equal(await whole, 'whole')
  t.strictSame(log, ['a1', 'b1', 'a2', 'a3'])
  function* failing() {
    yield
    throw new Error('broken')
  }
  clock.pass(1000)
  await t.rejects(scheduler.runAll('c', failing()), /broken/)
})

t.test('what work throws is the failure of its caller alone', async t => {
  const { clock, scheduler, run } = scheduled()
  const fail = () => {
    throw new Error('broken')
  }
  t.throws(() => scheduler.run('a', fail), /broken/)
  run('a', 'long', 100)
  const rejected = t.rejects(Promise.resolve(scheduler.run('a', fail)), /broken/)
  const next = run('a', 'next', 1)
  while (clock.next());
  await rejected
  t.equal(await next, 'next')
})
