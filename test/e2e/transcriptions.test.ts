/** Transcriptions and translations: the official client in every format and streamed, money, failover, refusals, the demo. */
import { createHash, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI, { toFile } from 'openai'
import t from 'tap'
import { wavHead } from '../../src/lib/wav.ts'
import { openBooks } from '../helpers/books.ts'
import { Child } from '../helpers/child.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { type Received, scripted } from '../helpers/scripted.ts'

type Tree = Record<string, unknown>

const [provider, spare] = await Promise.all([scripted(t), scripted(t)])
const timeouts = { connect: '500ms', first_event: '2s', idle: '5s', total: '10s' }
const operations = ['transcriptions', 'translations']
const model = (id: string) => ({ id, name: id, family: 'test', input: ['audio'], output: ['text'], operations })
const wires = { transcriptions: 'openai.transcriptions', translations: 'openai.translations' }
const hourly = { pricing: { input_audio_hour: '0.36' } }
const gateway = await startGateway(t, {
  models: ['hear', 'plain', 'tell', 'listen', 'demo-transcribe'].map(model),
  providers: {
    acme: {
      base_url: provider.url,
      wires,
      timeouts,
      priority: 2,
      models: [
        { model: 'hear', id: 'hear-1', ...hourly, supports: ['timestamps', 'diarization', 'streaming'] },
        { model: 'plain', id: 'plain-1', ...hourly, max_file: '1KiB' },
        { model: 'tell', id: 'tell-1', pricing: { prompt: '2.5', completion: '10', input_audio: '6' } },
      ],
    },
    spare: {
      base_url: spare.url,
      wires: { transcriptions: 'deepgram.transcriptions' },
      timeouts,
      models: [
        { model: 'hear', id: 'nova', ...hourly, supports: ['timestamps', 'diarization'] },
        { model: 'listen', id: 'nova', ...hourly },
      ],
    },
    demo: {
      base_url: '$' + '{GATEWAY_DEMO_URL}',
      auth: { scheme: 'none' },
      wires,
      models: [{ model: 'demo-transcribe', pricing: { input_audio_hour: '0' }, supports: ['timestamps'] }],
    },
  },
})
const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })
const command = commandsOf(gateway)
const wav = (seconds: number) => Buffer.concat([wavHead(8000, seconds * 16_000), Buffer.alloc(seconds * 16_000)])
const file = (bytes: Buffer = wav(1), name = 'speech.wav') => toFile(bytes, name)
/** The form that the provider got. */
const formOf = async ({ body, headers }: Received): Promise<FormData> =>
  (await new Response(new Uint8Array(body), {
    headers: { 'content-type': headers['content-type']! },
  }).formData()) as FormData
const textsOf = (form: FormData) => Object.fromEntries([...form].filter(([, value]) => typeof value === 'string'))
const verbose = {
  ...{ task: 'transcribe', language: 'english', duration: 3.6, text: 'Hello there. How are you?' },
  segments: [
    { id: 0, start: 0, end: 1.5, text: ' Hello there.' },
    { id: 1, start: 1.6, end: 3.6, text: ' How are you?' },
  ],
}
const usage = { type: 'duration', seconds: 4, cost: 0.00036 }

