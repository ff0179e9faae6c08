/** Images that take several requests: fan-out, jobs, addresses, bridges (docs/contract.md#polled-answers). */
import { once } from 'node:events'
import OpenAI from 'openai'
import t from 'tap'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { type Answer, scripted } from '../helpers/scripted.ts'

type Tree = Record<string, unknown>

const [each, jobs, files, talk, spare, hidden] = await Promise.all([
  scripted(t),
  scripted(t),
  scripted(t),
  scripted(t),
  scripted(t),
  scripted(t),
])
const originOf = (url: string) => new URL(url).origin
const timeouts = { connect: '500ms', first_event: '3s', idle: '3s', total: '8s' }
const drawn = (id: string) => ({ id, name: id, family: 'test', input: ['text', 'image'], output: ['image'] })
const both = { images: 'openai.images', image_edits: 'openai.image-edits' }
const perImage = { per_image: { default: '0.01' } }
/** One for each row, so that no circuit opens. */
const odd = Array.from({ length: 7 }, (_, index) => `odd-${index}`)
const oddJobs = Array.from({ length: 9 }, (_, index) => `odd-job-${index}`)
const gateway = await startGateway(t, {
  config: { server: { fetch_from: [originOf(files.url)] } },
  models: [
    drawn('single'),
    drawn('job'),
    drawn('alone'),
    drawn('talks'),
    ...[...odd, ...oddJobs].map(drawn),
    { ...drawn('mixed'), output: ['text', 'image'] },
  ],
  providers: {
    each: {
      base_url: each.url,
      wires: both,
      timeouts,
      priority: 2,
      models: [
        { model: 'single', id: 'draw-1', pricing: perImage, max_n: 1 },
        { model: 'alone', id: 'draw-1', pricing: { prompt: '5', image_output: '40' } },
        ...odd.map(model => ({ model, id: 'draw-1', pricing: perImage })),
      ],
    },
    jobs: {
      base_url: jobs.url,
      auth: { scheme: 'header', header: 'x-key', secret: 'job-secret-canary' },
      wires: { images: 'bfl.images', image_edits: 'bfl.image-edits' },
      timeouts,
      priority: 2,
      models: ['job', ...oddJobs].map(model => ({ model, id: 'flux-2-pro', pricing: perImage })),
    },
    spare: {
      base_url: spare.url,
      wires: both,
      timeouts,
      models: [
        { model: 'job', id: 'draw-1', pricing: perImage },
        ...['single', ...odd, ...oddJobs].map(model => ({ model, id: 'draw-1', pricing: perImage })),
      ],
    },
    talk: {
      base_url: talk.url,
      wires: { chat: 'openai.chat' },
      timeouts,
      models: ['talks', 'mixed'].map(model => ({
        model,
        id: 'talk-1',
        pricing: { prompt: '1', completion: '2' },
        supports: ['vision'],
      })),
    },
  },
})
const command = commandsOf(gateway)
const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })
const generate = (body: Tree, signal?: AbortSignal) =>
  gateway.post('/v1/images/generations', { prompt: 'a cat', ...body }, {}, signal)
const bodyOf = async (answer: Response) => (await answer.json()) as Tree
const png = (byte: number) =>
  Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(24, byte)])
const b64 = png(1).toString('base64')
const costOf = (answer: Response) => answer.headers.get('x-gateway-cost')
const providerOf = (answer: Response) => answer.headers.get('x-gateway-provider')
const picture = (byte: number) => ({ json: { data: [{ b64_json: png(byte).toString('base64') }] } })
const filtered = { status: 400, json: { error: { message: 'no', code: 'content_filter' } } }

t.test('more pictures than one request makes are several requests, at most four at once', async t => {
  let open = 0
  let most = 0
  each.got.length = 0
  const slow: Answer = res => {
    open++
    most = Math.max(most, open)
    const answer = () => {
      open--
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(picture(2).json))
    }
    // The fourth lets the ones before it go: fewer at once would wait for ever.
    waiting.push(answer)
    if (waiting.length === 4 || each.got.length > 4) for (const go of waiting.splice(0)) go()
  }
  const waiting: (() => void)[] = []
  each.answers(slow)
  const answer = await generate({ model: 'single', n: 6 })
  t.strictSame([answer.status, most, each.got.length, costOf(answer)], [200, 4, 6, '0.06'])
  t.equal(((await bodyOf(answer)).data as unknown[]).length, 6)
  t.match(each.last().json, { n: 1 })
})

