/** Answers wait for memory that others hold (docs/reliability.md). */
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import { errors, type GatewayError } from '../../src/lib/error.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { AnswerMemory } from '../../src/upstream/answer-memory.ts'

const MIB = 1024 * 1024
/** Bytes of an answer, which takes twice as much. */
const SIZE = 2.5 * MIB
const room = (bytes: number) => {
  const budget = new MemoryBudget(bytes, { memory: () => 0 })
  return { budget, memory: new AnswerMemory(budget) }
}
/** Status of the error that ends a wait. */
const failed = (waits: Promise<void> | undefined) =>
  Promise.resolve(waits).then(
    () => undefined,
    ({ status }: GatewayError) => status,
  )
const turn = () => new Promise(resolve => setImmediate(resolve))

t.test('answers that come together all come to their end, one after another where there is room for one', async t => {
  const { budget, memory } = room(10 * MIB)
  const order: number[] = []
  await Promise.all(
    Array.from({ length: 8 }, async (_, at) => {
      const lease = memory.lease('a', new Cancellation())
      for (let read = 0; read < SIZE; read += MIB / 2) {
        await lease.coverInTurn(read + MIB / 2)
        await turn()
      }
      lease.wasRead()
      order.push(at)
      lease.release()
    }),
  )
  t.strictSame(order, [0, 1, 2, 3, 4, 5, 6, 7])
  t.equal(budget.used, 0)
})

t.test('where there is much room, only as much is kept free as the first of them may need', async t => {
  const { memory } = room(400 * MIB)
  const grown = (tenant: string, bytes: number) => {
    const lease = memory.lease(tenant, new Cancellation())
    return { lease, waits: lease.coverInTurn(bytes) }
  }
  const first = grown('a', MIB / 2)
  const second = grown('a', 75 * MIB)
  t.strictSame([first.waits, second.waits], [undefined, undefined])
  const third = grown('a', 25 * MIB)
  t.ok(third.waits, 'it waits')
  t.equal(grown('b', 30 * MIB).waits, undefined, 'and keeps no other organization waiting')
  t.equal(first.lease.coverInTurn(10 * MIB), undefined, 'nor the first one')
  second.lease.release()
  await third.waits
  t.equal(third.lease.held, 50 * MIB)
})

t.test('a wait ends with its request, and at once where nothing can become free', async t => {
  const { budget, memory } = room(10 * MIB)
  const large = memory.lease('a', new Cancellation())
  t.equal(await failed(large.coverInTurn(10 * MIB)), 502, 'alone')
  large.release()
  const parts: (typeof large)[] = []
  const [one, two] = [
    memory.lease('a', new Cancellation(), undefined, parts),
    memory.lease('a', new Cancellation(), undefined, parts),
  ]
  t.equal(one.coverInTurn(SIZE), undefined)
  one.wasRead()
  t.equal(await failed(two.coverInTurn(SIZE)), 502, 'beside parts of the same request')
  const signal = new Cancellation()
  const left = memory.lease('a', signal)
  const waits = failed(left.coverInTurn(SIZE))
  signal.abort(errors.aborted())
  t.equal(await waits, 499)
  for (const lease of [one, two, left]) lease.release()
  t.equal(budget.used, 0)
})
