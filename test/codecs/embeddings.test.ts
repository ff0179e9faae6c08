/** The client wire of `POST /v1/embeddings`: what it takes, and the one form of what it answers. */
import t from 'tap'
import { batchEmbedContents } from '../../src/codecs/gemini-embeddings.ts'
import { openAiEmbeddings } from '../../src/codecs/openai-embeddings.ts'
import { toBase64, toNumbers } from '../../src/codecs/vectors.ts'
import type { Encoder } from '../../src/core/codec.ts'
import type { Event } from '../../src/core/event.ts'
import type { Usage } from '../../src/core/usage.ts'
import { embeddings } from '../../src/endpoints/inference.ts'
import { errors } from '../../src/lib/error.ts'
import type { Embeddings } from '../../src/operations/embeddings/request.ts'
import { exchange, principal, thrown } from '../core/kit.ts'
import { target } from '../plugins/wire-kit.ts'

const { decode } = openAiEmbeddings
const of = (request: object = {}) =>
  exchange({
    endpoint: embeddings,
    principal,
    target: target(),
    request: { model: 'acme-large', input: 'a', ...request },
  })
const many = (count: number, one: unknown = 'a') => Array.from({ length: count }, () => one)

t.test('a request is taken as it is, without what it does not say', async t => {
  const rows: [body: object, request: object][] = [
    [{ input: 'a' }, { input: 'a' }],
    [{ input: ['a', ' '] }, { input: ['a', ' '] }],
    [{ input: [0, 0xffffffff] }, { input: [0, 0xffffffff] }],
    [{ input: [[1, 2], [3]] }, { input: [[1, 2], [3]] }],
    [
      { input: 'a', encoding_format: 'base64', dimensions: 1 },
      { input: 'a', encoding_format: 'base64', dimensions: 1 },
    ],
    [{ input: 'a', encoding_format: null, dimensions: null, user: null, other: 1 }, { input: 'a' }],
    [{ input: many(2048) }, { input: many(2048) }],
    [{ input: many(2049, 7) }, { input: many(2049, 7) }],
  ]
  for (const [body, request] of rows) {
    const read = decode({ model: 'm', ...body }, of())
    t.strictSame(read, { model: 'm', ...request, user: principal.orgId }, JSON.stringify(body).slice(0, 80))
  }
})

t.test('the provider gets the organization as the user, whatever the caller sends', async t => {
  t.equal(decode({ model: 'm', input: 'a', user: 'jo@acme.example' }, of()).user, principal.orgId)
  t.notOk('user' in decode({ model: 'm', input: 'a', user: 'jo' }, exchange({ endpoint: embeddings })))
})

t.test('MF-09 what is wrong is named', async t => {
  const rows: [body: unknown, param: string | null, message: RegExp][] = [
    [5, null, /must be object/],
    [{ input: 'a' }, 'model', /is required/],
    [{ model: '', input: 'a' }, 'model', /./],
    [{ model: 'm' }, 'input', /is required/],
    [{ model: 'm', input: null }, 'input', /must be string or array/],
    [{ model: 'm', input: { text: 'a' } }, 'input', /must be string or array/],
    [{ model: 'm', input: '' }, 'input', /must not be empty/],
    [{ model: 'm', input: [] }, 'input', /must not be empty/],
    [{ model: 'm', input: ['a', ''] }, 'input[1]', /must not be empty/],
    [{ model: 'm', input: ['a', 5] }, 'input[1]', /must be a string, like/],
    [{ model: 'm', input: [5, 'a'] }, 'input[1]', /must be a token id/],
    [{ model: 'm', input: [1.5] }, 'input[0]', /must be a token id/],
    [{ model: 'm', input: [-1] }, 'input[0]', /must be a token id/],
    [{ model: 'm', input: [0x1_0000_0000] }, 'input[0]', /must be a token id/],
    [{ model: 'm', input: [null] }, 'input[0]', /must be a string, a token id or an array/],
    [{ model: 'm', input: [[1], 'a'] }, 'input[1]', /must be a string, a token id or an array/],
    [{ model: 'm', input: [[1], []] }, 'input[1]', /must not be empty/],
    [{ model: 'm', input: [[1], [2, 'a']] }, 'input[1][1]', /must be a token id/],
    [{ model: 'm', input: many(2049) }, 'input', /at most 2048 inputs, got 2049/],
    [{ model: 'm', input: many(2049, [1]) }, 'input', /at most 2048 inputs, got 2049/],
    [{ model: 'm', input: 'a', encoding_format: 'int8' }, 'encoding_format', /"float", "base64"/],
    [{ model: 'm', input: 'a', dimensions: 0 }, 'dimensions', />= 1/],
    [{ model: 'm', input: 'a', dimensions: 1.5 }, 'dimensions', /integer/],
    [{ model: 'm', input: 'a', user: 5 }, 'user', /string/],
  ]
  for (const [body, param, message] of rows) {
    const error = thrown(() => decode(body, of()))
    t.match(error, { status: 400, code: 'invalid_parameters', param, message }, JSON.stringify(body).slice(0, 80))
  }
})

const textOf = (encoder: Encoder): string => {
  const last = encoder.end()
  return Array.isArray(last) ? Buffer.concat(last).toString() : last.toString()
}

/** What is written of a result. */
function answer(
  result: { value: Embeddings; bytes?: Buffer | string },
  request: object,
  usage?: Partial<Usage>,
): string {
  const ex = Object.assign(of(request), { logId: 'x' })
  const encoder = openAiEmbeddings.encoder(ex)
  const batch: Event[] = [...(usage ? [{ type: 'usage', usage } as const] : []), { type: 'result', ...result }]
  ex.observe(batch)
  t.equal(encoder.write(batch), undefined)
  return textOf(encoder)
}

