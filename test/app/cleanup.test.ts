/** A cleanup closes everything that is open, whatever fails on the way. */
import t from 'tap'
import { CleanupStack, withCleanup } from '../../src/app/cleanup.ts'

const fail = (message: string) => () => Promise.reject(new Error(message))

t.test('all parts are closed in reverse order, also after one fails, and the first failure is reported', async t => {
  const open = new CleanupStack()
  const closed: string[] = []
  open.add(() => closed.push('store'))
  open.add(fail('second'))
  open.add(() => closed.push('admin'))
  open.add(fail('first'))
  await t.rejects(open.close(), { message: 'first' })
  t.strictSame(closed, ['admin', 'store'])
  await open.close()
})

t.test('what cannot be put together says why, whatever fails to close', async t => {
  const closed: string[] = []
  const start = withCleanup(async open => {
    open.add(() => closed.push('store'))
    open.add(fail('not closed'))
    throw new Error('port 8080 is in use')
  })
  await t.rejects(start, { message: 'port 8080 is in use' })
  t.strictSame(closed, ['store'])
})
