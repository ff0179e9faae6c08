/** Bounds of what is sealed in an answer, and checked of a request. */
import { createSecretKey } from 'node:crypto'
import t from 'tap'
import type { Event } from '../../src/core/event.ts'
import { type AnswerSeals, Seals } from '../../src/core/seals.ts'
import type { Json } from '../../src/json/json.ts'

const KEY = { version: '01234567', key: createSecretKey(Buffer.alloc(32)) }
const seals = new Seals({ newest: KEY, find: () => KEY }, 'org')

function blockOf(block: Json, answer: AnswerSeals = seals.answer()): Json {
  const event: Event = { type: 'native', choice: 0, provider: 'acme', block }
  answer.apply(event)
  return event.block
}
function signatureOf(signature: string, answer: AnswerSeals = seals.answer()): string {
  const event: Event = { type: 'reasoning', choice: 0, text: '', signature }
  answer.apply(event)
  return event.signature!
}
/** So many values, the list among them. */
const holding = (values: number): Json => ({ list: Array.from({ length: values - 1 }, () => 0) })
const isSealed = (block: Json) => 'seal' in block

t.test('a seal of an earlier version holds', async t => {
  const block = {
    type: 'call',
    input: { b: [1.5, { c: null }], a: 'é"\n', '10': -0, '9': 1e21 },
    long: 'x'.repeat(1000),
    seal: 'mgs1.01234567.nEjpizE2tZGI_bVJxddVTw.acme',
  }
  const { seal: _, ...plain } = block
  t.strictSame(seals.check().block(block), plain)
  t.equal(seals.check().value('mgs1.01234567.v0Gik0Ky8emjgyfoWW_0bQ.acme:é'), 'acme:é')
  t.equal(blockOf(plain).seal, block.seal)
})

t.test('blocks of an answer are sealed up to 50,000 values, 16 Mi characters and 4,096 seals', async t => {
  const values = seals.answer()
  t.ok(isSealed(blockOf(holding(49_000), values)))
  t.strictSame(blockOf(holding(1001), values), holding(1001), 'the block is as it was')
  t.ok(isSealed(blockOf(holding(500), values)), 'a smaller one still fits')
  t.notOk(isSealed(blockOf(holding(50_001))))

  const MI = 1024 * 1024
  const characters = seals.answer()
  t.ok(isSealed(blockOf({ text: 'x'.repeat(12 * MI) }, characters)))
  t.notOk(isSealed(blockOf({ text: 'é'.repeat(MI) }, characters)), 'others than ASCII count by twice their bytes')
  t.equal(signatureOf('x'.repeat(4 * MI), characters).length, 4 * MI)

  const many = seals.answer()
  const made = Array.from({ length: 4097 }, (_, at) => isSealed(blockOf({ at }, many)))
  t.equal(made.indexOf(false), 4096)
  t.equal(signatureOf('acme:x', many), 'acme:x')
})

t.test('what citations hold for their provider alone is sealed, each by itself', async t => {
  const plain = { type: 'char_location', encrypted_index: null, url: 'u' }
  const citations = [{ encrypted_index: 'acme:i', encrypted_other: 'acme:o', title: 'T' }, plain, 'odd', null]
  const event: Event = { type: 'passage', wire: 'w', citations }
  seals.answer().apply(event)
  const [sealed, ...others] = event.citations as [Json, ...unknown[]]
  t.strictSame(others, citations.slice(1))
  t.equal(sealed.title, 'T')
  const check = seals.check()
  t.equal(check.value(String(sealed.encrypted_index)), 'acme:i')
  t.equal(check.value(String(sealed.encrypted_other)), 'acme:o')
  const other = new Seals({ newest: KEY, find: () => KEY }, 'other').check()
  t.equal(other.value(String(sealed.encrypted_index)), undefined, 'another organization')
})

t.test('blocks of a request count as sealed up to 100,000 values', async t => {
  const sealed = blockOf(holding(40_000))
  const copies = Array.from({ length: 3 }, () => ({ ...sealed }))
  const check = seals.check()
  t.strictSame(
    copies.map(block => check.block(block) !== undefined),
    [true, true, false],
  )
  const same = seals.check()
  for (let times = 0; times < 5; times++)
    t.strictSame(same.block(sealed), holding(40_000), 'the same block counts once')
})

t.test('a copied seal on a large block is refused before all of the block is read', async t => {
  const { seal } = blockOf({ q: 1 })
  let read = 0
  const member = {
    get a() {
      return ++read
    },
  }
  const check = seals.check()
  t.equal(check.block({ list: Array.from({ length: 100_001 }, () => member), seal }), undefined)
  t.equal(read, 0)
  t.strictSame(check.block({ q: 1, seal }), { q: 1 }, 'others still hold')
  t.equal(check.block({ list: Array.from({ length: 60_000 }, () => member), seal }), undefined)
  t.ok(read < 50_000, `${read} were read`)
})

t.test('signatures of a request count as sealed up to 16 Mi characters, each time that they are read', async t => {
  const sealed = signatureOf(`acme:${'x'.repeat(7 * 1024 * 1024)}`)
  const check = seals.check()
  t.strictSame(
    [1, 2, 3].map(() => check.value(sealed) !== undefined),
    [true, true, false],
  )
})
