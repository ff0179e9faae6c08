/** JSON that is parsed and written in steps means what `JSON.parse` and `JSON.stringify` mean. */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { Upload } from '../../src/core/body.ts'
import { textSteps } from '../../src/core/frame-steps.ts'
import { parseSteps } from '../../src/core/json-steps.ts'
import { isLongNumber, parseLossless } from '../../src/core/lossless-json.ts'
import { RawStrings } from '../../src/core/raw-strings.ts'
import { hashInSteps, stringifyInSteps, stringifySteps, weigh } from '../../src/core/stringify-steps.ts'
import { bodyOf, isMadeInSteps } from '../../src/upstream/content.ts'
import { runs } from '../helpers/runs.ts'

/** More than one piece of what is parsed, and of what is written. */
const LONG = 140_000

/** What the steps come to, and how many they are. */
function all<T>(steps: Generator<undefined, T>): { value: T; count: number } {
  for (let count = 1; ; count++) {
    const { done, value } = steps.next()
    if (done) return { value, count }
  }
}
const parse = (text: string) => parseSteps(text, json => JSON.parse(json), undefined, 10_000)
function asText(value: object): string {
  const out = stringifyInSteps(value)
  return typeof out === 'string' ? out : Buffer.concat(all(out).value).toString()
}

/** A text that is long enough to be cut, at places that fall into escapes and characters of two units. */
const long = fc
  .tuple(fc.string({ unit: 'binary', minLength: 1, maxLength: 9 }), fc.nat(9))
  .map(([unit, before]) => 'x'.repeat(before) + unit.repeat(Math.ceil(LONG / unit.length)))
const small = fc.jsonValue({ maxDepth: 2 })
const values = fc.oneof(
  fc.tuple(small, long, small),
  fc.record({ a: small, long, __proto__: fc.constant(null), 'é"': fc.tuple(long, small, long) }),
  fc.tuple(fc.record({ a: fc.record({ b: long }) }), fc.array(small, { maxLength: 3 })),
)

t.test('what is parsed in steps is what JSON.parse makes of it', async t => {
  const holds = fc.property(values, fc.boolean(), (value, escaped) => {
    const json = escaped
      ? JSON.stringify(value).replace(
          /[\u0080-\uffff]/g,
          char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
        )
      : JSON.stringify(value)
    return JSON.stringify(all(parse(json)).value) === JSON.stringify(JSON.parse(json))
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: runs(30) }))
})

t.test('a hash in steps is that of the JSON text, where files stand by theirs', async t => {
  const hashOf = (value: object) => {
    const hash = hashInSteps(value)
    const { value: made, count } = 'next' in hash ? all(hash) : { value: hash, count: 0 }
    return { hash: made.digest('hex'), count }
  }
  const file = new Upload([Buffer.alloc(4 * 2 ** 20, 7)], '', '')
  await file.hash(async () => {})
  const withFile = values.map(value => ({ value, file, files: [{ file }] }))
  const holds = fc.property(
    fc.oneof(
      values,
      small.map(value => [value, file]),
      withFile,
    ),
    value => {
      const { hash } = hashOf(value)
      return hash === createHash('sha256').update(JSON.stringify(value)).digest('hex')
    },
  )
  t.doesNotThrow(() => fc.assert(holds, { numRuns: runs(30) }))
  t.equal(hashOf({ file, text: 'x'.repeat(100_000) }).count, 0, 'what is small, at once')
  t.ok(hashOf({ file, text: 'x'.repeat(8 * 2 ** 20) }).count >= 64)
  t.ok(hashOf({ texts: Array(200_000).fill('x'.repeat(40)) }).count >= 64)
})

t.test('what is no JSON is refused, also within a long string', async t => {
  const text = 'a'.repeat(LONG)
  for (const wrong of [
    `["${text}`,
    `["${text}\n${text}"]`,
    `["${text}\\x${text}"]`,
    `{"a" "${text}"}`,
    `["${text}" 1]`,
  ]) {
    t.throws(() => all(parse(wrong)), SyntaxError)
  }
})

t.test('the text of bytes is the same in steps, whatever character stands where they are cut', async t => {
  for (const unit of ['a', 'é', '€', '𝄞', '\ufffd']) {
    for (let before = 0; before < 4; before++) {
      const bytes = Buffer.from('x'.repeat(before) + unit.repeat(2 ** 20))
      const { value, count } = all(textSteps(bytes))
      t.ok(value === bytes.toString(), `${unit} behind ${before}`)
      t.ok(count >= bytes.length / 2 ** 20, `${unit}: ${count} steps`)
    }
  }
  const wrong = Buffer.alloc(3 * 2 ** 20, 0x80)
  t.ok(all(textSteps(wrong)).value === wrong.toString(), 'no text')
})

