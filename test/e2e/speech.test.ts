/** `POST /v1/audio/speech`: the official client, sound as it comes, typed events, money, failover, cuts and the demo. */
import { once } from 'node:events'
import { createWriteStream, readFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import OpenAI from 'openai'
import t from 'tap'
import { openBooks } from '../helpers/books.ts'
import { Child } from '../helpers/child.ts'
import { commandsOf } from '../helpers/commands.ts'
import { timing } from '../helpers/figure.ts'
import { startGateway } from '../helpers/gateway.ts'
import { scripted } from '../helpers/scripted.ts'

type Tree = Record<string, unknown>

const [provider, spare] = await Promise.all([scripted(t), scripted(t)])
const timeouts = { connect: '500ms', first_event: '2s', idle: '10s', total: '20s' }
const model = (id: string, more: Tree = {}) => ({
  id,
  name: id,
  family: 'test',
  input: ['text'],
  output: ['audio'],
  ...more,
})
const wires = { speech: 'openai.speech' }
const perCharacter = { pricing: { prompt: '15' } }
const gateway = await startGateway(t, {
  models: [
    model('say', { tokenizer: 'characters' }),
    model('tell'),
    model('named', { tokenizer: 'characters' }),
    model('demo-speech', { tokenizer: 'characters' }),
  ],
  providers: {
    acme: {
      base_url: provider.url,
      wires,
      timeouts,
      priority: 2,
      models: [
        { model: 'say', id: 'say-1', ...perCharacter, max_input_characters: 50 },
        { model: 'tell', id: 'tell-1', pricing: { prompt: '0.6', output_audio: '12' }, supports: ['streaming'] },
        { model: 'named', id: 'named-1', ...perCharacter, voices: { default: 'anna', alloy: 'bea' } },
      ],
    },
    spare: {
      base_url: spare.url,
      wires,
      timeouts,
      models: [{ model: 'say', id: 'say-2', ...perCharacter, max_input_characters: 50 }],
    },
    demo: {
      base_url: '$' + '{GATEWAY_DEMO_URL}',
      auth: { scheme: 'none' },
      wires,
      models: [{ model: 'demo-speech', pricing: { prompt: '0' } }],
    },
  },
})
const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })
const command = commandsOf(gateway)
const books = openBooks(t, gateway)
const speak = (body: Tree) => gateway.post('/v1/audio/speech', body)
const bodyOf = async (answer: Response) => (await answer.json()) as Tree
const mp3 = (body: string | Buffer) => ({ type: 'audio/mpeg', body })
/** The last row that was kept, once it is: cost in nano-USD and how it ended. */
const lastRow = () => books.prepare('SELECT cost, outcome FROM requests ORDER BY id DESC LIMIT 1').get() as Tree

t.test("OpenAI's own client gets sound, also straight into a file", async t => {
  provider.answers(mp3('ID3 some sound'))
  const answer = await client.audio.speech.create({ model: 'say', voice: 'alloy', input: 'Hello' })
  t.equal(await answer.text(), 'ID3 some sound')
  const headers = ['content-type', 'x-gateway-provider', 'x-gateway-model', 'x-gateway-cost']
  t.strictSame(
    headers.map(name => answer.headers.get(name)),
    ['audio/mpeg', 'acme', 'say', '0.000075'],
  )
  t.strictSame(provider.last().json, { model: 'say-1', input: 'Hello', voice: 'alloy' })
  const path = join(gateway.dir, 'speech.mp3')
  const streamed = await client.audio.speech.create({
    model: 'say',
    voice: 'alloy',
    input: 'Hello',
    response_format: 'mp3',
  })
  await pipeline(Readable.fromWeb(streamed.body as never), createWriteStream(path))
  t.equal(readFileSync(path, 'utf8'), 'ID3 some sound')
})

