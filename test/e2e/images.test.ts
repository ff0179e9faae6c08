/** Images at addresses, for providers that take them as data: fetched once, from the public only, or refused by name. */

import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Json } from '../../src/json/json.ts'
import { groupsOf, openBooks } from '../helpers/books.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { isErrorBody } from '../helpers/invariants.ts'
import { canary, fileServer } from '../helpers/listeners.ts'
import { type Entry, startUpstream } from '../helpers/upstream.ts'
import { insideHosts } from '../upstream/addresses.ts'

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const jpeg = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), Buffer.alloc(60_000, 7)])
const MIB = 2 ** 20

/** What stands where, and who asked for it. */
const asked: string[] = []
const held: ServerResponse[] = []
let gone = 0
const inside = await canary(t)
const port = await fileServer(t, (req, res) => {
  asked.push(req.url!)
  if (req.url === '/cat.png') res.end(png)
  else if (req.url === '/dog.jpg') res.writeHead(200, { 'content-type': 'text/plain' }).end(jpeg)
  else if (req.url === '/page') res.end('<html><body>Sign in</body></html>')
  else if (req.url === '/large') res.end(Buffer.concat([png, Buffer.alloc(21 * MIB)]))
  else if (req.url === '/away') res.writeHead(302, { location: `http://127.0.0.1:${inside.port}/` }).end()
  else if (req.url === '/held') {
    res.once('close', () => gone++)
    held.push(res)
  } else res.writeHead(404).end()
})
const origin = `http://images.example:${port}`

const upstream = await startUpstream(t)
const able = { supports: [...testMapping.supports, 'file_input'], reasoning_efforts: ['low', 'high'] }
const gemini = (id: string, model: string, priority: number) => ({
  [id]: {
    base_url: upstream.url(id).replace(/v1$/, 'v1beta'),
    auth: { scheme: 'header', header: 'x-goog-api-key', secret: upstreamSecret },
    wires: { chat: 'gemini.generate' },
    priority,
    models: [{ ...testMapping, ...able, model, id: 'gemini-3.5-flash' }],
  },
})
const gateway = await startGateway(t, {
  providers: {
    ...gemini('g', 'data', 1),
    ...gemini('first', 'pair', 2),
    ...gemini('second', 'pair', 1),
    rock: {
      base_url: upstream.url('rock').replace('/v1', ''),
      wires: { chat: 'bedrock.converse' },
      models: [{ ...testMapping, model: 'rock', id: 'anthropic.claude-sonnet-4-6' }],
    },
    plain: { base_url: upstream.url('plain'), models: [{ ...testMapping, model: 'address' }] },
    open: {
      base_url: upstream.url('open'),
      wires: { chat: 'openai.responses' },
      models: [{ ...testMapping, model: 'responses' }],
    },
    claude: {
      base_url: upstream.url('claude'),
      auth: { scheme: 'header', header: 'x-api-key', secret: upstreamSecret },
      headers: { 'anthropic-version': '2023-06-01' },
      wires: { chat: 'anthropic.messages' },
      models: [{ ...testMapping, model: 'claude', id: 'claude-sonnet-5' }],
    },
    engine: {
      base_url: upstream.url('engine'),
      inline_media: undefined,
      models: [
        { ...testMapping, model: 'engine' },
        { ...testMapping, model: 'engine-responses', wires: { chat: 'openai.responses' } },
        { ...testMapping, model: 'engine-messages', wires: { chat: 'anthropic.messages' } },
      ],
    },
    near: {
      base_url: upstream.url('near'),
      inline_media: undefined,
      priority: 2,
      models: [{ ...testMapping, model: 'either' }],
    },
    far: { base_url: upstream.url('far'), priority: 1, models: [{ ...testMapping, model: 'either' }] },
    bytes: { base_url: upstream.url('bytes'), inline_media: true, models: [{ ...testMapping, model: 'bytes' }] },
  },
  config: {
    server: { fetch_from: [origin, `http://127.0.0.1:${port}`] },
    endpoints: { chat: { admission: { lag: '60s' } } },
  },
  env: {
    NODE_OPTIONS: `--require ${join(import.meta.dirname, '../helpers/names.cjs')}`,
    NAMES: JSON.stringify({
      'images.example': [['127.0.0.1']],
      'inside.example': [['10.0.0.1']],
      'loopback.example': [['127.0.0.1']],
      'mixed.example': [['93.184.216.34', '127.0.0.1']],
      'six.example': [['93.184.216.34', '::1']],
      'rebind.example': [['127.0.0.1'], ['93.184.216.34']],
    }),
  },
})
const books = openBooks(t, gateway)

