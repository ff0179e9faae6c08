/**
 * The official Python clients, unmodified, over three provider wires: `openai` for chat and for Responses, `anthropic` and
 * `google-genai`; at night `litellm` too, which loads for as long as all others take.
 */
import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { commandsOf } from '../helpers/commands.ts'
import { judged } from '../helpers/figure.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { startPython } from '../helpers/python.ts'
import { realtimeProvider } from '../helpers/realtime-provider.ts'
import { type Step, startUpstream } from '../helpers/upstream.ts'
import { wires as allWires, manifestOf } from './matrix/wires.ts'
import { outcomes, slowEndpoints } from './media/outcomes.ts'

const installer = fileURLToPath(new URL('../python/install.mjs', import.meta.url))
/** The runner gives this file 300 s. */
const { status, stdout, stderr } = spawnSync(process.execPath, [installer], { encoding: 'utf8', timeout: 270_000 })
if (status !== 0) {
  t.plan(0, `the Python clients are missing: ${stderr.trim() || 'their installation took longer than 270 s'}`)
  process.exit()
}

const wires = allWires.filter(({ wire }) => ['openai.chat', 'anthropic.messages', 'gemini.generate'].includes(wire))
const upstream = await startUpstream(t, { key: upstreamSecret })
const sessions = await realtimeProvider(t)
const gateway = await startGateway(t, {
  providers: {
    ...Object.fromEntries(wires.map(wire => [wire.id, manifestOf(wire, upstream, wire.id, [wire.id])])),
    nowhere: { base_url: upstream.url('nowhere'), models: [{ ...testMapping, model: 'nowhere' }] },
    bare: { base_url: upstream.url('bare'), models: [{ ...testMapping, model: 'unpriced', pricing: undefined }] },
  },
  files: {
    'config/models.d/talks.yaml': stringify({
      models: [
        { id: 'talks', name: 'talks', family: 'test', input: ['audio'], output: ['audio'], operations: ['realtime'] },
      ],
    }),
    'providers.d/talks.yaml': stringify({
      ...{ provider: 'talks', name: 'talks', base_url: sessions.url, wires: { realtime: 'openai.realtime' } },
      auth: { scheme: 'bearer', secret: upstreamSecret },
      models: [{ ...testMapping, model: 'talks', supports: ['realtime'] }],
    }),
  },
})

type Classes = Record<400 | 401 | 402 | 404 | 429 | 502 | 503 | 'broken', string>

interface Client {
  readonly name: string
  readonly client: string
  readonly prefix?: string
  /** The class that a program catches, by status; `broken` is a stream that ends with an error. */
  readonly classes: Classes
  readonly finish: 'stop' | 'end_turn' | 'STOP' | 'completed'
}

const openai: Classes = {
  400: 'BadRequestError',
  401: 'AuthenticationError',
  402: 'APIStatusError',
  404: 'NotFoundError',
  429: 'RateLimitError',
  502: 'InternalServerError',
  503: 'InternalServerError',
  broken: 'APIError',
}
/** Of a stream that fails the helper says that its end is missing. */
const responses: Classes = { ...openai, broken: 'RuntimeError' }
const anthropic: Classes = {
  ...openai,
  402: 'PaymentRequiredError',
  503: 'ServiceUnavailableError',
  broken: 'APIStatusError',
}
/** It has a class for each side. */
const google: Classes = {
  400: 'ClientError',
  401: 'ClientError',
  402: 'ClientError',
  404: 'ClientError',
  429: 'ClientError',
  502: 'ServerError',
  503: 'ServerError',
  broken: 'ServerError',
}
const litellm: Classes = {
  ...anthropic,
  502: 'BadGatewayError',
  broken: 'MidStreamFallbackError',
}
/** Behind this prefix litellm goes by words of the message: "invalid_request_error", "rate limited". */
const litellmOpenai: Classes = { ...litellm, 402: 'BadRequestError', 503: 'RateLimitError' }
const clients: Client[] = [
  { name: 'openai', client: 'openai', classes: openai, finish: 'stop' },
  { name: 'openai Responses', client: 'openai-responses', classes: responses, finish: 'completed' },
  { name: 'anthropic', client: 'anthropic', classes: anthropic, finish: 'end_turn' },
  { name: 'google-genai', client: 'google-genai', classes: google, finish: 'STOP' },
]
if (judged) {
  clients.push(
    { name: 'litellm openai/', client: 'litellm', prefix: 'openai/', classes: litellmOpenai, finish: 'stop' },
    { name: 'litellm anthropic/', client: 'litellm', prefix: 'anthropic/', classes: litellm, finish: 'stop' },
  )
}
await commandsOf(gateway)('projects.update', { project: 'default', responses: '1d' })
const run = startPython(t, stdout.trim())

