/** Large answers in the OpenAI form: their data is cut out unparsed, and only when that is certain. */

import fc from 'fast-check'
import t from 'tap'
import { plugin } from '../../plugins/openai.ts'
import { sliceOf } from '../../plugins/shared/embeddings/slice.ts'
import type { Event } from '../../src/core/event.ts'
import type { Json } from '../../src/json/json.ts'
import { JsonFraming } from '../../src/upstream/framing/json.ts'
import { runs } from '../helpers/runs.ts'
import { cuts } from './golden-kit.ts'
import { target } from './wire-kit.ts'

/** The same cases on every run. */
fc.configureGlobal({ seed: 20261121 })

const number = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer(),
  fc.constantFrom(1e-7, -1e21, 0, -0.015625),
)
const floats = fc.array(number, { minLength: 1, maxLength: 40 })
const packed = fc.array(number, { minLength: 3, maxLength: 40 }).map(numbers => {
  return Buffer.from(Float32Array.from(numbers).buffer).toString('base64')
})
/** The same keys in any order. */
const shuffled = (record: Json) =>
  fc
    .shuffledSubarray(Object.keys(record), { minLength: Object.keys(record).length })
    .map(keys => Object.fromEntries(keys.map(key => [key, record[key]])))
const entries = (vector: fc.Arbitrary<unknown>) =>
  fc
    .array(vector, { minLength: 1, maxLength: 6 })
    .chain(vectors =>
      fc.tuple(...vectors.map((embedding, index) => shuffled({ object: 'embedding', index, embedding }))),
    )
const answers = fc
  .oneof(entries(floats), entries(packed))
  .chain(data =>
    shuffled({
      object: 'list',
      data,
      model: 'm "data":[{}] \\ "',
      usage: { prompt_tokens: 5, total_tokens: 5, data: [] },
      extra: [{ a: [1] }, ']}', null],
    }),
  )
  .chain(answer => fc.constantFrom(undefined, 1, '\t').map(space => JSON.stringify(answer, null, space)))

const decode = (body: Buffer): Event[] => {
  const decoder = plugin.wires[1]!.decoder('unary', target())
  const framing = new JsonFraming()
  framing.push(body)
  return framing.end().flatMap(frame => decoder.frame(frame))
}

t.test('an answer in any order of keys and with any space is cut, and nothing of it changes', async t => {
  fc.assert(
    fc.property(answers, text => {
      const slice = sliceOf(Buffer.from(text))
      const { data, ...rest } = JSON.parse(text) as { data: { embedding: unknown }[] }
      t.ok(slice, text)
      t.strictSame(JSON.parse(slice!.data.toString()), data)
      t.strictSame(slice!.envelope, { ...rest, data: [] })
      t.equal(slice!.encoding, typeof data[0]!.embedding === 'string' ? 'base64' : 'float')
    }),
    { numRuns: 200 },
  )
})