const group = groupsOf(t, {
  gateway,
  upstream,
  books,
  before: () => asked.splice(0),
  after: t => t.equal(inside.visits, 0, 'nobody connected to the canary'),
})

const image = (url: string) => ({ type: 'image_url', image_url: { url } })
const ask = (model: string, urls: string[], more: Json = {}, signal?: AbortSignal) =>
  gateway.chat(
    { model, messages: [{ role: 'user', content: [{ type: 'text', text: 'See' }, ...urls.map(image)] }], ...more },
    {},
    signal,
  )
const param = 'messages[0].content[1].image_url.url'
/** The images that a provider got, as types and data. */
const inlined = ({ body }: Entry) =>
  ((body as Json).contents as { parts: { inlineData?: { mimeType: string; data: string } }[] }[]).flatMap(({ parts }) =>
    parts.flatMap(({ inlineData: data }) => (data ? [[data.mimeType, data.data]] : [])),
  )
const cat = ['image/png', png.toString('base64')]
const dog = ['image/jpeg', jpeg.toString('base64')]

group('an image at an address reaches a provider that takes data as data, whole and streamed', async t => {
  for (const stream of [false, true]) {
    const response = await ask('data', [`${origin}/cat.png`, `${origin}/dog.jpg`, `${origin}/cat.png`], { stream })
    t.equal(response.status, 200)
    await response.text()
  }
  const entries = await upstream.record('g')
  t.equal(entries.length, 2)
  for (const entry of entries) {
    t.strictSame(inlined(entry), [cat, dog, cat])
    t.notMatch(JSON.stringify(entry.body), 'images.example', 'and without the address')
  }
  t.strictSame(asked.sort(), ['/cat.png', '/cat.png', '/dog.jpg', '/dog.jpg'], 'once for each request')
  t.equal((await ask('rock', [`${origin}/dog.jpg`])).status, 200, 'on the other such wire too')
  const [entry] = await upstream.record('rock')
  t.match(JSON.stringify(entry!.body), `"image":{"format":"jpeg","source":{"bytes":"${dog[1]}"}}`)
  t.equal(
    (await ask('bytes', [`${origin}/cat.png`])).status,
    200,
    'and where a provider of a wire with addresses wants it',
  )
  const [plain] = await upstream.record('bytes')
  t.match(JSON.stringify(plain!.body), `"image_url":{"url":"data:image/png;base64,${cat[1]}"}`)
})

group('an image is fetched once for all providers that are tried', async t => {
  await upstream.script('first', [{ status: 500 }])
  const response = await ask('pair', [`${origin}/cat.png`])
  t.equal(response.status, 200)
  const { metadata } = (await response.json()) as { metadata: { routing: object[] } }
  t.equal(metadata.routing.length, 2)
  for (const provider of ['first', 'second']) t.strictSame((await upstream.record(provider)).map(inlined), [[cat]])
  t.strictSame(asked, ['/cat.png'])
})

group('a provider that takes addresses gets the address, and nothing is fetched', async t => {
  t.equal((await ask('address', [`${origin}/cat.png`])).status, 200)
  const [entry] = await upstream.record('plain')
  t.match(entry!.body, { messages: [{ content: [{}, { image_url: { url: `${origin}/cat.png` } }] }] })
  t.strictSame(asked, [])
})

group('an engine within the network gets data alone, also of bodies of its own wire', async t => {
  const url = `${origin}/cat.png`
  const source = { type: 'url', url }
  const rows: [path: string, body: Json][] = [
    ['/v1/chat/completions', { model: 'engine', messages: [{ role: 'user', content: [image(url)] }] }],
    [
      '/v1/responses',
      { model: 'engine-responses', input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] },
    ],
    [
      '/v1/messages',
      { model: 'engine-messages', max_tokens: 9, messages: [{ role: 'user', content: [{ type: 'image', source }] }] },
    ],
  ]
  for (const [path, body] of rows) {
    const response = await gateway.post(path, body)
    t.equal(response.status, 200, `${path}: ${await response.text()}`)
    const [entry] = await upstream.record('engine')
    const sent = JSON.stringify(entry!.body)
    t.ok(sent.includes(cat[1]!), path)
    t.notOk(sent.includes(origin), path)
    t.strictSame(asked.splice(0), ['/cat.png'], path)
  }
})

