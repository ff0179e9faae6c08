/**
 * The wires of embeddings. Their tables are `test/golden/embeddings`: requests with the body that they become, answers
 * with their vectors, and answers that are none.
 */
import t from 'tap'
import { plugin as cohere } from '../../plugins/cohere.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import { plugin as jina } from '../../plugins/jina.ts'
import { plugin as mistral } from '../../plugins/mistral.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import { plugin as voyage } from '../../plugins/voyage.ts'
import { Registry } from '../../src/app/registry.ts'
import type { Event } from '../../src/core/event.ts'
import type { Target, Translator } from '../../src/core/translator.ts'
import type { Frame } from '../../src/core/wire.ts'
import { GatewayError } from '../../src/lib/error.ts'
import type { Embeddings } from '../../src/operations/embeddings/request.ts'
import { framingFor } from '../../src/upstream/framing/index.ts'
import { thrown } from '../core/kit.ts'
import { startUpstream } from '../helpers/upstream.ts'
import { golden, type Json } from './golden-kit.ts'
import { deepFreeze, target } from './wire-kit.ts'

type Wire = Translator<'embeddings'>

const wires = new Map<string, Wire>()
for (const { wires: all } of [openai, mistral, cohere, voyage, jina, gemini]) {
  for (const wire of all) if (wire.op === 'embeddings') wires.set(wire.wire, wire)
}
const { table } = golden('embeddings')
const offer = (externalId = 'test-large'): Target => target({ mapping: { externalId }, secret: 'sk-secret-1' })

/** Encodes with a frozen input. */
function encode(name: string, request: Json, to = offer()) {
  return wires.get(name)!.encode(deepFreeze({ model: 'acme-large', ...request }) as never, to, false)
}

/** The events of a body that comes as bytes, as production reads it. */
function decode(name: string, body: Buffer): Event[] {
  const { framing, mode } = framingFor('application/json', false)
  const decoder = wires.get(name)!.decoder(mode, offer())
  const frames = [...framing.push(body), ...framing.end()]
  return [...frames.flatMap(frame => decoder.frame(frame)), ...decoder.end()]
}

/** The events of a body that comes as text alone. */
function decodeText(name: string, data: string): Event[] {
  const decoder = wires.get(name)!.decoder('stream', offer())
  const frame: Frame = { data }
  return [...decoder.frame(frame), ...decoder.end()]
}

/** What a result holds, whatever its form. */
function vectorsOf(events: readonly Event[]): { encoding: string; vectors: unknown } {
  const result = events.find(event => event.type === 'result')
  if (!result) throw new Error(`no result in ${JSON.stringify(events)}`)
  const { encoding, vectors } = result.value as Embeddings
  if (vectors) return { encoding, vectors }
  const entries = JSON.parse(String(result.bytes)) as { object: string; index: number; embedding: unknown }[]
  return { encoding, vectors: entries.map(entry => entry.embedding) }
}

const promptOf = (events: readonly Event[]) =>
  events.flatMap(event => (event.type === 'usage' ? [event.usage.prompt] : []))[0]

const errorOf = (events: readonly Event[]): GatewayError => {
  const [event, ...others] = events
  if (event?.type !== 'error' || others.length > 0) throw new Error(`no fault in ${JSON.stringify(events)}`)
  return event.error
}

t.test('the registry has all wires', async t => {
  const registry = new Registry()
  t.strictSame(
    [...wires.keys()],
    [
      'openai.embeddings',
      'mistral.embeddings',
      'cohere.embeddings',
      'voyage.embeddings',
      'jina.embeddings',
      'gemini.embeddings',
      'gemini.vertex-embeddings',
      'gemini.vertex-embed-content',
    ],
  )
  for (const [name, wire] of wires) t.equal(registry.wires.get(name), wire)
})