const city = (name: string) => ({ name: 'weather', args: { city: name } })

t.test('openai: a realtime session has its response, with text and tokens', async t => {
  const job = { client: 'openai-realtime', run: 'session', origin: gateway.url, key: gateway.key, model: 'talks' }
  t.strictSame(await run(job), { text: 'Hello', status: 'completed', tokens: 15 })
})

for (const { name, client, prefix = '', classes, finish } of clients) {
  const call = (method: string, model: string, key = gateway.key) =>
    run({ client, run: method, origin: gateway.url, key, model: prefix + model })
  /** The error that a client raises for a chat. */
  const raised = async (method: string, model: string, key?: string) => (await call(method, model, key)).error

  for (const { wire, id } of wires) {
    const play = async (...steps: Step[]) => {
      await upstream.reset()
      await upstream.script(id, steps)
    }
    const usage = { prompt: 11, completion: 7 }

    t.test(`${name} over ${wire}: a whole answer has its text, finish and tokens`, async t => {
      await play({ text: 'Cold 🙂 today', usage })
      t.strictSame(await call('chat', id), { text: 'Cold 🙂 today', finish, ...usage })
    })

    t.test(`${name} over ${wire}: a stream comes in pieces and ends with finish and tokens`, async t => {
      await play({ chunks: ['Co', 'ld ', '🙂'], usage })
      const { pieces, ...rest } = await call('stream', id)
      t.strictSame(rest, { text: 'Cold 🙂', finish, ...usage })
      t.ok((pieces as number) >= 1)
    })

    t.test(`${name} over ${wire}: tools are called, whole and streamed, and their results go back`, async t => {
      await play(
        { toolCalls: [city('Oslo'), city('Rome')] },
        { toolCalls: [city('Łódź')] },
        { text: 'Cold everywhere' },
      )
      const asked = (...cities: string[]) => cities.map(city => ['weather', { city }])
      t.strictSame(await call('tools', id), {
        turns: [asked('Oslo', 'Rome'), asked('Łódź')],
        text: 'Cold everywhere',
      })
      const entries = await upstream.record(id)
      t.same(
        entries.map(({ refused }) => refused),
        [null, null, null],
      )
      t.equal(JSON.stringify(entries.at(-1)?.body).match(/"cold"/g)?.length, 3, 'each call has its result')
    })

    t.test(`${name} over ${wire}: structured output becomes an object of the class that was given`, async t => {
      await play({ text: '{"name":"Ada","age":36}' })
      t.strictSame(await call('structured', id), { name: 'Ada', age: 36 })
      t.match(JSON.stringify((await upstream.record(id))[0]?.body), /"age"/, 'the provider gets the schema')
    })

    t.test(`${name} over ${wire}: failures of the provider are the client's classes for their status`, async t => {
      for (const [step, status] of [
        [{ status: 400 }, 400],
        [{ status: 429 }, 503],
        [{ fault: 'reset' }, 502],
      ] as const) {
        await play(step)
        t.match(await raised('chat', id), { class: classes[status] }, String(status))
      }
      await play({ chunks: ['one', 'two'], fault: 'error-event', afterChunks: 1 })
      t.match(await raised('stream', id), { class: classes.broken }, 'a stream that breaks')
    })
  }

  if (/^(?:openai|anthropic)/.test(client)) {
    t.test(`${name}: a list of models goes with the request`, async t => {
      await upstream.reset()
      await upstream.script('nowhere', [{ status: 500 }])
      t.strictSame(await call('routed', 'chat'), { model: 'chat' })
    })
  }

  t.test(`${name}: refusals of the gateway are the client's classes for their status`, async t => {
    t.match(await raised('chat', 'chat', 'mgw_wrong'), { class: classes[401] }, '401')
    t.match(await raised('chat', 'unpriced'), { class: classes[402] }, '402')
    t.match(await raised('chat', 'nope'), { class: classes[404] }, '404')
  })
}