t.test('M4 what is filtered is left out, unless it is all; what fails fails over as a whole', async t => {
  each.answers(picture(1), filtered, picture(3))
  const some = await generate({ model: 'single', n: 3 })
  t.equal(((await bodyOf(some)).data as unknown[]).length, 2)
  t.equal(costOf(some), '0.02')
  each.answers(filtered)
  const none = await generate({ model: 'single', n: 2 })
  t.strictSame([none.status, ((await bodyOf(none)).error as Tree).code], [400, 'content_filter'])
  each.answers(picture(1), { status: 500, json: {} })
  spare.answers({ json: { data: [{ b64_json: b64 }, { b64_json: b64 }] } })
  const other = await generate({ model: 'single', n: 2 })
  t.strictSame([providerOf(other), costOf(other)], ['spare', '0.02'])
})

t.test('M3 pictures at addresses are fetched without a credential, and no address is shown', async t => {
  each.answers({ json: { data: [{ url: `${originOf(files.url)}/a.png`, revised_prompt: 'a cat!' }] } })
  files.answers({ type: 'image/png', body: png(5) })
  const answer = await generate({ model: 'single' })
  t.match(await bodyOf(answer), { data: [{ b64_json: png(5).toString('base64'), revised_prompt: 'a cat!' }] })
  const { headers } = files.last()
  t.strictSame(
    [headers.authorization, headers['x-request-id'], headers['user-agent']],
    [undefined, undefined, undefined],
  )
  each.answers({ json: { data: [{ url: `${originOf(each.url)}/b.png` }] } }, { type: 'image/png', body: png(6) })
  t.match(await bodyOf(await generate({ model: 'single' })), { data: [{ b64_json: png(6).toString('base64') }] })
  t.match(each.last(), { method: 'GET', path: '/b.png', headers: { authorization: /^Bearer / } }, 'its own origin')
})

t.test('M3, M5 what an address may not be, or does not give, is the failure of the provider', async t => {
  spare.answers({ json: { data: [{ b64_json: b64 }] } })
  const before = hidden.got.length
  const redirect: Answer = res => void res.writeHead(302, { location: `${hidden.url}/x.png` }).end()
  const rows: [says: string, url: string, file: Answer][] = [
    ['a private address', `${hidden.url}/a.png`, picture(1)],
    ['no https', 'http://192.0.2.1/a.png', picture(1)],
    ['no address', 'a.png', picture(1)],
    ['a user', `${originOf(files.url).replace('//', '//me:pw@')}/a.png`, picture(1)],
    ['a redirect there', `${originOf(files.url)}/a.png`, redirect],
    ['markup', `${originOf(files.url)}/a.png`, { type: 'image/svg+xml', body: '<svg/>' }],
    ['nothing', `${originOf(files.url)}/a.png`, { status: 404, json: {} }],
  ]
  for (const [index, [says, url, file]] of rows.entries()) {
    const tried = each.got.length
    each.answers({ json: { data: [{ url }] } })
    files.answers(file)
    const answer = await generate({ model: odd[index] })
    t.strictSame([providerOf(answer), each.got.length], ['spare', tried + 1], says)
    t.notMatch(await answer.text(), /\.png|hidden/, says)
  }
  jobs.answers({ json: { id: '1', polling_url: `${hidden.url}/poll` } })
  t.equal(providerOf(await generate({ model: 'job' })), 'spare')
  t.equal(hidden.got.length, before, 'never fetched')
})