t.test('golden requests are encoded without touching them, and always to the same bytes', async t => {
  interface Row {
    wire: string
    externalId?: string
    request: Json
    path: string
    body: Json
  }
  for (const { name, wire, externalId, request, path, body } of table<Row>('requests')) {
    const sent = encode(wire, request, offer(externalId))
    t.strictSame({ path: sent.path, body: sent.body }, { path, body }, name)
    const bytes = JSON.stringify(sent.body)
    for (let time = 0; time < 100; time++) {
      if (JSON.stringify(encode(wire, request, offer(externalId)).body) !== bytes) t.fail(name)
    }
  }
})

t.test('what a wire cannot carry is the caller’s fault, and said', async t => {
  const rows: [name: string, input: unknown, message: RegExp][] = [
    ...[...wires.keys()]
      .filter(name => name !== 'openai.embeddings')
      .flatMap((name): [string, unknown, RegExp][] => [
        [name, [1, 2], /takes no token ids here; send text/],
        [name, [[1], [2]], /takes no token ids here; send text/],
      ]),
  ]
  for (const [name, input, message] of rows) {
    const error = thrown(() => encode(name, { input }))
    const fault = { status: 400, code: 'model_not_supported', param: 'input', failover: false, message }
    t.match(error, fault, `${name} ${message}`)
  }
  const bounds = [...wires].flatMap(([name, { maxInputs }]) => (maxInputs === undefined ? [] : [[name, maxInputs]]))
  t.strictSame(bounds, [
    ['cohere.embeddings', 96],
    ['voyage.embeddings', 1000],
    ['gemini.embeddings', 100],
    ['gemini.vertex-embeddings', 250],
    ['gemini.vertex-embed-content', 1],
  ])
})

t.test('R20 google refuses half of a surrogate pair, so it is replaced', async t => {
  for (const name of ['gemini.embeddings', 'gemini.vertex-embeddings', 'gemini.vertex-embed-content']) {
    const text = JSON.stringify(encode(name, { input: 'a\ud83d' }).body)
    t.ok(text.includes('a\ufffd'), name)
  }
})

t.test('answers are read from bytes and from text alike', async t => {
  interface Row {
    wire: string
    answer: Json
    prompt?: number
    encoding: string
    vectors: unknown
  }
  for (const { name, wire, answer, prompt, encoding, vectors } of table<Row>('answers')) {
    for (const text of [JSON.stringify(answer), JSON.stringify(answer, null, 2)]) {
      for (const events of [decode(wire, Buffer.from(text)), decodeText(wire, text)]) {
        t.strictSame(vectorsOf(events), { encoding, vectors }, name)
        t.equal(promptOf(events), prompt, name)
        t.notOk(events.some(event => event.type === 'error'))
      }
    }
  }
})

t.test('E5 an answer that is none is an error that may fail over', async t => {
  interface Row {
    wire: string
    answer: unknown
    status: number
    says: string
  }
  for (const { name, wire, answer, status, says } of table<Row>('faults')) {
    const error = errorOf(decode(wire, Buffer.from(JSON.stringify(answer))))
    t.match(error, { status, failover: true }, name)
    const said = error.detail ?? error.message
    t.ok(said.includes(says), `${name}: ${said}`)
  }
})

t.test('what is no JSON, cut short or empty is an error', async t => {
  for (const name of wires.keys()) {
    for (const text of ['<html>', '{"data":[{"object":"embedding","index":0,"embedding":[0.1', '']) {
      const error = errorOf(text === '' ? decode(name, Buffer.from('  ')) : decode(name, Buffer.from(text)))
      t.match(error, { status: 502, code: 'upstream_invalid_response' }, `${name}: ${text}`)
    }
  }
})

t.test('a fault of our own is not blamed on the provider', async t => {
  const decoder = wires.get('openai.embeddings')!.decoder('unary', offer())
  const broken = {
    get data(): string {
      throw new RangeError('broken')
    },
  }
  t.match(
    thrown(() => decoder.frame(broken)),
    { name: 'RangeError' },
  )
})