const data = '[{"object":"embedding","index":0,"embedding":[0.5,-0.250]}]'
const packed = '[{"object":"embedding","index":0,"embedding":"AAAAPwAAgL4="}]'
const around = (inner: string, tokens = 5) =>
  `{"object":"list","data":${inner},"model":"acme-large","usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}},"id":"embd-x"}`

t.test('bytes in the form that was asked for pass byte by byte, from the cache too', async t => {
  for (const bytes of [Buffer.from(data), data]) {
    t.equal(answer({ value: { encoding: 'float' }, bytes }, {}, { prompt: 5 }), around(data))
    t.equal(answer({ value: { encoding: 'float' }, bytes }, { encoding_format: 'float' }, { prompt: 5 }), around(data))
  }
  const value: Embeddings = { encoding: 'base64' }
  t.equal(answer({ value, bytes: Buffer.from(packed) }, { encoding_format: 'base64' }, { prompt: 5 }), around(packed))
})

t.test('a provider that has one form only serves both', async t => {
  const plain = data.replace('0.250', '0.25')
  const rows: [Parameters<typeof answer>[0], encoding_format: string, written: string][] = [
    [{ value: { encoding: 'float' }, bytes: Buffer.from(data) }, 'base64', packed],
    [{ value: { encoding: 'base64' }, bytes: Buffer.from(packed) }, 'float', plain],
    [{ value: { encoding: 'float', vectors: [[0.5, -0.25]] } }, 'base64', packed],
    [{ value: { encoding: 'float', vectors: [[0.5, -0.25]] } }, 'float', plain],
    [{ value: { encoding: 'base64', vectors: ['AAAAPwAAgL4='] } }, 'float', plain],
    [{ value: { encoding: 'base64', vectors: ['AAAAPwAAgL4='] } }, 'base64', packed],
  ]
  for (const [result, encoding_format, written] of rows) {
    t.equal(answer(result, { encoding_format }, { prompt: 5 }), around(written), encoding_format)
  }
  const value: Embeddings = { encoding: 'float', vectors: [[1], [2]] }
  t.match(JSON.parse(answer({ value }, {}, { prompt: 5 })), { data: [{ index: 0 }, { index: 1 }] })
})

t.test('tokens that no provider counted are estimated, and completion tokens are always 0', async t => {
  const value: Embeddings = { encoding: 'float', vectors: [[1]] }
  const rows: [input: unknown, tokens: number][] = [
    ['twelve chars', 3],
    [['twelve chars', 'more'], 4],
    [[1, 2, 3], 3],
    [[[1, 2], [3]], 3],
  ]
  for (const [input, tokens] of rows) {
    const ex = of({ input })
    const encoder = openAiEmbeddings.encoder(ex)
    encoder.write([{ type: 'result', value }])
    t.match(JSON.parse(textOf(encoder)), { usage: { prompt_tokens: tokens, total_tokens: tokens } })
    t.match(ex, { estimated: true, usage: { prompt: tokens, completion: 0 } })
  }
  const ex = of()
  ex.observe([{ type: 'usage', usage: { prompt: 9 } }])
  ex.meter.complete(false)
  t.match(ex, { estimated: false, usage: { prompt: 9, completion: 0 } })
})

t.test('many vectors are written in steps, none of which has many of them', async t => {
  const vectors = many(500, many(600, 0.015625)) as number[][]
  const packed = vectors.map((vector, index) => ({ object: 'embedding', index, embedding: toBase64(vector) }))
  const results: Extract<Event, { type: 'result' }>[] = [
    { type: 'result', value: { encoding: 'float', vectors } },
    { type: 'result', value: { encoding: 'base64', vectors: packed.map(({ embedding }) => embedding) } },
    { type: 'result', value: { encoding: 'base64' }, bytes: Buffer.from(JSON.stringify(packed)) },
  ]
  for (const [wire, { encoder: encoderOf }] of Object.entries({ openAiEmbeddings, batchEmbedContents }))
    for (const result of results) {
      const ex = Object.assign(of(), { logId: 'x' })
      const encoder = encoderOf(ex)
      ex.observe([result])
      encoder.write([result])
      const written = encoder.end()
      const { data, embeddings = data } = JSON.parse(written.toString())
      t.strictSame(
        embeddings.map((one: { embedding?: number[]; values?: number[] }) => one.embedding ?? one.values),
        vectors,
        wire,
      )
    }
})

t.test('a replay says which model answered, and has the id of the answer that it repeats', async t => {
  const ex = of()
  ex.target = undefined
  ex.answer.cached = { provider: 'acme', model: 'acme-small', externalId: 'x', logId: 'first', at: 0 }
  const encoder = openAiEmbeddings.encoder(ex)
  encoder.write([{ type: 'result', value: { encoding: 'float' }, bytes: data }])
  t.match(JSON.parse(textOf(encoder)), { id: 'embd-first', model: 'acme-small' })
})

t.test('errors have the form of the other endpoints, and none is said in band', async t => {
  const error = errors.invalidAnswer('x')
  t.match(openAiEmbeddings.error(error), { error: { code: 'upstream_invalid_response' } })
  const encoder: Encoder = openAiEmbeddings.encoder(of())
  t.equal(encoder.fail(error), undefined)
  t.equal(encoder.contentType, 'application/json')
})

t.test('vectors are float32, little end first', async t => {
  t.equal(toBase64([0.5, -0.25]), 'AAAAPwAAgL4=')
  t.strictSame(toNumbers('AAAAPwAAgL4='), [0.5, -0.25])
  t.strictSame(toNumbers(toBase64([0.1])), [Math.fround(0.1)])
  t.strictSame(toNumbers('AAAAPwA='), [0.5], 'what is left over is no number')
})
