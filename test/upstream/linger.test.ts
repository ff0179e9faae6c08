/** Answers that are read on after their client has left: how many at a time. */
import t from 'tap'
import { Lingering } from '../../src/upstream/linger.ts'

t.test('an organization reads 64 answers on, and a process 512 of all organizations', async t => {
  const slots = new Lingering()
  const taken = (tenant: string) => Array.from({ length: 100 }, () => slots.take(tenant)).filter(Boolean).length
  const organizations = Array.from({ length: 9 }, (_, at) => `organization-${at}`)
  t.strictSame(organizations.map(taken), [64, 64, 64, 64, 64, 64, 64, 64, 0])
  slots.leave('organization-0')
  t.strictSame([slots.take('organization-8'), slots.take('organization-1')], [true, false])
  const few = new Lingering({ time: 1, size: 1, per_organization: 2 })
  t.strictSame([few.take('a'), few.take('a'), few.take('a'), few.take('b')], [true, true, false, true])
})
