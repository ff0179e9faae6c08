/** A start whose master key is another one than that of the stores. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refuseForeignKeys } from '../../src/app/missing-keys.ts'
import { Keyring } from '../../src/stores/keyring.ts'

const refusal = (keyring: Keyring) =>
  refuseForeignKeys({ foreign: async () => '3292d8c9' }, keyring, undefined).then(
    () => '',
    (error: Error) => error.message,
  )

t.test('a start that is refused leaves no new key behind, and says that it has none', async t => {
  const file = join(t.testdir({}), 'master.key')
  t.match(await refusal(new Keyring({ given: undefined, file })), 'and this process has none. Set GATEWAY_MASTER_KEY')
  t.notOk(existsSync(file))
})

t.test('a start that is refused keeps the keys that it found, and names them', async t => {
  const file = join(t.testdir({}), 'master.key')
  const { version } = new Keyring({ given: undefined, file })
  const before = readFileSync(file, 'utf8')
  const other = new Keyring({ given: 'another-key-of-a-node', file })
  t.match(await refusal(other), `and this process has ${other.versions[0]},${version} in its place.`)
  t.equal(readFileSync(file, 'utf8'), before)
})