t.test("OpenAI's own client gets each format", async t => {
  provider.answers({ json: verbose })
  const of = async (response_format: string) =>
    client.audio.transcriptions.create({
      model: 'hear',
      file: await file(),
      response_format: response_format as 'json',
    })
  t.strictSame(await of('json'), { text: verbose.text, language: 'english', duration: 3.6, usage })
  const form = await formOf(provider.last())
  t.strictSame(textsOf(form), { model: 'hear-1', response_format: 'verbose_json', chunking_strategy: 'auto' })
  const sent = form.get('file') as File
  t.strictSame([sent.name, sent.type, sent.size], ['audio.wav', 'audio/wav', wav(1).length])
  t.equal(await of('text'), `${verbose.text}\n`)
  t.match(await of('srt'), /^1\n00:00:00,000 --> 00:00:01,500\nHello there\.\n\n2\n/)
  t.match(await of('vtt'), /^WEBVTT\n\n00:00:00\.000 --> /)
  t.match(await of('verbose_json'), { task: 'transcribe', segments: [{ id: 0, seek: 0 }, { id: 1 }], usage })
  const speakers = verbose.segments.map((segment, at) => ({ ...segment, speaker: `spk_${at}` }))
  provider.answers({ json: { ...verbose, segments: speakers } })
  t.match(await of('diarized_json'), {
    segments: [
      { speaker: 'A', id: 'seg_0' },
      { speaker: 'B', text: 'How are you?' },
    ],
  })
  const worded = { ...verbose, words: [{ word: 'Hello', start: 0, end: 0.5 }] }
  provider.answers({ json: worded })
  const detailed = await client.audio.transcriptions.create({
    ...{ model: 'hear', file: await file(), response_format: 'verbose_json', language: 'en' },
    timestamp_granularities: ['word', 'segment'],
  })
  t.match(detailed, { words: worded.words })
  t.match(textsOf(await formOf(provider.last())), { 'timestamp_granularities[]': 'segment', language: 'en' })
})

t.test('a stream comes in deltas, and as one where the provider does not stream', async t => {
  const event = (type: string, more: Tree) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
  const whole =
    event('transcript.text.delta', { delta: 'Hello' }) +
    event('transcript.text.delta', { delta: ' there' }) +
    event('transcript.text.done', { text: 'Hello there', usage: { type: 'duration', seconds: 36 } })
  provider.answers({ type: 'text/event-stream', body: whole })
  const read = async (name: string) => {
    const events: Tree[] = []
    const stream = await client.audio.transcriptions.create({ model: name, file: await file(), stream: true })
    for await (const event of stream) events.push(event as unknown as Tree)
    return events
  }
  t.match(await read('hear'), [
    { type: 'transcript.text.delta', delta: 'Hello' },
    { type: 'transcript.text.delta', delta: ' there' },
    { type: 'transcript.text.done', text: 'Hello there', usage: { type: 'duration', seconds: 36, cost: 0.0036 } },
  ])
  t.match(textsOf(await formOf(provider.last())), { stream: 'true', response_format: 'json' })
  const counted = {
    type: 'tokens',
    input_tokens: 14,
    input_token_details: { audio_tokens: 10, text_tokens: 4 },
    output_tokens: 45,
  }
  provider.answers({ json: { text: 'Hi', usage: counted } })
  t.match(await read('tell'), [
    { type: 'transcript.text.delta', delta: 'Hi' },
    { text: 'Hi', usage: { ...counted, total_tokens: 59, cost: 0.00052 } },
  ])
})

t.test('translations are asked for at their own path', async t => {
  provider.answers({ json: { text: 'Good day' } })
  const answer = await client.audio.translations.create({
    model: 'plain',
    file: await toFile(Buffer.from('ID3 x'), 'a'),
  })
  t.match(answer, { text: 'Good day' })
  t.equal(provider.last().path, '/v1/audio/translations')
  t.equal(((await formOf(provider.last())).get('file') as File).name, 'audio.mp3', 'its first bytes say what it is')
})

