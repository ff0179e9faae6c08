import t from 'tap'
import { RetryBudget } from '../../src/routing/budget.ts'

t.test('a spent retry budget refills by time, up to its reserve', async t => {
  let now = 0
  const budget = new RetryBudget(0.1, 2, () => now)
  t.strictSame([budget.take(), budget.take(), budget.take()], [true, true, false])
  now = 30_000
  t.strictSame([budget.take(), budget.take()], [true, false], 'half of the reserve after half a minute')
  now = 600_000
  t.strictSame([budget.take(), budget.take(), budget.take()], [true, true, false], 'never more than the reserve')
})
