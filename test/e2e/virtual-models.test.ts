/** Virtual models over three wires (docs/virtual-models.md). */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { type Step, startUpstream } from '../helpers/upstream.ts'

const upstream = await startUpstream(t, { key: upstreamSecret })
const offer = (model: string, usd: string) => ({
  ...testMapping,
  model,
  id: `${model}-1`,
  pricing: { prompt: usd, completion: usd },
})
const sighted = { ...offer('sighted', '9'), supports: ['streaming', 'vision'] }
const page = readFileSync('docs/virtual-models.md', 'utf8')
const [house, presets] = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text]) => text!)
const rules = /```yaml\n([\s\S]*?)```/.exec(readFileSync('docs/rules.md', 'utf8'))![1]!
const more = [
  { id: 'cheapest', strategy: 'price', use: ['third', 'second', 'first'] },
  { id: 'fastest', strategy: 'latency', use: ['third', 'first'] },
  { id: 'within', use: ['cheapest', 'third'] },
  { id: 'by-tag', use: [{ model: 'second', when: { tags: { team: ['blue', 'red'] } } }, 'first'] },
  { id: 'by-key', use: [{ model: 'second', when: { keys: ['no-such-key'] } }, 'third'] },
  { id: 'no-one', use: [{ model: 'second', when: { keys: ['no-such-key'] } }] },
  { id: 'by-context', use: ['tight', 'first'] },
  { id: 'seeing', use: ['tight', 'sighted'] },
  { id: 'unlisted', hidden: true, use: ['first'] },
  { id: 'Team/One model', use: ['first'] },
  { id: 'any/*', use: ['wild/*', 'first'] },
]
const gateway = await startGateway(t, {
  providers: {
    one: {
      base_url: upstream.url('one'),
      models: [offer('first', '1'), { ...offer('tight', '2'), context_length: 100, supports: ['streaming'] }, sighted],
    },
    claude: {
      base_url: upstream.url('claude'),
      auth: { scheme: 'header', header: 'x-api-key', secret: upstreamSecret },
      wires: { chat: 'anthropic.messages' },
      models: [offer('second', '3')],
    },
    wild: { base_url: upstream.url('wild'), models: [], open: { unpriced: 'allow' } },
    answers: { base_url: upstream.url('answers'), wires: { chat: 'openai.responses' }, models: [offer('third', '5')] },
  },
  config: { catalog: { routes: './routes.d' } },
  files: {
    'config/routes.d/house.yaml': house!,
    'config/routes.d/presets.yaml': presets!,
    'config/routes.d/rules.yaml': rules,
    'config/routes.d/more.yaml': JSON.stringify({
      virtual_models: more,
      rules: [
        { match: { model: 'moved' }, use: 'no-one' },
        ...['tight', 'Team/One model', 'claude/second'].map(model => ({
          match: { model, keys: ['kept-from'] },
          deny: 'Not with this key.',
        })),
      ],
    }),
  },
})
const usage = { prompt: 10, completion: 5 }
const up: Step = { text: 'I do', usage }
const providers = ['one', 'claude', 'answers'] as const
const models = ['first', 'second', 'third']
const faults: Record<string, Step> = { 'a 500': { status: 500 }, 'a 429': { status: 429 }, 'a 401': { status: 401 } }
const play = async (steps: readonly Step[]) => {
  await upstream.reset()
  for (const [at, step] of steps.entries()) await upstream.script(providers[at]!, [step])
}
const messages = [{ role: 'user', content: 'Who answers?' }]

interface Metadata {
  requested_model: string
  requested_provider: string | null
  used_model: string
  routing: { model: string; succeeded: boolean }[]
}

// A start forgets what failed before.
for (const answering of [1, 2]) {
  for (const [name, fault] of Object.entries(faults)) {
    for (const path of ['/v1/chat/completions', '/v1/messages']) {
      t.test(`${path}: target ${answering + 1} of a virtual model answers behind ${name}`, async t => {
        await gateway.restart()
        await play(models.map((_, at) => (at < answering ? fault : up)))
        const answer = await gateway.post(path, { model: 'house', messages, max_tokens: 9 })
        const body = (await answer.json()) as { metadata: Metadata }
        t.equal(answer.status, 200)
        t.match(body.metadata, { requested_model: 'house', requested_provider: null, used_model: models[answering] })
        t.strictSame(
          body.metadata.routing.map(({ model, succeeded }) => `${model} ${succeeded}`),
          models.slice(0, answering + 1).map((model, at) => `${model} ${at === answering}`),
        )
      })
    }
  }
}

t.test('a target whose condition is not met is passed over', async t => {
  await gateway.restart()
  await play([up, up, up])
  const long = 'word '.repeat(2000)
  const answer = await gateway.chat({ model: 'house', messages: [{ role: 'user', content: long }] })
  t.equal(((await answer.json()) as { metadata: Metadata }).metadata.used_model, 'second')
})

