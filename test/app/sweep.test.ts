/** The sweep that lists requests of ended processes. */
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { CleanupStack } from '../../src/app/cleanup.ts'
import { type Components, sweepRegularly } from '../../src/app/components.ts'

t.test('a sweep that is due while one runs is left out', async t => {
  let due = () => {}
  t.intercept(globalThis, 'setInterval', {
    value: (callback: () => void) => {
      due = callback
      return { unref() {} }
    },
  })
  const ends: (() => void)[] = []
  const recover = () => new Promise<number>((_resolve, reject) => ends.push(() => reject(new Error('disk full'))))
  const warned: unknown[] = []
  const log = { warn: (_: object, message: string) => warned.push(message) }
  sweepRegularly({ stores: { ledger: { recover } }, log } as unknown as Components, new CleanupStack())
  for (const sweeps of [1, 2]) {
    due()
    due()
    t.equal(ends.length, sweeps)
    ends.at(-1)!()
    await turn()
  }
  t.strictSame(warned, ['orphan sweep failed', 'orphan sweep failed'])
})
