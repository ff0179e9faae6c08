/** `POST /v1/images/generations` and `/edits`: shapes, money, streams, failover (docs/contract.md#images). */
import OpenAI, { toFile } from 'openai'
import t from 'tap'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { type Received, scripted } from '../helpers/scripted.ts'

type Tree = Record<string, unknown>

const [tokens, each, spare] = await Promise.all([scripted(t), scripted(t), scripted(t)])
const timeouts = { connect: '500ms', first_event: '2s', idle: '2s', total: '5s' }
const wires = { images: 'openai.images', image_edits: 'openai.image-edits' }
const model = (id: string) => ({ id, name: id, family: 'test', input: ['text', 'image'], output: ['image'] })
const tokenPrice = { prompt: '5', image_input: '10', image_output: '40' }
const gateway = await startGateway(t, {
  models: ['gpt-image-a', 'by-size', 'unpriced', 'demo-image'].map(model),
  providers: {
    tokens: {
      base_url: tokens.url,
      wires,
      timeouts,
      priority: 2,
      models: [
        { model: 'gpt-image-a', id: 'gpt-image-1', pricing: tokenPrice, supports: ['streaming'] },
        { model: 'unpriced', id: 'unpriced-1' },
      ],
    },
    each: {
      base_url: each.url,
      wires,
      timeouts,
      models: [
        {
          model: 'by-size',
          id: 'dall-e-3',
          pricing: { per_image: { 'hd/1024x1024': '0.08', '1k': '0.04', default: '0.12' } },
          sizes: ['1024x1024', '1792x1024'],
          max_n: 1,
        },
      ],
    },
    spare: {
      base_url: spare.url,
      wires,
      timeouts,
      models: [{ model: 'gpt-image-a', id: 'gpt-image-1', pricing: tokenPrice, supports: ['streaming'] }],
    },
    demo: {
      base_url: '$' + '{GATEWAY_DEMO_URL}',
      auth: { scheme: 'none' },
      wires,
      models: [{ model: 'demo-image', pricing: { per_image: { default: '0' } }, supports: ['streaming'] }],
    },
  },
})
const command = commandsOf(gateway)
const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })
const generate = (body: Tree, headers?: Record<string, string>) =>
  gateway.post('/v1/images/generations', { prompt: 'a cat', ...body }, headers)
const bodyOf = async (answer: Response) => (await answer.json()) as Tree
/** A PNG's first bytes, and so many more. */
const pictureOf = (bytes = 0, byte = 1) =>
  Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(bytes, byte)])
const b64 = pictureOf(32).toString('base64')
const usage = {
  input_tokens: 50,
  input_tokens_details: { image_tokens: 40, text_tokens: 10 },
  output_tokens: 100,
  total_tokens: 150,
}

t.test('an answer has its shape to the letter, and its price', async t => {
  tokens.answers({ json: { created: 1790000000, data: [{ b64_json: b64 }], usage } })
  const answer = await generate({ model: 'gpt-image-a' })
  const { usage: told, ...rest } = (await bodyOf(answer)) as { usage: Tree }
  t.strictSame(rest, { created: 1790000000, data: [{ b64_json: b64 }] })
  const { cost_details, ...counts } = told
  t.strictSame(counts, {
    ...usage,
    output_tokens_details: { image_tokens: 100, text_tokens: 0 },
    cost: 0.00445,
  })
  t.match(cost_details, { input_cost: 0.00045, output_cost: 0.004, image_output_cost: 0.004, total_cost: 0.00445 })
  const { user, ...sent } = tokens.last().json as Tree
  t.match(user, /./, 'the organization')
  t.strictSame(sent, { model: 'gpt-image-1', prompt: 'a cat', n: 1 })
  const headers = ['x-gateway-provider', 'x-gateway-model', 'x-gateway-cost'].map(name => answer.headers.get(name))
  t.strictSame(headers, ['tokens', 'gpt-image-a', '0.00445'])
})