t.test('a listed virtual model that is not meant for a request is passed over', async t => {
  await play([up, up, up])
  const ask = async (body: object) => (await gateway.chat({ messages, ...body })).json()
  for (const names of [
    ['no-one', 'third'],
    ['moved', 'third'],
    ['third', 'no-one'],
  ]) {
    t.match(await ask({ models: names }), { metadata: { used_model: 'third' } }, names.join())
  }
  const error = { code: 'model_not_supported', message: 'No target of the model "no-one" is meant for this request.' }
  t.match(await ask({ models: ['no-one', 'moved'] }), { error })
  t.match(await ask({ models: ['no-one', 'nothing'] }), { error: { code: 'model_not_found', param: 'models' } })
})

t.test('the preset of the page is sent', async t => {
  await play([up, up, up])
  await gateway.chat({ model: 'careful', messages, user: 'me' })
  const { body } = (await upstream.record('claude')).at(-1)!
  t.match(body, { max_tokens: 500, temperature: 0.2, system: 'Answer in one sentence.' })
})

t.test('the requests of a session draw the same target', async t => {
  for (const session of ['a', 'b', 'c', 'd']) {
    const used = new Set<string>()
    for (let turn = 0; turn < 4; turn++) {
      await play([up, up, up])
      const answer = await gateway.chat({ model: 'canary', messages }, { 'x-session-id': session })
      used.add(((await answer.json()) as { metadata: Metadata }).metadata.used_model)
    }
    t.equal(used.size, 1)
  }
})

type Explained = { candidates: { offer: string; place: number }[]; excluded: { offer: string; reason: string }[] }
const explain = (question: object) => commandsOf(gateway)<Explained>('route.explain', question)
const offersOf = ({ candidates }: Explained) => candidates.filter(({ place }) => place).map(({ offer }) => offer)

t.test('price and latency decide the order, also of nested virtual models', async t => {
  const byPrice = ['one/first', 'claude/second', 'answers/third']
  t.strictSame(offersOf(await explain({ model: 'cheapest' })), byPrice)
  t.strictSame(offersOf(await explain({ model: 'within' })), byPrice)
  t.strictSame(offersOf(await explain({ model: 'fastest' })), ['answers/third', 'one/first'], 'nothing is measured')
  await play([up, up, up])
  const answer = await gateway.chat({ model: 'cheapest', messages })
  t.match(((await answer.json()) as { metadata: Metadata }).metadata, { used_model: 'first' })
})

t.test('tags and keys choose targets, and explain says which are left out', async t => {
  const used = async (model: string, tags?: string) => {
    await play([up, up, up])
    const answer = await gateway.chat({ model, messages }, tags === undefined ? {} : { 'x-gateway-tags': tags })
    return ((await answer.json()) as { metadata: Metadata }).metadata.used_model
  }
  t.equal(await used('by-tag', 'team=red'), 'second')
  t.equal(await used('by-tag', 'team=green'), 'first')
  t.equal(await used('by-tag'), 'first')
  t.equal(await used('by-key'), 'third')
  t.strictSame(offersOf(await explain({ model: 'by-tag', tags: 'team=blue' })), ['claude/second', 'one/first'])
  t.match(await explain({ model: 'by-tag' }), { excluded: [{ offer: 'second', reason: /when/ }] })
  t.strictSame(offersOf(await explain({ model: 'by-key', key: 'no-such-key' })), ['claude/second', 'answers/third'])
})

t.test('a target that cannot serve a request is skipped with its reason', async t => {
  await play([up, up, up])
  const long = await gateway.chat({ model: 'by-context', messages: [{ role: 'user', content: 'word '.repeat(500) }] })
  t.equal(((await long.json()) as { metadata: Metadata }).metadata.used_model, 'first')
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
  const seen = await gateway.chat({ model: 'seeing', messages: [{ role: 'user', content: [image] }] })
  t.equal(((await seen.json()) as { metadata: Metadata }).metadata.used_model, 'sighted')
  t.match(await explain({ model: 'by-context', prompt: 5000 }), {
    excluded: [{ offer: 'tight', reason: /too long/ }],
  })
  t.match(await explain({ model: 'seeing', vision: true }), { excluded: [{ offer: 'tight', reason: /image input/ }] })
})