group('what is not fetched for an engine goes to the next provider that takes addresses', async t => {
  const many = Array.from({ length: 21 }, (_, i) => `${origin}/${i}.png`)
  const rows: [says: string, urls: string[], fetched: string[]][] = [
    ['no image', [`${origin}/page`], ['/page']],
    ['an address that is not fetched', ['http://93.184.216.34/a.png'], []],
    ['more than are fetched', many, []],
  ]
  for (const [says, urls, fetched] of rows) {
    const response = await ask('either', urls)
    t.equal(response.status, 200, `${says}: ${await response.text()}`)
    t.strictSame(await upstream.record('near'), [], says)
    const entry = (await upstream.record('far')).at(-1)
    t.ok(JSON.stringify(entry!.body).includes(urls[0]!), says)
    t.strictSame(asked.splice(0), fetched, says)
    t.equal((await ask('engine', urls)).status, 400, `${says}: alone it is refused`)
    asked.splice(0)
  }
})

group('what is no image, or too large, is a 400 that says so, and costs nothing', async t => {
  const rows: [path: string, code: string][] = [
    ['/page', 'not_an_image'],
    ['/nothing', 'not_an_image'],
    ['/large', 'image_too_large'],
    ['/away', 'url_not_allowed'],
  ]
  for (const [path, code] of rows) {
    const response = await ask('data', [`${origin}${path}`])
    t.equal(response.status, 400, path)
    const body = (await response.json()) as { error: Json }
    t.match(body, { error: { type: 'invalid_request_error', code, param } }, path)
    t.ok(isErrorBody(body))
  }
  const many = Array.from({ length: 21 }, (_, n) => `${origin}/cat.png?${n}`)
  t.equal((await ask('data', many)).status, 400, 'nor are more than twenty fetched')
  t.equal((await upstream.record()).length, 0)
  const paid = books.prepare(
    "SELECT count(*) FROM requests WHERE requested_model = 'data' AND status = 400 AND cost > 0",
  )
  t.equal(paid.pluck().get(), 0)
})

/** A body of each client whose second part holds what stands at `url`, and where that is. */
const clients = (
  url: string,
  kind: 'image' | 'file',
): [path: string, body: Json, param: string, headers?: Record<string, string>][] => {
  const isImage = kind === 'image'
  const type = isImage ? 'image/png' : 'application/pdf'
  const source = { type: 'url', url }
  const user = (...content: Json[]) => ({ role: 'user', content })
  const words = { type: 'text', text: url }
  const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } }
  const chatPart = isImage ? image(url) : { type: 'file', file: { file_data: url } }
  const chatField = isImage ? 'image_url.url' : 'file.file_data'
  const input = isImage ? { type: 'input_image', image_url: url } : { type: 'input_file', file_url: url }
  const block = { type: isImage ? 'image' : 'document', source }
  const sdk = (version: string) => ({
    'ai-language-model-id': 'data',
    'ai-language-model-specification-version': version,
  })
  const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: JSON.stringify({ url }) }
  return [
    [
      '/v1/chat/completions',
      { model: 'data', messages: [user(words, chatPart)] },
      `messages[0].content[1].${chatField}`,
    ],
    [
      '/v1/chat/completions',
      {
        ...{ model: 'data', tools: [tool] },
        messages: [
          user(words),
          { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] },
          { role: 'tool', tool_call_id: 'c', content: [words, chatPart] },
        ],
      },
      `messages[2].content[1].${chatField}`,
    ],
    [
      '/v1/messages',
      {
        ...{ model: 'data', max_tokens: 9, system: 'Be brief', messages: [user(words, block)] },
      },
      'messages[0].content[1].source.url',
    ],
    [
      '/v1/messages',
      {
        ...{ model: 'data', max_tokens: 9, tools: [{ name: 'f', input_schema: { type: 'object' } }] },
        messages: [
          { role: 'user', content: url },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: { url } }] },
          user({ type: 'tool_result', tool_use_id: 'c', content: [words, block] }),
        ],
      },
      'messages[2].content[0].content[1].source.url',
    ],
    [
      '/v1/responses',
      { model: 'data', instructions: 'Be brief', input: [user({ type: 'input_text', text: url }, input)] },
      `input[0].content[1].${isImage ? 'image_url' : 'file_url'}`,
    ],
    [
      '/v1/responses',
      {
        ...{ model: 'data', tools: [{ type: 'function', name: 'f', parameters: { type: 'object' } }] },
        input: [
          user({ type: 'input_text', text: 'a' }),
          call,
          { type: 'function_call_output', call_id: 'c', output: [input] },
        ],
      },
      `input[2].output[0].${isImage ? 'image_url' : 'file_url'}`,
    ],
    [
      '/v1beta/models/data:generateContent',
      {
        systemInstruction: { parts: [{ text: 'Be brief' }] },
        contents: [{ role: 'user', parts: [{ text: url }, { fileData: { mimeType: type, fileUri: url } }] }],
      },
      'contents[0].parts[1].fileData.fileUri',
    ],
    ...['2', '3'].map((version): [string, Json, string, Record<string, string>] => [
      `/v${version}/ai/language-model`,
      { prompt: [{ role: 'system', content: 'Be brief' }, user(words, { type: 'file', mediaType: type, data: url })] },
      'prompt[1].content[1].data',
      sdk(version),
    ]),
    [
      '/v4/ai/language-model',
      { prompt: [user(words, { type: 'file', mediaType: type, data: { type: 'url', url } })] },
      'prompt[0].content[1].data.url',
      sdk('4'),
    ],
  ]
}

