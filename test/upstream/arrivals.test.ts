/** Chunks between a provider's socket and their reader: nothing is lost, and nobody is woken for each. */
import * as fc from 'fast-check'
import t from 'tap'
import { errors } from '../../src/core/error.ts'
import { Arrivals } from '../../src/upstream/arrivals.ts'

const chunk = (text: string) => Buffer.from(text)
const textOf = (chunks: readonly Buffer[] | undefined) => chunks && Buffer.concat(chunks).toString()
/** What a reader has been given so far. */
function reader(arrivals: Arrivals): { got: (string | undefined)[]; done: Promise<void> } {
  const got: (string | undefined)[] = []
  const read = async () => {
    for (;;) {
      const chunks = await arrivals.take()
      got.push(textOf(chunks))
      if (!chunks) return
    }
  }
  return { got, done: read() }
}
/** A queue whose time comes when `tick` is called. */
function gathering() {
  const calls: (() => void)[] = []
  const arrivals = new Arrivals(
    () => {},
    call => void calls.push(call),
  )
  const tick = () => {
    for (const call of calls.splice(0)) call()
  }
  return { arrivals, tick }
}
const turn = () => new Promise<void>(resolve => setImmediate(resolve))

t.test('what comes soon after the last piece is given together, once its time has come', async t => {
  const { arrivals, tick } = gathering()
  const { got, done } = reader(arrivals)
  arrivals.push(chunk('a'), 0, false)
  await Promise.resolve()
  arrivals.push(chunk('b'), 1, false)
  await Promise.resolve()
  t.strictSame(got, ['a', 'b'], 'not before it is asked for')
  arrivals.gather()
  arrivals.push(chunk('c'), 2, false)
  arrivals.push(chunk('d'), 3, false)
  await Promise.resolve()
  t.strictSame(got, ['a', 'b'])
  tick()
  await Promise.resolve()
  t.strictSame(got, ['a', 'b', 'cd'])
  arrivals.push(chunk('e'), 1000, false)
  await Promise.resolve()
  t.strictSame(got, ['a', 'b', 'cd', 'e'], 'after a pause a piece waits for nobody')
  arrivals.push(chunk('f'), 1001, true)
  await Promise.resolve()
  t.strictSame(got.at(-1), 'f', 'nor one that is urgent')
  arrivals.push(chunk('g'), 1002, false)
  arrivals.end()
  await done
  t.strictSame(got.slice(-2), ['g', undefined], 'and the end waits for no time')
})

t.test('a reader that took what was gathered is not told of an end when the time has come', async t => {
  const { arrivals, tick } = gathering()
  arrivals.gather()
  const first = arrivals.take()
  arrivals.push(chunk('a'), 1, false)
  t.equal(textOf(await first), 'a')
  const second = arrivals.take()
  arrivals.push(chunk('b'), 2, false)
  arrivals.push(chunk('c'), 3, true)
  t.equal(textOf(await second), 'bc')
  const third = arrivals.take()
  tick()
  arrivals.push(chunk('d'), 100, false)
  t.equal(textOf(await third), 'd')
})

t.test('what came before a failure is given first', async t => {
  const arrivals = new Arrivals(() => {})
  arrivals.push(chunk('a'), 0, false)
  arrivals.fail(errors.truncated())
  t.equal(textOf(await arrivals.take()), 'a')
  await t.rejects(arrivals.take(), errors.truncated())
})

t.test('a reader gets every byte once and in order, however they come', async t => {
  const piece = fc.record({ text: fc.string({ minLength: 1 }), urgent: fc.boolean(), pause: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(piece), fc.nat(5), async (pieces, gatherAt) => {
      let taken = 0
      const arrivals = new Arrivals(() => taken++)
      const { got, done } = reader(arrivals)
      for (const [at, { text, urgent, pause }] of pieces.entries()) {
        if (at === gatherAt) arrivals.gather()
        arrivals.push(chunk(text), performance.now(), urgent)
        if (pause) await turn()
      }
      arrivals.end()
      await done
      t.equal(got.join(''), pieces.map(({ text }) => text).join(''))
      t.equal(arrivals.bytes, 0)
      t.equal(taken, got.length - 1)
    }),
    { numRuns: 50 },
  )
})
