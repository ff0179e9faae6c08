/** Master keys: where they come from, what they open, and how another one takes over. */
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { Event } from '../../src/core/event.ts'
import { Seals } from '../../src/core/seals.ts'
import { Keyring, KeyringError } from '../../src/stores/keyring.ts'
import { runs } from '../helpers/runs.ts'
import { startChild, tell } from './parent.ts'

fc.configureGlobal({ seed: 20261121 })

const ring = (t: Test, given?: string) => {
  const file = join(t.testdir({}), 'data/master.key')
  return { file, open: (env = given) => new Keyring({ given: env, file }) }
}

t.test('without a key in the environment a file is made once, for its owner only', async t => {
  const { file, open } = ring(t)
  const first = open()
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.match(readFileSync(file, 'utf8'), /^[\w-]{43}\n$/)
  const sealed = first.seal('sk-secret', 'here')
  t.equal(open().open(sealed, 'here'), 'sk-secret', 'the next start reads the same one')
  t.strictSame(readdirSync(join(file, '..')), ['master.key'])
})

t.test('with a key in the environment no file is made', async t => {
  const { file, open } = ring(t, 'a master key of 25 chars.')
  const sealed = open().seal('sk-secret', 'here')
  t.equal(open().open(sealed, 'here'), 'sk-secret')
  t.notOk(existsSync(file))
})

t.test('processes that start at once agree on one key', async t => {
  const { file } = ring(t)
  const children = await Promise.all(Array.from({ length: 3 }, () => startChild(t)))
  const versions = await Promise.all(children.map(child => tell(child, { do: 'ring', file })))
  t.strictSame(new Set(versions), new Set([new Keyring({ given: undefined, file }).version]))
})

t.test('what is sealed opens at its place only, and not when a bit of it was changed', async t => {
  const { open } = ring(t)
  const keys = open()
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc.string(),
      fc.string(),
      fc.nat(),
      (secret, place, other, at) => {
        const sealed = keys.seal(secret, place)
        if (keys.open(sealed, place) !== secret) return false
        const refuses = (changed: typeof sealed, where: string) => {
          try {
            keys.open(changed, where)
            return false
          } catch (error) {
            return error instanceof KeyringError && (secret.length < 4 || !error.message.includes(secret))
          }
        }
        const flipped = Buffer.from(sealed.ciphertext)
        flipped[at % flipped.length]! ^= 1 << (at % 8)
        const nonce = Buffer.from(sealed.nonce)
        nonce[at % nonce.length]! ^= 1 << (at % 8)
        return (
          (place === other || refuses(sealed, other)) &&
          refuses({ ...sealed, ciphertext: flipped }, place) &&
          refuses({ ...sealed, nonce }, place) &&
          refuses({ ...sealed, ciphertext: sealed.ciphertext.subarray(0, at % sealed.ciphertext.length) }, place)
        )
      },
    ),
    { numRuns: runs(300) },
  )
  const [one, two] = [keys.seal('same', 'here'), keys.seal('same', 'here')]
  t.notSame(one.nonce, two.nonce, 'every nonce is another one')
  t.notOk(Buffer.from(one.ciphertext).includes('same'))
})

t.test('a new key seals from then on, and the old ones still open', async t => {
  const { file, open } = ring(t)
  const keys = open()
  const elsewhere = open()
  const before = keys.seal('old', 'p')
  const version = keys.addKey()
  t.equal(keys.version, version)
  t.not(version, before.version)
  t.equal(keys.open(before, 'p'), 'old')
  const after = keys.seal('new', 'p')
  t.equal(elsewhere.open(after, 'p'), 'new', 'a process that runs finds the key that another one made')
  t.strictSame(open().versions, [version, before.version])
  t.equal(statSync(file).mode & 0o777, 0o600)
  const left = readFileSync(file, 'utf8').split('\n')[0]!
  writeFileSync(file, `${left}\n`, { mode: 0o600 })
  t.throws(() => open().open(before, 'p'), {
    name: 'KeyringError',
    message: `the master key ${before.version} is missing`,
  })
})

t.test('a new key that cannot be made leaves nothing in the way of the next attempt', async t => {
  const { file, open } = ring(t)
  const keys = open()
  chmodSync(file, 0o644)
  t.throws(() => keys.addKey(), { name: 'KeyringError', message: /may be read by others/ })
  t.strictSame(readdirSync(join(file, '..')), ['master.key'])
  chmodSync(file, 0o600)
  t.equal(keys.addKey(), keys.version)
})

