/** The caller of a stream is judged again while it runs. */
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { Principal } from '../../src/core/ports.ts'
import { recheck } from '../../src/filters/auth.ts'
import { exchange } from '../core/kit.ts'

t.test('a slow store gets one question for each stream at a time', async t => {
  const answers: ((found: Principal | undefined) => void)[] = []
  const keys = { find: () => new Promise<Principal | undefined>(answer => answers.push(answer)) }
  const services = { keys } as unknown as Parameters<typeof recheck>[1]
  const [one, other] = ['one', 'other'].map(key => exchange({ headers: { authorization: `Bearer ${key}` } }))
  const first = recheck(one!, services)
  await recheck(one!, services)
  t.equal(answers.length, 1, 'the second question waits for the first answer')
  const second = recheck(other!, services)
  t.equal(answers.length, 2, 'another stream has its own')
  for (const answer of answers) answer(undefined)
  await Promise.all([first, second])
  t.match(one!.signal.reason, { status: 401 })
  void recheck(one!, services)
  await setImmediate()
  t.equal(answers.length, 3, 'it is asked again after the answer')
})