t.test('whatever happens to a byte of an answer, what is cut out is what a parser would read', async t => {
  const damage = fc.tuple(answers, fc.nat(), fc.constantFrom(...'{}[]",:\\ 0n1aN-.'), fc.boolean())
  fc.assert(
    fc.property(damage, ([text, place, byte, insert]) => {
      const at = place % text.length
      const damaged = text.slice(0, at) + byte + text.slice(insert ? at : at + 1)
      const slice = sliceOf(Buffer.from(damaged))
      if (!slice) return
      let whole: Json | undefined
      try {
        whole = JSON.parse(damaged) as Json
      } catch {
        // Its numbers are not read: there alone it may hold what is none.
        const numbers = /\[[^[\]{}"nN]+\]/g
        JSON.parse(damaged.replace(numbers, '[0]'))
        return
      }
      t.strictSame(JSON.parse(slice.data.toString()), whole.data)
      t.strictSame(slice.envelope, { ...whole, data: [] })
    }),
    { numRuns: runs(5000) },
  )
})

t.test('an answer that comes in pieces is the same answer', async t => {
  const body = Buffer.from(fc.sample(answers, 1)[0]!)
  const whole = decode(body)
  fc.assert(
    fc.property(cuts(body), pieces => {
      const decoder = plugin.wires[1]!.decoder('unary', target())
      const framing = new JsonFraming()
      const frames = [...pieces.flatMap(piece => framing.push(piece)), ...framing.end()]
      t.strictSame([...frames.flatMap(frame => decoder.frame(frame)), ...decoder.end()], whole)
    }),
    { numRuns: 50 },
  )
})

t.test('what is unusual is not cut', async t => {
  const vector = '"embedding":[0.1,0.2]'
  const entry = `{"object":"embedding","index":0,${vector}}`
  const answer = (data: string, more = '') => `{"object":"list","data":${data}${more}}`
  t.ok(sliceOf(Buffer.from(answer(`[${entry}]`))), 'the usual')
  const rows: Record<string, string> = {
    'no object': `[${entry}]`,
    'no data': '{"object":"list"}',
    'data of another kind': answer('null'),
    'data further down': `{"result":${answer(`[${entry}]`)}}`,
    'a text that says data': `{"object":"data","x":[${entry}]}`,
    'no entries': answer('[]'),
    'an entry that is none': answer(`[${entry},1]`),
    'a comma too many': answer(`[${entry},]`),
    'two commas': answer(`[${entry},,${entry.replace('0', '1')}]`),
    'another order': answer(`[${entry.replace(':0', ':1')},${entry}]`),
    'the same index twice': answer(`[${entry},${entry}]`),
    'an index as text': answer(`[${entry.replace(':0', ':"0"')}]`),
    'no object in an entry': answer(`[{"index":0,${vector}}]`),
    'more in an entry': answer(`[{"object":"embedding","index":0,"text":"a",${vector}}]`),
    'an object in an entry': answer(`[{"object":"embedding","index":0,"x":{},${vector}}]`),
    'two lists in an entry': answer(`[{"object":"embedding","index":0,"x":[],${vector}}]`),
    'a list of lists': answer(`[${entry.replace('[0.1', '[[0.1]')}]`),
    'an empty vector': answer(`[${entry.replace('0.1,0.2', '')}]`),
    'null in a vector': answer(`[${entry.replace('0.1', 'null')}]`),
    'NaN in a vector': answer(`[${entry.replace('0.1', 'NaN')}]`),
    'Infinity in a vector': answer(`[${entry.replace('0.1', '-Infinity')}]`),
    'a text in a vector': answer(`[${entry.replace('0.1', '"0.1"')}]`),
    'two forms': answer(`[${entry},{"object":"embedding","index":1,"embedding":"AAAAPwAAAD8AAAA/"}]`),
    'a text too short to be told from a name': answer(`[${entry.replace('[0.1,0.2]', '"AAAAPw=="')}]`),
    'no end': answer(`[${entry}`).slice(0, -1),
    'more behind the end': `${answer(`[${entry}]`)}x`,
    'no JSON around it': `{'object':"list","data":[${entry}]}`,
    'two data': answer(`[${entry}]`, `,"data":[${entry}]`),
    'a head as long as no answer has': `{"x":"${'x'.repeat(5000)}","data":[${entry}]}`,
    'a tail as long as no answer has': answer(`[${entry}]`, `,"x":"${'x'.repeat(5000)}"`),
    nothing: '',
    'a list': '[]',
  }
  for (const [says, text] of Object.entries(rows)) t.equal(sliceOf(Buffer.from(text)), undefined, says)
})

t.test('numbers pass digit by digit', async t => {
  const data = '[{"object":"embedding","index":0,"embedding":[-0.0123456789012345678901,1E-05,0.10]}]'
  const [event] = decode(Buffer.from(`{"data":${data}}`))
  t.match(event, { type: 'result', value: { encoding: 'float' } })
  t.equal(event?.type === 'result' && String(event.bytes), data)
})