group("what cannot be fetched is named by the field of the client's own wire", async t => {
  for (const url of [`${origin}/nothing`, `${origin}/away`, 'http://10.0.0.9/a', 'https://localhost/a.png']) {
    for (const kind of ['image', 'file'] as const) {
      for (const [path, body, param, headers] of clients(url, kind)) {
        const response = await gateway.post(path, body, headers)
        const answer = await response.text()
        const says = `${path} with a ${kind} at ${url}: ${answer}`
        t.equal(response.status, 400, says)
        t.ok(answer.includes(param), says)
        if (path.startsWith('/v1/chat')) t.match(JSON.parse(answer), { error: { param } }, says)
      }
    }
  }
  t.equal((await upstream.record()).length, 0)
})

group('an image at a private host that the operator lists reaches every provider as data', async t => {
  const url = `http://127.0.0.1:${port}/cat.png`
  for (const [path, body, , headers] of clients(url, 'image')) {
    for (const model of ['data', 'address', 'responses', 'claude']) {
      const named = JSON.parse(JSON.stringify({ ...body, ...('model' in body && { model }) }))
      const at = path.replace('data', model)
      const own = headers && { ...headers, 'ai-language-model-id': model }
      const response = await gateway.post(at, named, own)
      const says = `${at} to ${model}`
      t.equal(response.status, 200, `${says}: ${await response.text()}`)
      const [entry] = await upstream.record()
      const sent = JSON.stringify(entry!.body)
      t.ok(sent.includes(cat[1]!), says)
      await upstream.reset()
    }
  }
})

group('SI-01, SI-02, SI-03 nothing inside is fetched, whatever it is called and wherever a name leads', async t => {
  const names = ['inside', 'loopback', 'mixed', 'six', 'rebind', 'unknown'].map(name => `${name}.example`)
  const urls = [...insideHosts, ...names].flatMap(host => [
    `https://${host}/x.png`,
    `http://${host}:${inside.port}/x.png`,
  ])
  urls.push(`http://93.184.216.34/x.png`, `https://public.example:8443/x.png`, `https://u:p@images.example/x.png`)
  const told = new Set<string>()
  for (const url of urls) {
    const response = await ask('data', [url])
    t.equal(response.status, 400, url)
    const { error } = (await response.json()) as { error: Json }
    t.match(error, { code: 'url_not_allowed', param })
    told.add(String(error.message))
  }
  t.ok(told.size <= 2, 'SI-06 what is told does not tell why')
  t.equal((await upstream.record()).length, 0)
})

group('a client that leaves ends what is fetched for it', async t => {
  const client = new AbortController()
  const answer = ask('data', [`${origin}/held`], {}, client.signal)
  while (held.length === 0) await sleep(5)
  client.abort()
  await t.rejects(answer)
  while (gone === 0) await sleep(5)
  t.equal((await upstream.record()).length, 0)
})
