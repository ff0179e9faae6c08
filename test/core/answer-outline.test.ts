/** What is kept of an answer that is too large. */
import t from 'tap'
import { AnswerOutline } from '../../src/core/answer-outline.ts'
import { runs } from '../helpers/runs.ts'

function outlined(text: string, cut = text.length): AnswerOutline {
  const outline = new AnswerOutline()
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += cut) outline.add(bytes.subarray(at, at + cut))
  return outline
}

const long = 'word '.repeat(1000)
const media = 'iVBORw0K'.repeat(1000)

for (const [says, text, kept, written] of [
  ['small members', '{"a":1,"b":{"c":[1,"}"]},"d":"x\\"]"}', { a: 1, b: { c: [1, '}'] }, d: 'x"]' }, 36],
  ['large ones', JSON.stringify({ a: [long], b: { long }, c: long, d: 2 }), { a: [], b: {}, c: '', d: 2 }, 15_039],
  ['media', JSON.stringify({ data: [{ b64: media }], usage: { n: 1 } }), { data: [], usage: { n: 1 } }, 37],
  [
    'log probabilities',
    JSON.stringify({ logprobs: { content: [{ a: long }] }, text: 'x' }),
    { logprobs: {}, text: 'x' },
    23,
  ],
  ['an end that is missing', '{"a":1,"b":[', { a: 1 }, 12],
  ['a list', '[{"a":1}]', undefined, 9],
  ['no JSON', 'a,b', undefined, 3],
] as const) {
  t.test(`${says}: wherever it is cut`, async t => {
    for (const cut of [text.length, 1, 2, 3, 7, 1000].slice(0, runs(6))) {
      const { json, text: counted, isJson } = outlined(text, cut)
      t.strictSame(json === undefined ? undefined : JSON.parse(json), kept, `${cut}`)
      t.equal(isJson, says !== 'no JSON')
      // Of media that come in pieces, the beginning counts.
      if (cut === text.length) t.equal(counted, written)
      else t.ok(counted >= written && counted <= written + 1024, `${counted} of ${written}`)
    }
  })
}

t.test('little is kept, whatever comes', async t => {
  const members = Array.from({ length: 1000 }, (_, at) => `"n${at}":"${'x'.repeat(1000)}"`)
  t.ok(outlined(`{${members.join(',')}}`).json!.length <= 66 * 1024)
})
