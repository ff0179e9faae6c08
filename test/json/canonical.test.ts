/** JSON in one form for seals: the bytes stay as they were, and the work is bounded. */
import fc from 'fast-check'
import t from 'tap'
import { WorkBudget, writeCanonical } from '../../src/json/canonical.ts'
import { isObject, type Json } from '../../src/json/json.ts'
import { cpuMs, inProportion, leastOf } from '../helpers/cpu.ts'
import { runs } from '../helpers/runs.ts'

const MANY = 1e9

/** What is written, and undefined where too little work is left. Parts are copied: their bytes are overwritten. */
function written(value: Json, work = new WorkBudget(MANY, MANY), without?: readonly string[]): string | undefined {
  const parts: Buffer[] = []
  return writeCanonical(value, { update: part => parts.push(Buffer.from(part as string)) }, work, without)
    ? Buffer.concat(parts).toString()
    : undefined
}

/** The form as it is defined: seals of earlier versions hold it. */
function form(value: unknown): string {
  const ordered = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(ordered)
    if (!isObject(value)) return value
    const names = Object.keys(value).sort()
    return { members: names.map(name => [name, ordered(value[name])]).filter(([, member]) => member !== undefined) }
  }
  return Buffer.from(JSON.stringify(ordered(value))).toString()
}

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: 'grapheme-ascii', maxLength: 20 }),
  fc.integer({ min: 0, max: 120 }).map(String),
  fc.constantFrom('__proto__', 'toJSON', 'seal', '\ud800', '\udc00\ud800', '"', '\\', '\u007f', '\u2028', '日本'),
  // Around the sizes at which another way of writing begins.
  fc
    .tuple(
      fc.constantFrom('a', '"', 'é', '日', '\u{1f600}a', '\ud83da', '\u0001'),
      fc.constantFrom(62, 63, 64, 8191, 8192, 20_000),
    )
    .map(([unit, length]) => `${'a'.repeat(length)}${unit.repeat(2)}`),
)
const json = fc.letrec(tie => ({
  value: fc.oneof(
    { maxDepth: 6 },
    fc.oneof(text, fc.double(), fc.integer(), fc.constantFrom(null, undefined, true, false, -0, 1e21, 1e-7, 2 ** 60)),
    fc.array(tie('value'), { maxLength: 12 }),
    tie('object'),
  ),
  object: fc
    .uniqueArray(fc.tuple(text, tie('value')), { selector: ([name]) => name, maxLength: 12 })
    .map(members => Object.fromEntries(members)),
}))

t.test('any JSON is written as it was for the seals that clients hold', async t => {
  fc.assert(
    fc.property(json.object, value => {
      t.equal(written(value as Json), form(value))
    }),
    { numRuns: runs(600) },
  )
  t.equal(written({ b: [1, { c: null }], a: 'x' }), '{"members":[["a","x"],["b",[1,{"members":[["c",null]]}]]]}')
})

t.test('members that are named are left out of the object alone, not of those in it', async t => {
  const value = { seal: 1, a: { seal: 2 }, provider: 'p' }
  t.equal(written(value, undefined, ['seal', 'provider']), form({ a: { seal: 2 } }))
})

t.test('objects and lists take work by their members, texts by what they are written as', async t => {
  const rows: readonly [value: Json, values: number, characters: number][] = [
    [{}, 0, 0],
    [{ a: 1, b: [1, 2, {}] }, 5, 2],
    [{ name: 'x'.repeat(300) }, 1, 304],
    [{ name: 'é' }, 1, 8],
    [{ name: `${'x'.repeat(299)}\n` }, 1, 606],
    [{ é: '\\' }, 1, 8],
    [{ x: '日'.repeat(9000) }, 1, 54_001],
    [{ x: '\u0001'.repeat(9000) }, 1, 108_001],
    [Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`k${at}`, 0])), 600, 1090],
  ]
  for (const [value, values, characters] of rows) {
    const work = new WorkBudget(values, characters)
    t.equal(written(value, work), form(value))
    t.match(work, { values: 0, characters: 0 })
    if (values > 0) t.equal(written(value, new WorkBudget(values - 1, characters)), undefined)
    if (characters > 0) t.equal(written(value, new WorkBudget(values, characters - 1)), undefined)
  }
})

t.test('what has too many members, or nests too deep, is not written', async t => {
  const nested = (levels: number) => {
    let value: unknown = 1
    for (let level = 0; level < levels; level++) value = [value]
    return { value }
  }
  t.equal(written(nested(127)), form(nested(127)))
  t.equal(written(nested(128)), undefined)
  const wide = { list: Array.from({ length: 1000 }, () => 0) }
  const work = new WorkBudget(1000, MANY)
  t.equal(written(wide, work), undefined)
  t.equal(work.values, 999, 'a list that does not fit takes nothing')
})

t.test('four times as many members take four times as long', async t => {
  const block = (lists: number) => ({
    lists: Array.from({ length: lists }, () =>
      Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`k${(at * 7919) % 1000}`, { a: 1 }])),
    ),
  })
  const [small, large] = [block(10), block(40)]
  const timing = (value: Json) => () => cpuMs(() => written(value))
  const [one, four] = leastOf([timing(small), timing(large)], inProportion)
  t.ok(inProportion(one!, four!), `${one} and ${four} ms`)
})