t.test('the demo draws the same picture for the same prompt, for nothing, whole and streamed', async t => {
  const one = await client.images.generate({ model: 'demo-image', prompt: 'a cat', n: 2 })
  const two = await client.images.generate({ model: 'demo-image', prompt: 'a cat' })
  t.equal(one.data![0]!.b64_json, two.data![0]!.b64_json)
  t.not(one.data![0]!.b64_json, one.data![1]!.b64_json)
  t.match(one.usage, { cost: 0 })
  t.ok(one.created > 1_700_000_000, 'an answer of the demo has the time of its answer')
  const stream = await client.images.generate({ model: 'demo-image', prompt: 'a cat', stream: true, partial_images: 2 })
  const types: string[] = []
  for await (const event of stream) types.push(event.type)
  t.strictSame(types, [
    'image_generation.partial_image',
    'image_generation.partial_image',
    'image_generation.completed',
  ])
  const edited = await client.images.edit({
    model: 'demo-image',
    prompt: 'a hat',
    image: [await toFile(pictureOf(9), 'a.png'), await toFile(pictureOf(19), 'b.png')],
  })
  t.match(edited, { output_format: 'png', size: '64x64', usage: { cost: 0 } })
})

t.test('an edit of the same files is answered from the cache, one of others is not', async t => {
  const projects = (cache: string) => commandsOf(gateway)('projects.update', { project: 'default', cache })
  await projects('on')
  t.teardown(() => projects('off'))
  const ask = async (byte: number) => {
    const image = await toFile(pictureOf(64, byte), 'a.png')
    const { response } = await client.images.edit({ model: 'demo-image', prompt: 'a coat', image }).withResponse()
    return response.headers.get('x-gateway-cache')
  }
  t.strictSame([await ask(1), await ask(1), await ask(2)], ['MISS', 'HIT', 'MISS'])
})

/** The form that a provider got. */
const formOf = async ({ body, headers }: Received): Promise<FormData> =>
  (await new Response(new Uint8Array(body), {
    headers: { 'content-type': headers['content-type']! },
  }).formData()) as FormData

t.test('edits reach the provider as a form, from a form and from JSON', async t => {
  const answer = {
    created: 1,
    data: [{ b64_json: b64 }],
    background: 'opaque',
    output_format: 'png',
    size: '1x1',
    usage,
  }
  tokens.answers({ json: answer })
  const files = await Promise.all([1, 2].map(byte => toFile(pictureOf(64, byte), 'secret-name.bin')))
  const edited = await client.images.edit({
    model: 'gpt-image-a',
    prompt: 'a hat',
    image: files,
    mask: files[0]!,
    n: 2,
  })
  t.match(edited, { data: [{ b64_json: b64 }], background: 'opaque', output_format: 'png', usage: { cost: 0.00445 } })
  const form = await formOf(tokens.last())
  t.strictSame([form.get('prompt'), form.get('n'), form.get('response_format')], ['a hat', '2', null])
  const sent = [...form.getAll('image[]'), form.get('mask')] as File[]
  t.strictSame(
    sent.map(({ name, type, size }) => [name, type, size]),
    [
      ['image-0.png', 'image/png', 80],
      ['image-1.png', 'image/png', 80],
      ['mask.png', 'image/png', 80],
    ],
  )
  t.ok(Buffer.from(await sent[1]!.arrayBuffer()).equals(pictureOf(64, 2)), 'byte for byte')
  const url = `data:image/png;base64,${pictureOf(8).toString('base64')}`
  const json = await gateway.post('/v1/images/edits', {
    model: 'gpt-image-a',
    prompt: 'x',
    images: [{ image_url: url }],
  })
  t.equal(json.status, 200)
  t.equal(((await formOf(tokens.last())).get('image') as File).size, 24)
})

t.test('a stream has previews, and the cost on its last event', async t => {
  const event = (name: string, more: Tree) =>
    `event: image_generation.${name}\ndata: ${JSON.stringify({ type: `image_generation.${name}`, b64_json: b64, ...more })}\n\n`
  const body = event('partial_image', { partial_image_index: 0 }) + event('completed', { created_at: 5, usage })
  tokens.answers({ type: 'text/event-stream', body })
  const events: Tree[] = []
  const stream = await client.images.generate({
    model: 'gpt-image-a',
    prompt: 'a cat',
    stream: true,
    partial_images: 1,
  })
  for await (const event of stream) events.push(event as unknown as Tree)
  t.match(events, [
    { type: 'image_generation.partial_image', partial_image_index: 0, b64_json: b64, quality: 'auto' },
    { type: 'image_generation.completed', created_at: 5, output_format: 'png', usage: { cost: 0.00445 } },
  ])
  t.match(tokens.last().json, { stream: true, partial_images: 1 })
  tokens.answers({ json: { data: [{ b64_json: b64 }], usage } })
  const whole = await generate({ model: 'gpt-image-a', stream: true })
  t.strictSame(
    (await whole.text()).match(/event: .*/g),
    ['event: image_generation.completed'],
    'also of a whole answer',
  )
})

