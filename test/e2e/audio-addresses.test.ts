/** Audio at addresses is fetched for wires that take files only (docs/contract.md#fetched-addresses). */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { wavHead } from '../../src/lib/wav.ts'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { canary, fileServer } from '../helpers/listeners.ts'
import { type Received, scripted } from '../helpers/scripted.ts'
import { insideHosts } from '../upstream/addresses.ts'

type Tree = Record<string, unknown>

const MIB = 2 ** 20
/** 3.6 seconds. */
const sound = Buffer.concat([wavHead(16_000, 115_200), Buffer.alloc(115_200, 1)])
const asked: string[] = []
const held: ServerResponse[] = []
let gone: (() => void) | undefined
const leaving = new Promise<void>(resolve => {
  gone = resolve
})
const inside = await canary(t)
const port = await fileServer(t, (req, res) => {
  asked.push(req.url!)
  if (req.url === '/a.wav?x=1') res.writeHead(200, { 'content-type': 'text/html; charset=x' }).end(sound)
  else if (req.url === '/large') {
    const more = () => {
      while (!res.destroyed && res.write(Buffer.alloc(MIB)));
    }
    res.on('drain', more)
    more()
  } else if (req.url === '/held') {
    res.once('close', gone!)
    held.push(res)
  } else if (req.url === '/away') res.writeHead(302, { location: `https://inside.example:${inside.port}/` }).end()
  else res.writeHead(404).end()
})
const origin = `http://audio.example:${port}`

const [first, second] = await Promise.all([scripted(t), scripted(t)])
const timeouts = { connect: '500ms', first_event: '5s', idle: '5s', total: '20s' }
const model = (id: string) => ({ ...{ id, name: id, family: 'test' }, ...modalities })
const modalities = { input: ['audio'], output: ['text'], operations: ['transcriptions'] }
const offer = (model: string, more: Tree = {}) => ({ model, pricing: { input_audio_hour: '0.36' }, ...more })
const wires = { transcriptions: 'openai.transcriptions' }
const gateway = await startGateway(t, {
  models: ['hear', 'takes-urls', 'small'].map(model),
  providers: {
    first: {
      base_url: first.url,
      wires,
      timeouts,
      priority: 2,
      models: [offer('hear'), offer('small', { max_file: '1KiB' })],
    },
    second: {
      base_url: second.url,
      wires: { transcriptions: 'mistral.transcriptions' },
      timeouts,
      models: [offer('hear'), offer('takes-urls')],
    },
  },
  config: { server: { fetch_from: [origin] } },
  env: {
    NODE_OPTIONS: `--require ${join(import.meta.dirname, '../helpers/names.cjs')}`,
    NAMES: JSON.stringify({
      'audio.example': [['127.0.0.1']],
      'inside.example': [['10.0.0.1']],
      'loopback.example': [['127.0.0.1']],
      'mixed.example': [['93.184.216.34', '127.0.0.1']],
      'rebind.example': [['127.0.0.1'], ['93.184.216.34']],
    }),
  },
})
const books = openBooks(t, gateway)
const ask = (url: string, more: Tree = {}, signal?: AbortSignal) =>
  gateway.post('/v1/audio/transcriptions', { model: 'hear', url, ...more }, {}, signal)
const formOf = ({ body, headers }: Received) =>
  new Response(new Uint8Array(body), { headers: { 'content-type': headers['content-type']! } }).formData()
const bodyOf = async (answer: Response) => (await answer.json()) as { error: Tree }

t.test('a wire that takes no address gets the file that stands there, under no name of its own', async t => {
  first.answers({ json: { text: 'Hi' } })
  const answer = await ask(`${origin}/a.wav?x=1`)
  t.match(await bodyOf(answer), { text: 'Hi', usage: { type: 'duration', seconds: 4, cost: 0.00036 } })
  const file = (await formOf(first.last())).get('file') as File
  t.strictSame([file.name, file.type], ['audio.wav', 'audio/wav'], 'by its first bytes, whatever its server says')
  t.ok(Buffer.from(await file.arrayBuffer()).equals(sound))
  t.notMatch(first.last().body.toString('latin1'), /audio\.example/)
})

t.test('the next provider gets the same file, which is fetched once', async t => {
  asked.length = 0
  first.answers({ status: 500, json: {} })
  second.answers({ json: { text: 'Hi', segments: [] } })
  const answer = await ask(`${origin}/a.wav?x=1`)
  t.equal(answer.headers.get('x-gateway-provider'), 'second')
  t.match(await bodyOf(answer), { text: 'Hi' })
  const form = await formOf(second.last())
  t.ok(Buffer.from(await (form.get('file') as File).arrayBuffer()).equals(sound))
  t.notOk(form.has('file_url'))
  t.strictSame(asked, ['/a.wav?x=1'])
})

t.test('a wire that takes addresses is handed those of https alone', async t => {
  asked.length = 0
  await ask('https://far.example/a.wav', { model: 'takes-urls' })
  t.equal((await formOf(second.last())).get('file_url'), 'https://far.example/a.wav')
  t.strictSame(asked, [])
  await ask(`${origin}/a.wav?x=1`, { model: 'takes-urls' })
  t.ok((await formOf(second.last())).has('file'))
})

t.test('SI-01 to SI-04, SI-06 nothing inside is fetched, and every refusal is the same', async t => {
  const before = first.got.length
  const names = ['inside', 'loopback', 'mixed', 'rebind', 'unknown'].map(name => `${name}.example`)
  const urls = [...insideHosts, ...names].flatMap(host => [
    `https://${host}/x.mp3`,
    `http://${host}:${inside.port}/x.mp3`,
  ])
  urls.push(
    'http://93.184.216.34/x',
    'https://public.example:8443/x',
    'https://u:p@audio.example/x',
    'ftp://a.example/x',
  )
  urls.push(`${origin}/away`, `${origin}/nothing`, 'data:audio/wav;base64,AAAA', 'x')
  const told = new Set<unknown>()
  for (const url of urls) {
    const answer = await ask(url)
    const { error } = await bodyOf(answer)
    t.match([answer.status, error], [400, { code: 'url_not_allowed', param: 'url' }], url)
    told.add(error.message)
  }
  t.ok(told.size <= 2, 'what is told does not tell why')
  t.strictSame([inside.visits, first.got.length], [0, before])
})

t.test('SI-05 what is larger than a form may be is cut, and so is what the provider takes at most', async t => {
  const before = first.got.length
  for (const [path, model] of [
    ['/large', 'hear'],
    ['/a.wav?x=1', 'small'],
  ] as const) {
    const answer = await ask(`${origin}${path}`, { model })
    t.match([answer.status, (await bodyOf(answer)).error], [413, { code: 'request_too_large', param: 'url' }], path)
  }
  t.equal(first.got.length, before)
})

t.test('a client that leaves ends what is fetched for it', async t => {
  const client = new AbortController()
  const answer = ask(`${origin}/held`, {}, client.signal)
  while (held.length === 0) await new Promise(resolve => setTimeout(resolve, 5))
  client.abort()
  await t.rejects(answer)
  await leaving
})

t.test('the books are sound', async t => {
  t.strictSame(await commandsOf(gateway)('usage.check'), { differences: [] })
  t.strictSame(books.prepare('SELECT * FROM holds').all(), [])
})