t.test('what has no commas is scanned in steps, whatever it is', async t => {
  const size = 4 * 1024 * 1024
  const most = 256 * 1024
  const scanned = (text: string): number => {
    const steps = parseSteps(text, json => JSON.parse(json))
    for (let count = 1; ; count++) {
      try {
        if (steps.next().done) return count
      } catch {
        return count
      }
    }
  }
  for (const [unit, before, behind] of [
    [' ', '[', '1]'],
    [':', '{"a"', '}'],
    ['"', '[', ']'],
    ['true', '[', ']'],
    ['\\"', '["', '"]'],
    ['\\\\', '["', '"]'],
  ] as const) {
    const count = scanned(before + unit.repeat(size / unit.length) + behind)
    // A long string is scanned, and then parsed.
    const times = before === '["' ? 1.8 : 1
    t.ok(count > (times * size) / most, `${unit}: ${count} steps`)
  }
})

t.test('a number with more than a million digits is refused before it is read', async t => {
  const read = (json: string): unknown => t.ok(json.length < 2_000_000) && JSON.parse(json)
  for (const begin of ['', '1.', '1e', '-']) {
    const steps = parseSteps(`[${begin}${'1'.repeat(2_000_000)}]`, read)
    t.throws(() => all(steps), { name: 'SyntaxError', message: 'a number has too many digits' })
  }
})

t.test('what is written in steps is what JSON.stringify writes', async t => {
  const holds = fc.property(values, value => asText(value) === Buffer.from(JSON.stringify(value)).toString())
  t.doesNotThrow(() => fc.assert(holds, { numRuns: runs(30) }))
  const odd = { a: undefined, list: [undefined, null, [], {}], long: 'b'.repeat(LONG), empty: {} }
  t.equal(asText(odd), JSON.stringify(odd))
  const many = Array.from({ length: 50_000 }, (_, at) => ({ at, name: `n${at}` }))
  t.equal(asText(many), JSON.stringify(many))
})

t.test('numbers stand in place of their marks, however long they are', async t => {
  const digits = '1'.repeat(LONG)
  const json = `{"a":[${digits},12345678901234567890],"b":"${'c'.repeat(LONG)}"}`
  const value = parseLossless(json) as { a: string[] }
  t.ok(value.a.every(isLongNumber))
  t.equal(asText(value), json)
})

t.test('a request is written in steps with the strings that its client wrote, and others', async t => {
  const raw = new RawStrings()
  const [kept, short] = ['a'.repeat(LONG), 'b'.repeat(2000)]
  const bytes = Buffer.from(`"\\u0061${kept.slice(1)}"`)
  raw.add(kept, bytes)
  raw.add(short, Buffer.from(JSON.stringify(short)))
  const value = { messages: [{ content: kept }, { content: short }, { content: 'c'.repeat(LONG) }, { content: 'd' }] }
  const pieces = all(stringifySteps(value, raw)).value
  t.ok(pieces.includes(bytes), 'without a copy')
  t.strictSame(JSON.parse(Buffer.concat(pieces).toString()), value)
  const small = bodyOf({ path: '/', body: { a: short } }, raw)
  t.notOk(isMadeInSteps(small), 'a small one at once')
  const large = { list: Array.from({ length: 10 }, () => kept) }
  const made = bodyOf({ path: '/', body: large })
  t.strictSame(isMadeInSteps(made) && JSON.parse(String(all(made).value.body)), large)
})

t.test('no step has more than a piece of what is large', async t => {
  const large: Record<string, object> = {
    'one string': ['a'.repeat(2e6)],
    'one string with escapes': ['"\n'.repeat(3e5)],
    'many strings': Array.from({ length: 100 }, () => 'b'.repeat(20_000)),
    'many values': Array.from({ length: 50_000 }, (_, at) => [at, 'c']),
  }
  for (const [says, value] of Object.entries(large)) {
    const json = JSON.stringify(value)
    const out = stringifyInSteps(value)
    if (typeof out === 'string') return t.fail(`${says} is written at once`)
    const wrote = all(out)
    t.equal(Buffer.concat(wrote.value).toString(), json, says)
    t.ok(wrote.count > json.length / 400_000, `${says}: written in ${wrote.count} steps`)
    const read = all(parseSteps(json, json => JSON.parse(json)))
    t.ok(read.count > json.length / 400_000, `${says}: parsed in ${read.count} steps`)
  }
  t.ok(weigh({ a: 'x'.repeat(100) }) >= 100)
})