t.test('typed events carry sound and what it cost, and no [DONE]', async t => {
  const delta = (text: string) =>
    `event: speech.audio.delta\ndata: ${JSON.stringify({ type: 'speech.audio.delta', audio: Buffer.from(text).toString('base64') })}\n\n`
  const usage = { input_tokens: 12, output_tokens: 340, total_tokens: 352 }
  const done = `event: speech.audio.done\ndata: ${JSON.stringify({ type: 'speech.audio.done', usage })}\n\n`
  provider.answers({ type: 'text/event-stream', body: delta('ID3') + delta('abc') + done })
  const answer = await speak({ model: 'tell', input: 'Hello', voice: 'alloy', stream_format: 'sse' })
  t.match(answer.headers.get('content-type'), /^text\/event-stream/)
  const events = (await answer.text()).trim().split('\n\n')
  t.strictSame(events[0], delta('ID3').trim())
  t.strictSame(events.slice(1), [
    delta('abc').trim(),
    `event: speech.audio.done\ndata: ${JSON.stringify({ type: 'speech.audio.done', usage: { ...usage, cost: 0.0040872 } })}`,
  ])
  t.match(provider.last().json, { stream_format: 'sse' })
  const plain = await speak({ model: 'tell', input: 'Hello' })
  t.strictSame([await plain.text(), plain.headers.get('content-type')], ['ID3abc', 'audio/mpeg'], 'decoded for others')
  t.equal(Number(lastRow().cost), 4_087_200)
})

t.test('M2 what is no sound fails over, and a refusal before the first byte is JSON', async t => {
  for (const answer of [
    { json: { error: { message: 'oops', code: 500 } } },
    { status: 500, json: {} },
    mp3(''),
    { type: 'text/html', body: '<html>' },
  ]) {
    provider.answers(answer)
    spare.answers(mp3('spare'))
    const got = await speak({ model: 'say', input: 'Hi' })
    t.strictSame([await got.text(), got.headers.get('x-gateway-provider')], ['spare', 'spare'], JSON.stringify(answer))
  }
  spare.answers({ status: 503, json: {} })
  const failed = await speak({ model: 'say', input: 'Hi' })
  t.strictSame([failed.status, failed.headers.get('content-type')], [502, 'application/json'])
})

t.test('a request that no mapping can serve names what they take', async t => {
  const before = provider.got.length
  const rows: [body: Tree, param: string | null, message?: RegExp][] = [
    [{ input: '' }, 'input'],
    [{ input: 'x'.repeat(51) }, 'input', /at most 50/],
    [{ speed: 5 }, 'speed'],
    [{ response_format: 'midi' }, 'response_format'],
    [{ model: 'named', voice: 'zoe' }, 'voice', /It takes alloy\.$/],
    [{ stream_format: 'json' }, 'stream_format'],
  ]
  for (const [body, param, message = /./] of rows) {
    const answer = await speak({ model: 'say', input: 'Hi', ...body })
    t.equal(answer.status, 400)
    t.match(await bodyOf(answer), { error: { param, message } }, JSON.stringify(body).slice(0, 60))
  }
  t.equal(provider.got.length, before)
  provider.answers(mp3('x'))
  await speak({ model: 'named', input: 'Hi', voice: { id: 'alloy' } })
  t.match(provider.last().json, { voice: 'bea' })
  await speak({ model: 'say', input: 'Hi', voice: { id: 'voice_1' } })
  t.match(provider.last().json, { voice: { id: 'voice_1' } })
  await speak({ model: 'named', input: 'Hi', voice: null, instructions: null })
  t.match(provider.last().json, { voice: 'anna' })
})

/** Opens a request whose answer is read by hand. */
async function open(body: Tree): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' }
  const sending = httpRequest(`${gateway.url}/v1/audio/speech`, { method: 'POST', headers })
  sending.end(JSON.stringify(body))
  const [answer] = (await once(sending, 'response')) as [IncomingMessage]
  return answer
}

t.test('M10 sound that is cut breaks the connection, and is charged for its characters', async t => {
  provider.answers((res: ServerResponse) => {
    res.writeHead(200, { 'content-type': 'audio/mpeg' })
    res.write(Buffer.alloc(100 * 1024, 1), () => res.destroy())
  })
  const answer = await open({ model: 'say', input: 'Hello' })
  let bytes = 0
  const broken = await (async () => {
    for await (const chunk of answer) bytes += (chunk as Buffer).length
  })().catch((error: unknown) => error)
  t.ok(broken instanceof Error, 'it does not look complete')
  t.ok(bytes > 0 && bytes <= 100 * 1024)
  const { cost, outcome } = lastRow()
  t.strictSame([Number(cost), outcome], [75_000, 'error'])
})

