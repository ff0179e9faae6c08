/** Another process on the same master keys and database: forked by tests, told what to do, and killed at will. */
import { Keyring } from '../../src/stores/keyring.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import { obey } from '../helpers/obey.ts'

export type Order =
  /** Opens the ring of a file; answers with its version. */
  | { do: 'ring'; file: string }
  /** Re-encrypts under a new key, and when the first keys are done says `begun` and stands still. */
  | { do: 'reencrypt'; path: string }
  /** Adds a rule that denies a model to an organization. */
  | { do: 'deny'; path: string; organization: string; model: string }

async function run(order: Order): Promise<unknown> {
  switch (order.do) {
    case 'ring':
      return new Keyring({ given: undefined, file: order.file }).version
    case 'reencrypt': {
      const { policies, close } = openSqlite(order.path)
      let begun = false
      const watch = setInterval(async () => {
        const { versions } = (await policies.masterKeys.versions()).find(({ kind }) => kind === 'provider_keys')!
        if (begun || versions.length < 2) return
        begun = true
        process.send?.('begun', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0))
      }, 0)
      const done = await policies.masterKeys.reencrypt(true, 'test')
      clearInterval(watch)
      await close()
      return done
    }
    case 'deny': {
      const { policies, close } = openSqlite(order.path)
      const { organization, model } = order
      await policies.rules.add({ organization, type: 'deny_models', value: { models: [model] } }, 'test')
      await close()
      return 'denied'
    }
  }
}

await obey(run)