t.test('keys of the environment: the first one seals, all open, and those of the file too', async t => {
  const { file, open } = ring(t)
  const fromFile = open().seal('file', 'p')
  const [one, two] = ['first-key-of-some-length', 'second-key-of-some-length']
  const old = open(one).seal('env', 'p')
  const both = open(` ${two} , ${one} `)
  t.equal(both.open(old, 'p'), 'env')
  t.equal(both.open(fromFile, 'p'), 'file')
  t.equal(both.seal('x', 'p').version, open(two).version)
  t.throws(() => both.addKey(), { name: 'KeyringError', message: /GATEWAY_MASTER_KEY/ })
  t.match(readFileSync(file, 'utf8'), /^[\w-]{43}\n$/, 'the file stays as it is')
})

t.test('master keys that cannot be used are refused with what to do', async t => {
  const { file, open } = ring(t)
  t.throws(() => open('short'), { name: 'KeyringError', message: /at least 16 characters/ })
  t.notMatch(String(catching(() => open('short-secret'))), 'short-secret')
  open()
  chmodSync(file, 0o644)
  t.throws(() => open(), { name: 'KeyringError', message: /may be read by others \(mode 644\); run `chmod 600/ })
  chmodSync(file, 0o600)
  writeFileSync(file, '\n')
  t.throws(() => open(), { name: 'KeyringError', message: /holds no master key/ })
  writeFileSync(`${file}.new`, '')
  writeFileSync(file, `${'k'.repeat(43)}\n`)
  t.throws(() => open().addKey(), { name: 'KeyringError', message: /another process is creating a master key/ })
  t.equal(open().versions.length, 1)
})

const catching = (work: () => unknown): unknown => {
  try {
    return work()
  } catch (error) {
    return error
  }
}

t.test('a seal of what clients hold is of one organization, one provider and one value', async t => {
  const { file, open } = ring(t)
  const keys = open()
  const other = new Keyring({ given: 'quite another master key', file: `${file}.none` })
  const own = new Seals(keys.seals, 'org')
  const thought = (seals: Seals, signature: string): string => {
    const event: Event = { type: 'reasoning', choice: 0, text: '', signature }
    seals.answer().apply(event)
    return event.signature!
  }
  const block = { type: 'call', input: { b: [1, { c: null }], a: 'x' }, n: 1.5 }
  const blockOf = (seals: Seals, provider = 'acme') => {
    const event: Event = { type: 'native', choice: 0, provider, block }
    seals.answer().apply(event)
    return event.block
  }
  const sealed = thought(own, 'acme:value.of:it')
  t.equal(own.check().value(sealed), 'acme:value.of:it')
  t.equal(new Seals(open().seals, 'org').check().value(sealed), 'acme:value.of:it', 'another process knows it')
  const moved = (from: string, to: string) => sealed.replace(from, to)
  const forged: [says: string, seals: Seals, value: string][] = [
    ['another organization', new Seals(keys.seals, 'other'), sealed],
    ['another provider', own, moved('acme:', 'acne:')],
    ['another value', own, moved('value', 'valve')],
    ['without a mark, as older versions made them', own, 'acme:value.of:it'],
    ['an unknown key', own, sealed.replace(/^mgs1\.\w{8}/, 'mgs1.00000000')],
    ['half a mark', own, sealed.replace(/^(mgs1\.\w{8}\..{11}).{11}/, '$1')],
    ['the mark of a block', own, String(blockOf(own).seal)],
    ['another master key', new Seals(other.seals, 'org'), sealed],
    ['nothing', own, ''],
  ]
  for (const [says, seals, value] of forged) t.equal(seals.check().value(value), undefined, says)

  const { seal, ...rest } = blockOf(own)
  const reordered = { n: 1.5, input: { a: 'x', b: [1, { c: null }] }, seal, type: 'call' }
  t.strictSame(own.check().block(reordered), block, 'members may come in another order')
  t.strictSame(own.check().block({ ...rest, provider: 'acme', seal }), { ...block, provider: 'acme' })
  const made: [says: string, block: Record<string, unknown>][] = [
    ['no seal', rest],
    ['another provider', { ...rest, provider: 'acne', seal }],
    ['another value', { ...rest, n: 2, seal }],
    ['one more member', { ...rest, m: 1, seal }],
    ['one member less', { type: 'call', seal }],
    ['a list in place of an object', { ...rest, input: Object.entries(block.input), seal }],
    ['the seal of a value', { ...rest, seal: sealed }],
  ]
  for (const [says, block] of made) t.equal(own.check().block(block), undefined, says)
  t.equal(new Seals(keys.seals, 'other').check().block({ ...rest, seal }), undefined, 'another organization')

  const before = keys.version
  keys.addKey()
  t.equal(own.check().value(sealed), 'acme:value.of:it', 'older keys verify')
  t.notMatch(thought(own, 'acme:x'), before, 'the newest one seals')
  const check = own.check()
  const held = Array.from({ length: 4096 }, (_, at) => check.value(thought(own, `acme:${at}`)))
  t.ok(held.every(value => value !== undefined))
  t.equal(check.value(thought(own, 'acme:one more')), undefined, 'a request has room for so many')
})