t.test('M5 a hostile job is the failure of its provider, and its credential goes to its own origin alone', async t => {
  spare.answers({ json: { data: [{ b64_json: b64 }] } })
  const created: Answer = { json: { id: '1', polling_url: `${jobs.url}/get_result?id=1` } }
  const ready = (sample: unknown): Answer => ({ json: { status: 'Ready', result: { sample } } })
  const to =
    (location: string): Answer =>
    res =>
      void res.writeHead(302, { location }).end()
  const busy: Answer = res => void res.writeHead(429, { 'retry-after': '86400' }).end('{}')
  const rows: [says: string, answers: Answer[]][] = [
    ['a state at a private address', [{ json: { id: '1', polling_url: `${hidden.url}/poll` } }]],
    ['a state without https', [{ json: { id: '1', polling_url: 'http://192.0.2.1/poll' } }]],
    ['a state that leads inside', [created, to(`${hidden.url}/poll`)]],
    ['a state that leads to itself', [created, to(`${jobs.url}/get_result?id=1`)]],
    ['a state of more than a MiB', [created, { json: { status: 'Pending', more: 'x'.repeat(1024 * 1024) } }]],
    ['a state that is no JSON', [created, { type: 'text/html', body: '<html>' }]],
    ['a result that is data', [created, ready(`data:image/png;base64,${b64}`)]],
    ['a result that leads inside', [created, ready(`${jobs.url}/a.png`), to(`${hidden.url}/a.png`)]],
    ['a provider that is busy for a day', [created, busy]],
  ]
  const before = hidden.got.length
  for (const [index, [says, answers]] of rows.entries()) {
    jobs.answers(...answers)
    const answer = await generate({ model: oddJobs[index] })
    const text = await answer.text()
    t.equal(providerOf(answer), 'spare', `${says}: ${text.slice(0, 200)}`)
    t.notMatch(text, /get_result|a\.png|poll/, says)
  }
  t.equal(hidden.got.length, before, 'never fetched')
  jobs.answers(created, to(`${originOf(files.url)}/state`))
  files.answers(ready(`${originOf(files.url)}/b.png`) as Answer, { type: 'image/png', body: png(4) })
  const away = await generate({ model: 'job' })
  t.match(await bodyOf(away), { data: [{ b64_json: png(4).toString('base64') }] })
  for (const { path, headers } of files.got.slice(-2)) {
    t.strictSame([headers['x-key'], headers.authorization, headers.cookie], [undefined, undefined, undefined], path)
  }
})

t.test('M6 a job is polled through failures, and made once', async t => {
  jobs.got.length = 0
  const sample = `${originOf(files.url)}/result.png`
  jobs.answers(
    { json: { id: '7', polling_url: `${jobs.url}/get_result` } },
    { status: 429, json: {} },
    { status: 502, json: {} },
    { json: { id: '7', status: 'Ready', result: { sample } } },
  )
  files.answers({ type: 'image/png', body: png(9) })
  const answer = await generate({ model: 'job', size: '1024x1024' })
  t.match(await bodyOf(answer), { data: [{ b64_json: png(9).toString('base64') }] })
  t.strictSame([providerOf(answer), costOf(answer)], ['jobs', '0.01'])
  t.strictSame(
    jobs.got.map(({ method, path }) => `${method} ${path}`),
    ['POST /v1/flux-2-pro', ...Array.from({ length: 3 }, () => 'GET /v1/get_result?id=7')],
  )
  t.ok(jobs.got.every(({ headers }) => headers['x-key'] === 'job-secret-canary'))
  t.equal(files.last().headers['x-key'], undefined)
  jobs.answers({ json: { id: '8', polling_url: `${jobs.url}/get_result` } }, { json: { status: 'Content Moderated' } })
  t.match(await bodyOf(await generate({ model: 'job' })), { error: { code: 'content_filter' } })
})