t.test('a translation takes its own fields, and no others change it', async t => {
  const translate = async (fields: Record<string, string | readonly string[]>) => {
    const form = new FormData()
    for (const [name, texts] of Object.entries({ model: 'plain', ...fields })) {
      for (const text of [texts].flat()) form.append(name, text as string)
    }
    form.append('file', new Blob(['ID3 x']), 'a')
    const headers = { authorization: `Bearer ${gateway.key}` }
    return fetch(`${gateway.url}/v1/audio/translations`, { method: 'POST', headers, body: form })
  }
  const speakers = await translate({ response_format: 'diarized_json' })
  t.equal(speakers.status, 400)
  t.match(await speakers.json(), { error: { code: 'invalid_parameters', param: 'response_format' } })
  provider.answers({ json: { text: 'Good day' } })
  const ignored = { stream: 'true', language: 'de', diarize: 'true', 'timestamp_granularities[]': ['word'] }
  const answer = await translate({ ...ignored, prompt: 'Names: Ada', temperature: '0.5' })
  t.equal(answer.headers.get('content-type'), 'application/json')
  t.match(await answer.json(), { text: 'Good day' })
  t.strictSame(textsOf(await formOf(provider.last())), {
    model: 'plain-1',
    prompt: 'Names: Ada',
    temperature: '0.5',
    response_format: 'json',
  })
})

t.test('a file fails over whole, byte for byte, and is charged by its length', async t => {
  const sound = Buffer.concat([wavHead(8000, 576_000), randomBytes(576_000)])
  provider.answers({ status: 500, json: {} })
  spare.answers({
    json: { metadata: { duration: 36 }, results: { channels: [{ alternatives: [{ transcript: 'Hi' }] }] } },
  })
  const { data, response } = await client.audio.transcriptions
    .create({ model: 'hear', file: await file(sound) })
    .withResponse()
  t.match(data, { text: 'Hi', usage: { seconds: 36, cost: 0.0036 } })
  t.equal(response.headers.get('x-gateway-provider'), 'spare')
  t.equal(response.headers.get('x-gateway-cost'), '0.0036')
  const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
  const got = spare.last()
  t.strictSame([digest(got.body), got.headers['content-type']], [digest(sound), 'audio/wav'])
  const form = await formOf(provider.last())
  t.equal(digest(Buffer.from(await (form.get('file') as File).arrayBuffer())), digest(sound))
})

t.test('a file of a few bytes has a price by the hour', async t => {
  provider.answers({ json: { ...verbose, duration: 0.0001 } })
  for (const bytes of [Buffer.from('RIFF'), wav(1 / 16_000)]) {
    const answer = await client.audio.transcriptions.create({ model: 'hear', file: await toFile(bytes, 'a.wav') })
    t.match(answer, { text: verbose.text, usage: { cost: 0 } }, `${bytes.length} bytes`)
  }
})

t.test('an address goes to wires that take one', async t => {
  spare.answers({
    json: { metadata: { duration: 3.6 }, results: { channels: [{ alternatives: [{ transcript: 'Hi' }] }] } },
  })
  const ask = (body: Tree) => gateway.post('/v1/audio/transcriptions', body)
  const answer = await ask({ model: 'listen', url: 'https://a.example/a.mp3' })
  t.match(await answer.json(), { text: 'Hi', usage: { cost: 0.00036 } })
  t.strictSame(spare.last().json, { url: 'https://a.example/a.mp3' })
  for (const [body, code, param] of [
    [{ model: 'listen', url: 'http://a.example/a.mp3' }, 'url_not_allowed', 'url'],
    [{ model: 'listen', url: 'https://10.0.0.1/a.mp3' }, 'url_not_allowed', 'url'],
    [{ model: 'listen', url: 'data:audio/wav;base64,AAAA' }, 'url_not_allowed', 'url'],
    [{ model: 'listen' }, 'invalid_parameters', 'file'],
  ] as const) {
    const refused = await ask(body)
    t.equal(refused.status, 400)
    t.match(await refused.json(), { error: { code, param } }, JSON.stringify(body))
  }
})

