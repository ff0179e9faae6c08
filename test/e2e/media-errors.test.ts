/** The official clients' error classes at each endpoint of media, by status, with our codes. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { CohereClientV2, CohereError } from 'cohere-ai'
import OpenAI, { toFile } from 'openai'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { startGateway } from '../helpers/gateway.ts'
import { outcomes, slowEndpoints } from './media/outcomes.ts'

const gateway = await startGateway(t, outcomes)
const clientOf = (apiKey: string) => new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 })
const own = clientOf(gateway.key)
const MIB = 1024 * 1024
const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(24, 1)])
const image = await toFile(png, 'a.png')
const audio = (bytes = 100) => toFile(Buffer.alloc(bytes, 1), 'a.mp3')

interface Call {
  readonly model?: string
  readonly client?: OpenAI
  readonly headers?: Record<string, string>
  /** Fields that the types of the client do not allow. */
  readonly more?: object | undefined
}
type Endpoint = (call: Call) => Promise<unknown>

const endpoints: Readonly<Record<string, Endpoint>> = {
  'images.generate': ({ model = 'fine', client = own, headers = {}, more }) =>
    client.images.generate({ model, prompt: 'a cat', ...more }, { headers }),
  'images.edit': ({ model = 'fine', client = own, headers = {}, more }) =>
    client.images.edit({ model, prompt: 'a cat', image, ...more }, { headers }),
  'audio.speech': ({ model = 'fine', client = own, headers = {}, more }) =>
    client.audio.speech.create({ model, input: 'Hi', voice: 'alloy', ...more }, { headers }),
  'audio.transcriptions': async ({ model = 'fine', client = own, headers = {}, more }) =>
    client.audio.transcriptions.create({ model, file: await audio(), ...more }, { headers }),
  'audio.translations': async ({ model = 'fine', client = own, headers = {}, more }) =>
    client.audio.translations.create({ model, file: await audio(), ...more }, { headers }),
  moderations: ({ model = 'fine', client = own, headers = {}, more }) =>
    client.moderations.create({ model, input: 'x', ...more }, { headers }),
}
/** A field that is wrong at each of them. */
const wrong: Readonly<Record<string, object>> = {
  'images.generate': { prompt: '' },
  'images.edit': { quality: 'hd' },
  'audio.speech': { speed: 9 },
  'audio.transcriptions': { temperature: 9 },
  'audio.translations': { response_format: 'diarized_json' },
  moderations: { input: [] },
}

for (const [name, call] of Object.entries(endpoints)) {
  t.test(`${name}: each refusal has the class of its status, and our code`, async t => {
    await t.resolves(call({}), 'what is right is answered')
    const rows = [
      [{ more: wrong[name] }, OpenAI.BadRequestError, 400, 'invalid_parameters'],
      [{ model: 'other-endpoint' }, OpenAI.BadRequestError, 400, 'model_not_supported'],
      [{ client: clientOf('mgw_wrong') }, OpenAI.AuthenticationError, 401, 'invalid_api_key'],
      [{ model: 'unpriced' }, OpenAI.APIError, 402, 'billing_error'],
      [{ model: 'nope' }, OpenAI.NotFoundError, 404, 'model_not_found'],
      [{ headers: { 'content-type': 'text/plain' } }, OpenAI.APIError, 415, 'unsupported_media_type'],
      [{ model: 'unreachable' }, OpenAI.InternalServerError, 502, 'fetch_failed'],
    ] as const
    for (const [given, kind, status, code] of rows) {
      const error: unknown = await call(given).catch((thrown: unknown) => thrown)
      t.ok(error instanceof kind, `${status} is ${kind.name}: ${String(error)}`)
      t.match(error, { status, code, headers: Headers })
      t.match((error as InstanceType<typeof OpenAI.APIError>).headers!.get('x-request-id'), /./)
    }
  })
}