t.test('what is no picture fails over, what is filtered does not', async t => {
  const before = spare.got.length
  tokens.answers({ status: 400, json: { error: { message: 'no', code: 'moderation_blocked' } } })
  const filtered = await generate({ model: 'gpt-image-a' })
  t.strictSame([filtered.status, ((await bodyOf(filtered)).error as Tree).code], [400, 'content_filter'])
  t.equal(spare.got.length, before)
  spare.answers({ json: { data: [{ b64_json: b64 }], usage } })
  for (const answer of [
    { error: { message: 'oops', code: 500 } },
    { data: [] },
    { data: [{ url: 'https://a.example/a.png' }] },
    { data: [{ b64_json: Buffer.from('<svg onload="x"/>').toString('base64') }] },
    { data: [{ b64_json: 'no base64!' }] },
  ]) {
    tokens.answers({ json: answer })
    const got = await generate({ model: 'gpt-image-a' })
    t.equal(got.headers.get('x-gateway-provider'), 'spare', JSON.stringify(answer).slice(0, 60))
    t.notMatch(await got.text(), /a\.example|svg/)
  }
})

t.test('M1 a picture costs by its size and quality, and what is not offered is refused', async t => {
  each.answers({ json: { data: [{ b64_json: `data:image/png;base64,${b64.slice(0, 20)}\n${b64.slice(20)}` }] } })
  for (const [more, usd] of [
    [{ quality: 'hd', size: '1024x1024' }, '0.08'],
    [{ size: '1024x1024' }, '0.04'],
    [{ size: '1792x1024' }, '0.12'],
  ] as const) {
    const answer = await generate({ model: 'by-size', ...more })
    t.equal(answer.headers.get('x-gateway-cost'), usd, JSON.stringify(more))
    t.match(await bodyOf(answer), { data: [{ b64_json: b64 }] }, 'cleaned')
  }
  t.match(each.last().json, { response_format: 'b64_json', model: 'dall-e-3' })
  const rows: [body: Tree, code: string, param: string | null][] = [
    [{ response_format: 'url' }, 'invalid_parameters', 'response_format'],
    [{ prompt: '' }, 'invalid_parameters', 'prompt'],
    [{ n: 11 }, 'invalid_parameters', 'n'],
    [{ size: '512x512' }, 'model_not_supported', 'size'],
    [{ service_tier: 'flex' }, 'unsupported_service_tier', 'service_tier'],
  ]
  const many = await generate({ model: 'by-size', n: 2 })
  t.match(many.headers.get('x-gateway-cost'), '0.08', 'two requests, where one makes one picture')
  const before = each.got.length
  for (const [body, code, param] of rows) {
    const refused = await generate({ model: 'by-size', ...body })
    t.equal(refused.status, 400)
    t.match(await bodyOf(refused), { error: { code, param } }, JSON.stringify(body))
  }
  t.equal(each.got.length, before)
  const auto = await generate({})
  t.equal(auto.headers.get('x-gateway-model'), 'demo-image', '"auto" is the first live one of its own list')
  const edit = (more: Tree) => gateway.post('/v1/images/edits', { model: 'gpt-image-a', prompt: 'x', ...more })
  const text = `data:image/png;base64,${Buffer.from('<html><body>not a picture').toString('base64')}`
  t.match(await bodyOf(await edit({ images: [{ image_url: text }] })), { error: { code: 'not_an_image' } })
  t.match(await bodyOf(await edit({ images: [] })), { error: { code: 'invalid_parameters', param: 'images' } })
  t.equal((await edit({ images: [{ image_url: 'http://10.0.0.1/a.png' }] })).status, 400)
})

t.test('the books are sound: every request has a row, and all sums agree', async t => {
  t.strictSame(await command('usage.check'), { differences: [] })
  const books = openBooks(t, gateway)
  t.strictSame(books.prepare('SELECT * FROM holds').all(), [], 'nothing is held')
})