t.test('M7 a caller that leaves while its jobs run pays for each that was begun, and no more of them are', async t => {
  const books = openBooks(t, gateway)
  const rows = () => books.prepare("SELECT cost FROM requests WHERE outcome = 'aborted' ORDER BY id").all() as Tree[]
  const state = (value: Tree) => [200, { 'content-type': 'application/json' }, JSON.stringify(value)] as const
  // Of all that is made only one image can be fetched, so that a part of the answer is here before its client leaves.
  for (const [n, whole, begun] of [
    [1, 0, 1],
    [8, 1, 5],
  ] as const) {
    const before = rows().length
    const leave = new AbortController()
    jobs.got.length = 0
    let fetched = 0
    files.answers(res => {
      if (fetched++ < whole) res.writeHead(200, { 'content-type': 'image/png' }).end(png(7))
    })
    const created = () => jobs.got.filter(({ method }) => method === 'POST').length
    const polled = new Promise<void>(resolve => {
      jobs.answers((res, { method, path }) => {
        const isReady = path.endsWith(`id=${whole}`) || leave.signal.aborted
        const made = { status: 'Ready', result: { sample: `${originOf(files.url)}/left.png` } }
        const [status, headers, body] =
          method === 'POST'
            ? state({ id: String(created()), polling_url: `${jobs.url}/get_result` })
            : state(isReady ? made : { status: 'Pending' })
        res.writeHead(status, headers).end(body)
        if (method === 'GET' && path.endsWith(`id=${begun}`)) resolve()
      })
    })
    const asked = generate({ model: 'job', n }, leave.signal).catch((error: unknown) => error)
    await polled
    leave.abort()
    await asked
    while (rows().length === before) await once(setImmediateEmitter(), 'turn')
    t.strictSame([created(), Number(rows().at(-1)!.cost)], [begun, begun * 10_000_000], `${n} images`)
  }
})

t.test('a caller that leaves while a finished picture is fetched pays for it', async t => {
  const books = openBooks(t, gateway)
  const address = `${files.url}/late.png`
  const rows = () =>
    books.prepare("SELECT model, cost FROM requests WHERE outcome = 'aborted' ORDER BY id").all() as Tree[]
  each.answers({ json: { data: [{ url: address }] } })
  jobs.answers(
    { json: { id: '9', polling_url: `${jobs.url}/get_result` } },
    { json: { status: 'Ready', result: { sample: address } } },
  )
  for (const model of ['single', 'job']) {
    const before = rows().length
    const leave = new AbortController()
    const fetched = new Promise<void>(resolve => files.answers(() => resolve()))
    const asked = generate({ model }, leave.signal).catch((error: unknown) => error)
    await fetched
    leave.abort()
    await asked
    while (rows().length === before) await once(setImmediateEmitter(), 'turn')
    const row = rows().at(-1)!
    t.strictSame([row.model, Number(row.cost)], [model, 10_000_000])
  }
})

/** Emits `turn` in the next turn of the loop. */
function setImmediateEmitter() {
  const target = new EventTarget()
  setImmediate(() => target.dispatchEvent(new Event('turn')))
  return target
}

