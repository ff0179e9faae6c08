/** The demo provider's vectors: they follow from the words of an input, in either form and any size. */
import t from 'tap'
import { SimulatedError } from '../../src/core/operation.ts'
import { type DemoInputs, embed } from '../../src/operations/embeddings/simulated.ts'
import { thrown } from '../core/kit.ts'

interface Answer {
  data: { object: string; index: number; embedding: number[] | string }[]
  model: string
  usage: { prompt_tokens: number; total_tokens: number }
}

const ask = (request: DemoInputs) => embed({ model: 'demo-embed', ...request }) as Answer
const vectors = (request: DemoInputs) => ask(request).data.map(({ embedding }) => embedding as number[])

t.test('an answer has the OpenAI form', async t => {
  const answer = ask({ input: ['one two', 'three'] })
  t.match(answer, { object: 'list', model: 'demo-embed', usage: { prompt_tokens: 3, total_tokens: 3 } })
  t.strictSame(
    answer.data.map(({ object, index }) => [object, index]),
    [
      ['embedding', 0],
      ['embedding', 1],
    ],
  )
})

t.test('vectors have length 1, whatever their size, and follow from the words alone', async t => {
  for (const dimensions of [undefined, 1, 8, 4096]) {
    const request = { input: 'Hello, hello world', ...(dimensions && { dimensions }) }
    const [vector] = vectors(request)
    t.equal(vector?.length, dimensions ?? 256)
    const length = Math.hypot(...vector!)
    t.ok(Math.abs(length - 1) < 1e-6 || length === 0, `${dimensions}: ${length}`)
    t.strictSame(vectors({ ...request, input: ['hello  HELLO: world!'] }), [vector])
    const base64 = ask({ ...request, encoding_format: 'base64' }).data[0]?.embedding as string
    t.strictSame([...new Float32Array(Uint8Array.from(Buffer.from(base64, 'base64')).buffer)], vector)
  }
})

t.test('token ids are words, one list of them is one input', async t => {
  t.equal(vectors({ input: [1, 2, 3] }).length, 1)
  t.equal(ask({ input: [1, 2, 3] }).usage.prompt_tokens, 3)
  t.strictSame(vectors({ input: [[1, 2], [3]] }), [vectors({ input: [1, 2] })[0], vectors({ input: [3] })[0]])
  t.equal(vectors({ input: '?!' })[0]?.length, 256, 'what has no words is one')
})

t.test('what is too long or too wide is refused', async t => {
  const words = (count: number) => Array.from({ length: count }, () => 'a').join(' ')
  const rows: [DemoInputs, object][] = [
    [{ input: words(8193) }, { param: 'input', code: 'context_length_exceeded', message: /8193/ }],
    [{ input: ['a', words(8193)] }, { param: 'input' }],
    [
      { input: 'a', dimensions: 4097 },
      { param: 'dimensions', code: null, message: /4097/ },
    ],
  ]
  for (const [request, expected] of rows) {
    const refusal = thrown(() => ask(request))
    t.ok(refusal instanceof SimulatedError)
    t.match(refusal, expected)
  }
  t.equal(ask({ input: words(8192) }).usage.prompt_tokens, 8192)
})