t.test('rules move and refuse requests, on each client wire', async t => {
  const asked = async (path: string, body: object, tags?: string) => {
    await play([up, up, up])
    return gateway.post(
      path,
      { messages, max_tokens: 9, ...body },
      tags === undefined ? {} : { 'x-gateway-tags': tags },
    )
  }
  for (const path of ['/v1/chat/completions', '/v1/messages']) {
    for (const [model, tags, used] of [
      ['costly-2', 'team=research', 'second'],
      ['costly-2', 'team=sales', 'first'],
      ['costly', undefined, 'first'],
      ['costly:floor', undefined, 'first'],
    ] as const) {
      const answer = (await (await asked(path, { model }, tags)).json()) as { metadata: Metadata }
      t.match(answer.metadata, { requested_model: model, used_model: used }, `${path} ${model} ${tags}`)
    }
    const refused = await asked(path, { model: 'retired' })
    t.equal(refused.status, 403)
    t.match(await refused.text(), 'Use \\"first\\" instead.')
  }
  // The metrics begin anew.
  await gateway.restart()
  const next = (await (await asked('/v1/chat/completions', { model: 'retired', models: ['third'] })).json()) as {
    metadata: Metadata
  }
  t.match(next.metadata, { used_model: 'third' }, 'a denied entry is skipped')
  t.match(await gateway.metrics(), /gateway_route_rules_applied_total{[^}]*rule="rules.yaml#3"[^}]*} 1/)
  const explained = await explain({ model: 'costly', tags: 'team=research' })
  t.match(explained, { rule: 'rules.yaml#1', choice: 'claude/second' })
  t.match(await explain({ model: 'retired' }).catch(String), /rules.yaml#3/)
})

t.test('a pattern stands for the names that fit it, and goes on to its further targets', async t => {
  await play([up])
  await upstream.script('wild', [up, { status: 500 }])
  const asked = async (model: string) =>
    ((await (await gateway.chat({ model, messages })).json()) as { metadata: Metadata }).metadata
  t.match(await asked('any/new-model'), { requested_model: 'any/new-model', used_model: 'new-model' })
  t.match((await upstream.record('wild'))[0]!.body, { model: 'new-model' })
  t.match(await asked('any/other'), { requested_model: 'any/other', used_model: 'first' })
  const last = await gateway.chat({ model: 'any/*', messages })
  t.equal(last.status, 200, `the last target answers: ${await last.text()}`)
  t.match(await (await gateway.get('/v1/models/any/*')).json(), { id: 'any/*', providers: [{ providerId: 'one' }] })
  t.match(await explain({ model: 'any/*' }), { excluded: [{ offer: 'wild/*', reason: /does not exist/ }] })
  t.match(await (await gateway.get('/v1/models/any/new-model')).json(), { id: 'any/new-model' })
})

t.test('hidden models and patterns are called but not listed', async t => {
  await play([up, up])
  for (const model of ['unlisted', 'Team/One model']) {
    t.equal((await gateway.chat({ model, messages })).status, 200, model)
  }
  const { data } = (await (await gateway.get('/v1/models')).json()) as { data: { id: string }[] }
  const ids = data.map(({ id }) => id)
  t.ok(ids.includes('Team/One model'))
  for (const id of ['unlisted', 'any/*']) t.notOk(ids.includes(id), id)
})

t.test('listings leave out what a rule denies to their key', async t => {
  const made = { project: 'default', name: 'kept-from' }
  const { key } = await commandsOf(gateway)<{ key: string }>('keys.create', made)
  const headers = { authorization: `Bearer ${key}` }
  const listed = async (path: string, given = {}) => JSON.stringify(await (await gateway.get(path, given)).json())
  const paths = ['/v1/models', '/v1/models?mapped=true', '/v3/ai/config']
  for (const path of paths) {
    const [all, own] = [await listed(path), await listed(path, headers)]
    for (const id of path === paths[1] ? ['one/tight', 'claude/second'] : ['Team/One model']) {
      t.match(all, `"id":"${id}"`, `${path} with another key: ${id}`)
      t.notMatch(own, `"id":"${id}"`, `${path}: ${id}`)
    }
    t.match(own, path === paths[0] ? '"id":"second"' : '"one/first"', `${path}: what another name still calls`)
  }
  t.match(await listed('/v1/models?include_restricted=true', headers), '"id":"tight"')
  t.equal((await gateway.get('/v1/models/tight', headers)).status, 404)
  t.equal((await gateway.get('/v1/models/second', headers)).status, 200)
})

t.test('a virtual model is listed with what all of its targets can', async t => {
  for (const path of ['/v1/models/house', '/v1/models']) {
    const body = (await (await gateway.get(path)).json()) as Record<string, unknown> & { data?: { id: string }[] }
    const entry = body.data?.find(({ id }) => id === 'house') ?? body
    t.match(entry, { id: 'house', name: 'House model', operations: ['chat'] })
  }
})

t.test('route explain shows the targets in order', async t => {
  const shown = await commandsOf(gateway)<{ candidates: { offer: string; place: number }[] }>('route.explain', {
    model: 'house',
  })
  t.strictSame(
    shown.candidates.map(({ offer, place }) => `${place} ${offer}`),
    ['1 one/first', '2 claude/second', '3 answers/third'],
  )
})

t.test('money equals the sum of what each attempt owes', t => checkInvariants(t, gateway, upstream))