t.test('a request that is wrong is refused before any provider', async t => {
  const before = provider.got.length
  const send = async (fields: Record<string, string>, bytes: Buffer | undefined = wav(1)) => {
    const form = new FormData()
    for (const [name, text] of Object.entries({ model: 'hear', ...fields })) form.append(name, text)
    if (bytes) form.append('file', new Blob([new Uint8Array(bytes)]), 'a.wav')
    const headers = { authorization: `Bearer ${gateway.key}` }
    return fetch(`${gateway.url}/v1/audio/transcriptions`, { method: 'POST', headers, body: form })
  }
  const rows: [fields: Record<string, string>, status: number, code: string, param: string | null, bytes?: Buffer][] = [
    [{}, 400, 'invalid_parameters', 'file', Buffer.alloc(0)],
    [{ temperature: '2' }, 400, 'invalid_parameters', 'temperature'],
    [{ temperature: 'hot' }, 400, 'invalid_parameters', 'temperature'],
    [{ response_format: 'xml' }, 400, 'invalid_parameters', 'response_format'],
    [{ response_format: 'srt', stream: 'true' }, 400, 'invalid_parameters', 'stream'],
    [{ model: 'plain', response_format: 'srt' }, 400, 'model_not_supported', 'response_format'],
    [{ model: 'plain', diarize: 'true' }, 400, 'model_not_supported', 'diarize'],
    [{ model: 'plain' }, 413, 'request_too_large', 'file'],
    [{ model: 'nobody' }, 404, 'model_not_found', 'model'],
  ]
  for (const [fields, status, code, param, bytes] of rows) {
    const answer = await send(fields, bytes)
    const { error } = (await answer.json()) as { error: Tree }
    t.strictSame([answer.status, error.code, error.param], [status, code, param], JSON.stringify(fields))
  }
  const text = await gateway.post('/v1/audio/transcriptions', 'x', { 'content-type': 'text/plain' })
  t.equal(text.status, 415)
  t.equal(provider.got.length, before)
  const messageOf = async (fields: Record<string, string>) =>
    ((await (await send(fields)).json()) as { error: Tree }).error.message
  t.match(
    await messageOf({ model: 'plain', response_format: 'srt' }),
    /supports timestamps\. Ask for "json" or "text"\.$/,
  )
  t.match(await messageOf({ model: 'plain' }), /a file of so many bytes\. It takes at most \d+\.$/)
})

t.test('the demo says how large the file is, for nothing', async t => {
  const answer = await client.audio.transcriptions.create({
    model: 'demo-transcribe',
    file: await file(),
    response_format: 'srt',
  })
  t.match(answer, /simulated transcript of \d+ bytes/)
})

t.test('gatewayctl transcribe, as it is shipped, prints the transcript of the demo', async t => {
  const dir = t.testdir({})
  writeFileSync(join(dir, 'a.wav'), wav(1))
  const bin = join(import.meta.dirname, '../../bin/gatewayctl.js')
  const args = ['transcribe', join(dir, 'a.wav'), '--format', 'vtt', '--url', gateway.url]
  const ctl = new Child(bin, args, { env: { GATEWAY_API_KEY: gateway.key }, stdio: ['ignore', 'pipe', 'pipe'] })
  t.equal(await ctl.exited, 0, ctl.stderr)
  t.match(ctl.stdout, /^WEBVTT\n\n00:00:00\.000 --> .*\nThis is a simulated transcript/)
  t.match(ctl.stderr, /^\[demo\/demo-transcribe, \$0\]$/m)
})

t.test('the books are sound', async t => {
  t.strictSame(await command('usage.check'), { differences: [] })
  const books = openBooks(t, gateway)
  t.strictSame(books.prepare('SELECT * FROM holds').all(), [])
  const rows = books
    .prepare(
      "SELECT model, estimated, count(*) AS n FROM requests WHERE model IN ('hear', 'plain') AND status = 200 GROUP BY 1, 2",
    )
    .all() as { model: string; estimated: bigint; n: bigint }[]
  // What hear said had a duration each time; translations by plain had none, nor a head that says it.
  t.strictSame(
    rows.map(({ model, estimated }) => [model, Number(estimated)]),
    [
      ['hear', 0],
      ['plain', 1],
    ],
  )
})