t.test('an images request is served by a model that has only a chat wire', async t => {
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${b64}` } }
  const message = { role: 'assistant', content: 'Here it is.', images: [image] }
  talk.answers({
    json: {
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage: { prompt_tokens: 10, completion_tokens: 1000 },
    },
  })
  const answer = await generate({ model: 'talks', quality: 'hd', aspect_ratio: '16:9' })
  t.match(await bodyOf(answer), {
    data: [{ b64_json: b64 }],
    usage: { input_tokens: 10, output_tokens: 1000, cost: 0.00201 },
  })
  t.match(talk.last().json, {
    messages: [{ role: 'user', content: 'a cat' }],
    image_config: { aspect_ratio: '16:9', image_quality: 'high' },
  })
  const edited = await client.images.edit({ model: 'mixed', prompt: 'a hat', image: new File([png(3)], 'x.png') })
  t.equal(edited.data![0]!.b64_json, b64)
  t.match(talk.last().json, {
    messages: [{ content: [{ type: 'image_url', image_url: { url: /^data:image\/png;base64,/ } }, { text: 'a hat' }] }],
  })
  talk.answers({
    json: { choices: [{ index: 0, message: { role: 'assistant', content: 'No.' }, finish_reason: 'stop' }] },
  })
  t.equal((await generate({ model: 'mixed' })).status, 502)
})

t.test('what a chat model writes beside pictures, or in their place, is held for and paid', async t => {
  const { id: organization } = await command<{ id: string }>('orgs.create', { name: 'words' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
  const { key } = await command<{ key: string }>('keys.create', { project, name: 'k' })
  const balance = async () => {
    const { balance, held } = await command<{ balance: string; held: string }>('credits.show', { organization })
    return [Number(balance), Number(held)]
  }
  const ask = (n: number) =>
    gateway.post('/v1/images/generations', { model: 'mixed', prompt: 'Write', n }, { authorization: `Bearer ${key}` })
  const says = (tokens: number | undefined, ...images: object[]): Answer => ({
    json: {
      choices: [{ index: 0, message: { role: 'assistant', content: 'An essay.', images }, finish_reason: 'stop' }],
      ...(tokens && { usage: { prompt_tokens: 40, completion_tokens: tokens } }),
    },
  })
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${b64}` } }
  await command('credits.add', { organization, amount: '0.016' })
  const before = talk.got.length
  talk.answers(says(7000))
  const refused = await ask(1)
  t.strictSame([refused.status, talk.got.length - before], [502, 1])
  t.match(await bodyOf(refused), { error: { message: /text in the place of an image/ } })
  t.match(talk.last().json, { max_tokens: 7999 }, 'the limit that there was money for')
  t.strictSame(await balance(), [0.00196, 0])
  t.equal((await ask(1)).status, 402, 'a limit that would cut a picture is not sent')
  await command('credits.add', { organization, amount: '1' })
  talk.answers(says(1000, image), says(2000), says(3000, image))
  const some = await ask(3)
  t.equal(((await bodyOf(some)).data as unknown[]).length, 2, 'what is text is left out')
  t.match(talk.last().json, { max_tokens: 14_492 })
  t.strictSame(await balance(), [0.98984, 0], 'and paid with the others')
})

t.test('a chat request is answered with pictures by a model that has only images wires', async t => {
  each.answers({ json: { data: [{ b64_json: b64 }], usage: { input_tokens: 10, output_tokens: 100 } } })
  const messages = [
    { role: 'system', content: 'Draw well.' },
    { role: 'user', content: 'a cat' },
  ]
  const answer = await gateway.chat({ model: 'alone', messages, image_config: { image_size: '1024x1024' } })
  const url = `data:image/png;base64,${b64}`
  t.match(await bodyOf(answer), {
    choices: [{ message: { images: [{ image_url: { url } }] }, finish_reason: 'stop' }],
    usage: { cost: 0.00405 },
  })
  t.match(each.last(), { path: '/v1/images/generations', json: { prompt: 'a cat', size: '1024x1024', n: 1 } })
  const edit = [
    {
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url } },
        { type: 'text', text: 'a hat' },
      ],
    },
  ]
  const streamed = await gateway.chat({ model: 'alone', messages: edit, stream: true })
  const chunks = (await streamed.text()).split('\n\n').filter(text => text.includes('"images"'))
  t.equal(chunks.length, 1, 'one delta')
  t.match(each.last(), { path: '/v1/images/edits' })
  for (const [more, param] of [
    [{ tools: [{ type: 'function', function: { name: 'f' } }] }, 'tools'],
    [{ response_format: { type: 'json_object' } }, 'response_format'],
  ] as const) {
    const refused = await gateway.chat({ model: 'alone', messages, ...more })
    t.equal(refused.status, 400)
    t.match(await bodyOf(refused), { error: { param } })
  }
})

t.test('M24 a model answers at the endpoints of its operations, whatever it is called by', async t => {
  each.answers({ json: { data: [{ b64_json: b64 }] } })
  for (const model of ['single', 'each/single', 'each/draw-1']) {
    t.equal((await generate({ model })).headers.get('x-gateway-model'), 'single', model)
  }
  const embedded = await gateway.post('/v1/embeddings', { model: 'single', input: 'x' })
  t.match(await bodyOf(embedded), { error: { code: 'model_not_supported', message: /\/v1\/images\/generations/ } })
})

t.test('the books are sound: every request has a row, and all sums agree', async t => {
  t.strictSame(await command('usage.check'), { differences: [] })
  const books = openBooks(t, gateway)
  t.strictSame(books.prepare('SELECT * FROM holds').all(), [], 'nothing is held')
})