t.test('each client raises its class of a rate limit', async t => {
  const settings = parse(await readFile(gateway.configPath, 'utf8'))
  const rpm1 = { ratelimit: { rpm: 1 } }
  await gateway.writeFile(
    'config/gateway.yaml',
    stringify({ ...settings, endpoints: { chat: rpm1, responses: rpm1, messages: rpm1, gemini: rpm1 } }),
  )
  await gateway.admin('POST', '/reload')
  for (const { name, client, prefix = '', classes } of clients) {
    const job = { client, run: 'chat', origin: gateway.url, key: gateway.key, model: `${prefix}chat` }
    // The first may be the one of its minute.
    const { error } = await run(job)
    t.match(error ?? (await run(job)).error, { class: classes[429] }, name)
  }
  await gateway.writeFile('config/gateway.yaml', stringify(settings))
  await gateway.admin('POST', '/reload')
})

t.test("openai: images, audio and moderations, and each refusal as the client's class", async t => {
  const media = await startGateway(t, outcomes)
  const call = (method: string, model = 'fine', key = media.key) =>
    run({ client: 'openai-media', run: method, origin: media.url, key, model })
  const drawn = (kind: string) => ({ types: [`${kind}.partial_image`, `${kind}.completed`] })
  const right: Record<string, object> = {
    generate: { images: 2, cost: 0 },
    generate_streamed: drawn('image_generation'),
    edit: { images: 1, format: 'png' },
    edit_streamed: drawn('image_edit'),
    speak: { begins: 'RIFF' },
    transcribe: { simulated: [true, true, true, true, true] },
    transcribe_streamed: { types: ['transcript.text.delta', 'transcript.text.done'] },
    translate: { text: /simulated transcript/ },
    moderate: { flagged: [false, true] },
  }
  for (const [name, seen] of Object.entries(right)) t.match(await call(name), seen, name)
  const rows: [model: string, status: number, name: string, key?: string][] = [
    ['other-endpoint', 400, 'BadRequestError'],
    ['fine', 401, 'AuthenticationError', 'mgw_wrong'],
    ['unpriced', 402, 'APIStatusError'],
    ['nope', 404, 'NotFoundError'],
    ['fine text/plain', 415, 'APIStatusError'],
    ['unreachable', 502, 'InternalServerError'],
  ]
  const plain = Object.keys(right).filter(name => !name.endsWith('_streamed'))
  for (const name of plain) {
    for (const [model, status, kind, key] of rows) {
      t.match((await call(name, model, key)).error, { class: kind, status }, `${name} ${model}`)
    }
  }
  for (const name of ['transcribe', 'translate']) {
    t.match((await call(name, 'small-files')).error, { class: 'APIStatusError', status: 413 }, name)
  }
  const settings = parse(await readFile(media.configPath, 'utf8')) as object
  await media.writeFile('config/gateway.yaml', stringify({ ...settings, endpoints: slowEndpoints }))
  await media.admin('POST', '/reload')
  for (const name of plain) t.match((await call(name)).error, { class: 'RateLimitError', status: 429 }, name)
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