t.test('M10 a slow listener stalls itself alone, and one that leaves ends the stream of its provider', async t => {
  const sound = Buffer.alloc(64 * 1024, 7)
  let gone: (() => void) | undefined
  const ended = new Promise<void>(resolve => {
    gone = resolve
  })
  let sent = 0
  provider.answers((res: ServerResponse) => {
    res.writeHead(200, { 'content-type': 'audio/mpeg' })
    res.once('close', () => gone!())
    const more = () => {
      while (!res.destroyed && res.write(sound)) sent += sound.length
      if (!res.destroyed) res.once('drain', more)
    }
    more()
  })
  const slow = await open({ model: 'say', input: 'Hello' })
  slow.pause()
  let before = -1
  for (let turns = 0; turns < 100 || sent !== before; turns++) {
    before = sent
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  t.ok(sent < 32 * 1024 * 1024, `${sent} bytes left the provider`)
  spare.answers(mp3('quick'))
  const quick = await speak({ model: 'spare/say', input: 'Hi' })
  t.equal(await quick.text(), 'quick', 'others are served meanwhile')
  const began = performance.now()
  slow.destroy()
  await ended
  const what = 'from the end of a listener to that of the stream of its provider'
  timing(t, { id: 'M10', what, value: performance.now() - began, unit: 'ms', atMost: 100 })
  // The row is kept after that.
  const left = books.prepare("SELECT cost FROM requests WHERE outcome = 'aborted'")
  while (left.all().length === 0) await new Promise(resolve => setTimeout(resolve, 5))
  t.strictSame(
    left.all().map(row => Number((row as Tree).cost)),
    [75_000],
    'its characters are charged in full',
  )
})

t.test('the demo hums the longer the longer the text is, for nothing', async t => {
  const lengthOf = async (input: string, more: Tree = {}) => {
    const answer = await speak({ model: 'demo-speech', input, ...more })
    t.equal(answer.headers.get('x-gateway-cost'), '0')
    return Buffer.from(await answer.arrayBuffer())
  }
  const [short, long] = [await lengthOf('Hi'), await lengthOf('Hello there')]
  t.equal(short.toString('latin1', 0, 4), 'RIFF')
  t.ok(long.length > short.length)
  t.equal((await lengthOf('Hi', { response_format: 'pcm' })).length, short.length - 44)
})

t.test('gatewayctl speak, as it is shipped, writes what the demo hums', async t => {
  const out = join(t.testdir({}), 'hello.wav')
  const bin = join(import.meta.dirname, '../../bin/gatewayctl.js')
  const run = async (...args: string[]) => {
    const child = new Child(bin, ['speak', 'Hello', ...args, '--url', gateway.url], {
      env: { GATEWAY_API_KEY: gateway.key },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    t.equal(await child.exited, 0, child.stderr)
    return child
  }
  const [saved, told] = await Promise.all([run('--out', out), run('--json', '--format', 'pcm')])
  t.match([saved.stdout, saved.stderr], [`${out}\n`, '[demo/demo-speech, $0]\n'])
  const wav = readFileSync(out)
  t.equal(wav.toString('latin1', 0, 4), 'RIFF')
  const { audio, ...rest } = JSON.parse(told.stdout) as { audio: string }
  const bytes = wav.length - 44
  t.strictSame(rest, { content_type: 'audio/pcm', provider: 'demo', model: 'demo-speech', cost: '0', bytes })
  t.ok(Buffer.from(audio, 'base64').equals(wav.subarray(44)))
})

t.test('the books are sound', async t => {
  // A row is kept after its answer has ended, also that of a listener who left.
  for (let tries = 0; tries < 400 && books.prepare('SELECT * FROM holds').all().length > 0; tries++) {
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  t.strictSame(books.prepare('SELECT * FROM holds').all(), [])
  t.strictSame(await command('usage.check'), { differences: [] })
})