t.test('a form for images is 415, and what is too large is 413 at each endpoint', async t => {
  const form = { 'content-type': 'multipart/form-data; boundary=b' }
  t.equal((await gateway.post('/v1/images/generations', '--b--', form)).status, 415)
  const long = 'x'.repeat(5 * MIB)
  const file = await audio(2000)
  const large = await toFile(Buffer.concat([png, Buffer.alloc(51 * MIB)]), 'a.png')
  const rows: [name: string, call: Call][] = [
    ['audio.speech', { more: { input: long } }],
    ['audio.transcriptions', { model: 'small-files', more: { file } }],
    ['audio.translations', { model: 'small-files', more: { file } }],
    ['images.edit', { more: { image: large } }],
  ]
  for (const [name, call] of rows) {
    const error: unknown = await endpoints[name]!(call).catch((thrown: unknown) => thrown)
    t.ok(error instanceof OpenAI.APIError, `${name}: ${String(error)}`)
    t.match(error, { status: 413, code: 'request_too_large' }, name)
  }
  const headers = { 'content-type': 'application/json', 'content-length': 33 * MIB }
  for (const path of ['images/generations', 'moderations', 'rerank']) {
    t.strictSame(await bare(`/v1/${path}`, headers, '{'), [413, 'request_too_large'], path)
  }
})

t.test("rerank's refusals are those of Cohere's client", async t => {
  const rank = (model: string, token = gateway.key, more: object = {}) =>
    new CohereClientV2({ token, environment: gateway.url, maxRetries: 0 })
      .rerank({ model, query: 'q', documents: ['a', 'b'], ...more })
      .catch((error: unknown) => error)
  t.match(await rank('fine'), { results: [{ index: 0 }, { index: 1 }] })
  for (const [status, ...call] of [
    [400, 'fine', gateway.key, { topN: 0 }],
    [400, 'other-endpoint'],
    [401, 'fine', 'mgw_wrong'],
    [402, 'unpriced'],
    [404, 'nope'],
    [502, 'unreachable'],
  ] as const) {
    const error = await rank(...(call as [string]))
    t.ok(error instanceof CohereError, String(error))
    t.match(error, { statusCode: status })
  }
})

/** The status of an answer to a request whose head is written by hand, and the code of its error. */
async function bare(path: string, headers: Record<string, string | number>, body: string | Buffer) {
  const authorization = `Bearer ${gateway.key}`
  const sending = request(`${gateway.url}${path}`, {
    method: 'POST',
    headers: { authorization, connection: 'close', ...headers },
  })
  sending.on('error', () => undefined)
  sending.write(body)
  const [answer] = (await once(sending, 'response')) as [IncomingMessage]
  const { error } = JSON.parse(await text(answer)) as { error: { code: string } }
  sending.destroy()
  return [answer.statusCode!, error.code] as const
}

t.test('M9 a form whose length is wrong is cut, and one in an unknown coding is not read', async t => {
  const part = '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nfine\r\n'
  const body = Buffer.from(`${part}${part.replace('"model"', '"file"; filename="a.mp3"')}--b--\r\n`)
  const send = (headers: Record<string, string | number>) =>
    bare('/v1/audio/transcriptions', { 'content-type': 'multipart/form-data; boundary=b', ...headers }, body)
  t.strictSame(await send({ 'content-length': body.length - 30 }), [400, 'invalid_form_data'])
  t.strictSame(await send({ 'content-length': body.length, 'content-encoding': 'gzip' }), [400, 'bad_request'])
  t.strictSame(await send({ 'content-length': body.length, 'content-encoding': 'br' }), [415, 'unsupported_encoding'])
})

t.test('a limit of the rate is its own class at each endpoint', async t => {
  const settings = parse(await readFile(gateway.configPath, 'utf8')) as object
  await gateway.writeFile('config/gateway.yaml', stringify({ ...settings, endpoints: slowEndpoints }))
  await gateway.admin('POST', '/reload')
  for (const [name, call] of Object.entries(endpoints)) {
    const error: unknown = await call({}).catch((thrown: unknown) => thrown)
    t.ok(error instanceof OpenAI.RateLimitError, name)
    t.match(error, { status: 429, code: 'rate_limit_exceeded' }, name)
  }
})
