/** The official client's error classes at the endpoints of media: what is refused, limited or failed surfaces as its own. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import OpenAI, { toFile } from 'openai'
import t from 'tap'
import { startGateway } from '../helpers/gateway.ts'
import { scripted } from '../helpers/scripted.ts'

const provider = await scripted(t)
const timeouts = { connect: '500ms', first_event: '2s', idle: '2s', total: '5s' }
const model = (id: string, more: object) => ({ id, name: id, family: 'test', input: ['text'], ...more })
const audio = { output: ['audio'], tokenizer: 'characters' }
const gateway = await startGateway(t, {
  models: [
    model('say', audio),
    model('unpriced', audio),
    model('draw', { output: ['image'] }),
    model('judge', { output: ['moderation'] }),
    model('hear', { input: ['audio'], output: ['text'], operations: ['transcriptions'] }),
  ],
  providers: {
    acme: {
      base_url: provider.url,
      wires: {
        speech: 'openai.speech',
        images: 'openai.images',
        moderations: 'openai.moderations',
        transcriptions: 'openai.transcriptions',
      },
      timeouts,
      models: [
        { model: 'say', pricing: { prompt: '15' } },
        { model: 'unpriced' },
        { model: 'draw', pricing: { per_image: { default: '0.04' } }, max_n: 1 },
        { model: 'judge', pricing: { request: '0' } },
        { model: 'hear', pricing: { input_audio_hour: '0.36' }, max_file: '1KiB' },
      ],
    },
  },
  config: { endpoints: { moderations: { ratelimit: { rpm: 1 } } } },
})

const clientOf = (apiKey: string) => new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 })
const client = clientOf(gateway.key)
const say = (more: object = {}, by = client, headers = {}) =>
  by.audio.speech.create({ model: 'say', voice: 'alloy', input: 'Hi', ...more }, { headers })
const hear = async (bytes: number) =>
  client.audio.transcriptions.create({ model: 'hear', file: await toFile(Buffer.alloc(bytes, 1), 'a.mp3') })

t.test('each refusal has the class of its status, and our code', async t => {
  provider.answers({ status: 500, json: { error: { message: 'it broke' } } })
  const judged = () => client.moderations.create({ model: 'judge', input: 'x' })
  // The first takes what the minute has; what its provider says does not matter.
  await judged().catch(() => undefined)
  const rows = [
    [() => say({ input: '' }), OpenAI.BadRequestError, 400, 'invalid_parameters'],
    [() => say({ model: 'draw' }), OpenAI.BadRequestError, 400, 'model_not_supported'],
    [() => client.images.generate({ model: 'draw', prompt: '' }), OpenAI.BadRequestError, 400, 'invalid_parameters'],
    [() => hear(0), OpenAI.BadRequestError, 400, 'invalid_parameters'],
    [() => say({}, clientOf('mgw_wrong')), OpenAI.AuthenticationError, 401, 'invalid_api_key'],
    [() => say({ model: 'unpriced' }), OpenAI.APIError, 402, 'billing_error'],
    [() => say({ model: 'nope' }), OpenAI.NotFoundError, 404, 'model_not_found'],
    [() => hear(2000), OpenAI.APIError, 413, 'request_too_large'],
    [() => say({}, client, { 'content-type': 'text/plain' }), OpenAI.APIError, 415, 'unsupported_media_type'],
    [judged, OpenAI.RateLimitError, 429, 'rate_limit_exceeded'],
    [() => say(), OpenAI.InternalServerError, 502, 'all_providers_failed'],
    [
      () => client.images.generate({ model: 'draw', prompt: 'x' }),
      OpenAI.InternalServerError,
      502,
      'all_providers_failed',
    ],
  ] as const
  for (const [call, kind, status, code] of rows) {
    const error: unknown = await call().catch((thrown: unknown) => thrown)
    t.ok(error instanceof kind, `${status} is ${kind.name}: ${String(error)}`)
    t.match(error, { status, code, headers: Headers })
    t.match((error as InstanceType<typeof OpenAI.APIError>).headers!.get('x-request-id'), /./)
  }
})

t.test('M9 a form whose length is wrong is cut, and one that is compressed is not read', async t => {
  const part = '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nhear\r\n'
  const body = Buffer.from(`${part}${part.replace('"model"', '"file"; filename="a.mp3"')}--b--\r\n`)
  const send = async (headers: Record<string, string | number>) => {
    const sending = request(`${gateway.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.key}`,
        'content-type': 'multipart/form-data; boundary=b',
        connection: 'close',
        ...headers,
      },
    })
    sending.end(body)
    const [answer] = (await once(sending, 'response')) as [IncomingMessage]
    const { error } = JSON.parse(await text(answer)) as { error: { code: string } }
    return [answer.statusCode, error.code]
  }
  t.strictSame(await send({ 'content-length': body.length - 30 }), [400, 'invalid_form_data'])
  t.strictSame(await send({ 'content-length': body.length, 'content-encoding': 'gzip' }), [415, 'unsupported_encoding'])
})