t.test('refusals are read in each provider’s own form, and show no credential', async t => {
  const rows: [name: string, status: number, body: unknown, expected: object][] = [
    [
      'openai.embeddings',
      400,
      { error: { message: 'bad', param: 'input', code: null } },
      { status: 400, param: 'input' },
    ],
    [
      'mistral.embeddings',
      422,
      { detail: [{ type: 'extra', loc: ['body', 'x'], msg: 'no' }] },
      { status: 400, param: 'x' },
    ],
    [
      'openai.embeddings',
      422,
      { detail: [{ loc: ['body', 'input', 0], msg: 'too long' }, { msg: 'and wrong' }] },
      { status: 400, param: 'input[0]', message: 'input[0]: too long; and wrong' },
    ],
    ['cohere.embeddings', 498, { message: 'invalid token' }, { status: 502, upstreamStatus: 498, failover: true }],
    ['voyage.embeddings', 400, { detail: 'too long for sk-secret-1' }, { status: 400, message: 'too long for ***' }],
    ['jina.embeddings', 401, { detail: 'no' }, { status: 502, code: 'upstream_credential', failover: true }],
    [
      'gemini.embeddings',
      429,
      { error: { code: 429, message: 'busy', status: 'RESOURCE_EXHAUSTED' } },
      { status: 503 },
    ],
  ]
  for (const [name, status, body, expected] of rows) {
    t.match(wires.get(name)!.error(status, JSON.stringify(body), offer()), expected, name)
  }
})

t.test('every wire speaks to a provider that refuses what the real one refuses', async t => {
  const upstream = await startUpstream(t)
  const url = upstream.url('a').replace(/\/v1$/, '')
  const bases: Record<string, string> = {
    'openai.embeddings': '/v1',
    'mistral.embeddings': '/v1m',
    'cohere.embeddings': '/v2',
    'voyage.embeddings': '/v1v',
    'jina.embeddings': '/v1j',
    'gemini.embeddings': '/v1beta',
    'gemini.vertex-embeddings': '/v1/projects/p/locations/global',
    'gemini.vertex-embed-content': '/v1/projects/p/locations/global',
  }
  const ask = async (name: string, request: Json, externalId?: string): Promise<Event[]> => {
    const { path, body } = encode(name, request, offer(externalId))
    const headers = { 'content-type': 'application/json', authorization: 'Bearer k' }
    const answer = await fetch(url + bases[name] + path, { method: 'POST', headers, body: JSON.stringify(body) })
    const bytes = Buffer.from(await answer.arrayBuffer())
    if (!answer.ok) throw wires.get(name)!.error(answer.status, bytes.toString(), offer())
    return decode(name, bytes)
  }
  for (const name of wires.keys()) {
    const single = name === 'gemini.vertex-embed-content'
    const input = single ? ['twelve chars'] : ['twelve chars', 'and more, 20 in all.']
    const events = await ask(name, { input })
    const { encoding, vectors } = vectorsOf(events)
    t.equal(encoding, 'float', name)
    t.strictSame(
      (vectors as number[][]).map(vector => vector.length),
      input.map(() => 8),
      name,
    )
    const characters = input.join('').length
    t.equal(promptOf(events), name === 'gemini.embeddings' ? undefined : characters / 4, name)

    const dimensions = name === 'cohere.embeddings' ? 256 : 4
    const sized = await ask(name, { input, dimensions, encoding_format: 'base64' }, 'codestral-embed-test')
    const packed = vectorsOf(sized)
    const google = name.startsWith('gemini')
    t.equal(packed.encoding, google ? 'float' : 'base64', name)
    const [first] = packed.vectors as (string | number[])[]
    const length = typeof first === 'string' ? Buffer.from(first, 'base64').length / 4 : first!.length
    t.equal(length, dimensions, name)
    if (google) t.ok(Math.abs(Math.hypot(...(first as number[])) - 1) < 1e-9, `${name}: length 1`)

    await upstream.script('/a', [{ status: 429 }])
    const refused = await ask(name, { input }).then(
      () => undefined,
      (error: unknown) => error,
    )
    t.ok(refused instanceof GatewayError)
    t.match(refused, { status: 503, failover: true }, name)
    await upstream.script('/a', [{}])
  }
})
