/** Long strings go out as they came in, and mean what they would mean written anew. */
import fc from 'fast-check'
import t from 'tap'
import { RawStrings } from '../../src/json/raw-strings.ts'

/** The same cases on every run. */
fc.configureGlobal({ seed: 20261122 })

/** A long text, and how its client spelled it. */
const long = (text: string, spell = JSON.stringify) => ({ text, written: spell(text) })
const spelled = (text: string) =>
  `"${[...text].map(c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`
const keeping = (...strings: { text: string; written: string }[]) => {
  const rawStrings = new RawStrings()
  for (const { text, written } of strings) rawStrings.add(text, Buffer.from(written))
  return rawStrings
}

t.test('a long string is written as its client wrote it, wherever it stands', async t => {
  const line = long('a "quoted" line\n'.repeat(100))
  const code = long('x'.repeat(2000), spelled)
  const other = long('é€😀'.repeat(1000))
  const rawStrings = keeping(line, code, other)
  const body = {
    model: 'm',
    gone: undefined,
    messages: [{ role: 'system', content: code.text, name: undefined }, null, [other.text], { content: 'short' }],
    tools: [undefined, { text: line.text }, 1.5, true],
    again: code.text,
  }
  const out = String(rawStrings.stringify(body))
  t.strictSame(JSON.parse(out), JSON.parse(JSON.stringify(body)))
  for (const { written } of [line, code, other]) t.ok(out.includes(written))
  t.equal(out.split(code.written).length, 3, 'as often as it stands there')
  t.equal(String(rawStrings.stringify(body)), out, 'and the same the next time')
})

t.test('what was not kept is written as ever', async t => {
  const rawStrings = keeping(long('kept '.repeat(1000)))
  for (const value of ['new "text"\n'.repeat(500), 'short', 1, null, [], {}, { a: [{ b: 'c' }] }]) {
    t.equal(String(rawStrings.stringify(value)), JSON.stringify(value))
  }
  t.type(rawStrings.stringify({ a: 1 }), 'string')
  t.equal(keeping().stringify(['x'.repeat(5000)]), JSON.stringify(['x'.repeat(5000)]))
})

t.test('many strings that differ only at their ends keep their identity in any order', async t => {
  const all = Array.from({ length: 40 }, (_, at) => long(`${'same '.repeat(300)}${at}`, spelled))
  const texts = all.map(({ text }) => text)
  for (const order of [texts, texts.toReversed(), [...texts.slice(20), ...texts.slice(0, 20)]]) {
    t.strictSame(JSON.parse(String(keeping(...all).stringify({ order }))), { order })
  }
})

t.test('the JSON of any value is what JSON.stringify would mean', async t => {
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\ud800', '"\\\n', 'é'))
  const strings = fc.array(
    text.map(part => `${part}|`.repeat(Math.ceil(1500 / (part.length + 1)))),
    { minLength: 1 },
  )
  const holds = fc.property(strings, fc.jsonValue(), fc.nat(), (texts, json, at) => {
    const rawStrings = keeping(...texts.map(text => long(text)))
    const value = { json, [texts[0]!.slice(0, 9)]: texts, deep: [[{ one: texts[at % texts.length] }]] }
    return String(rawStrings.stringify(value)) === JSON.stringify(value)
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: 300 }))
})
