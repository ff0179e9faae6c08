/** Every endpoint that names a model, asked for a virtual model, and for names that rules move and refuse. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { untilInFlight } from '../helpers/invariants.ts'
import { callTool } from '../helpers/mcp.ts'
import { type ModelEndpoint, modelEndpoints, opened, seen } from '../helpers/model-endpoints.ts'
import { RealtimeClient } from '../helpers/realtime-client.ts'
import { scripted } from '../helpers/scripted.ts'

type Tree = Record<string, unknown>

const file = (path: string) => parse(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')) as Tree
const demo = file('providers.d/demo.yaml') as { wires: Tree; models: ({ model: string } & Tree)[] }
const { models } = file('config/models.d/demo.yaml') as { models: ({ id: string } & Tree)[] }
const failing = await scripted(t)
failing.answers({ status: 503, json: { error: { message: 'down' } } })
/** A list without one of its items. */
const without = (all: unknown, one: string) => (all as string[] | undefined)?.filter(other => other !== one) ?? []
/** A twin of each demo model whose provider is down. */
const twins = demo.models.map(one => ({ ...one, model: `${one.model}-twin`, supports: without(one.supports, 'tools') }))
const ids = models.map(({ id }) => id)
const TEXT = 'Use another model.'
const gateway = await startGateway(t, {
  models: [
    ...models.map(one => ({ ...one, context_length: 9000, aliases: [] })),
    ...models.map(one => ({
      ...one,
      id: `${one.id}-twin`,
      context_length: 7000,
      aliases: [],
      input: without(one.input, 'image'),
    })),
  ],
  providers: { demo, down: { base_url: failing.url, wires: demo.wires, models: twins } },
  config: {
    catalog: { routes: './routes.d' },
    jobs: { poll: '20ms', poll_max: '40ms' },
    mcp: { nano_banana: 'any-demo-image' },
  },
  files: {
    'config/routes.d/all.yaml': JSON.stringify({
      virtual_models: ids.map(id => ({ id: `any-${id}`, use: [`${id}-twin`, id] })),
      rules: [
        { match: { model: 'denied-*' }, deny: TEXT },
        ...ids.map(id => ({ match: { model: `moved-${id}` }, use: id })),
        ...ids.map(id => ({ match: { model: `over-${id}` }, use: `any-${id}` })),
      ],
    }),
  },
})
const command = commandsOf(gateway)

const refusals = {
  openai: { error: { message: TEXT, code: 'model_denied', param: 'model' } },
  google: { error: { code: 403, status: 'PERMISSION_DENIED', message: TEXT } },
  anthropic: { type: 'error', error: { type: 'permission_error', message: TEXT } },
  message: { error: { message: TEXT } },
  tool: { isError: true, content: [{ text: new RegExp(TEXT) }] },
}
const rows: Record<string, ModelEndpoint> = {
  ...modelEndpoints(gateway),
  'realtime sessions that transcribe': {
    model: 'demo-realtime',
    unrecorded: true,
    async ask(model) {
      const client = new RealtimeClient(gateway, `?intent=transcription&model=${model}`)
      return opened(client, () => client.until('session.created'))
    },
  },
  'models that transcribe within sessions': {
    model: 'demo-transcribe',
    unrecorded: true,
    refusedAs: 'message',
    async ask(model) {
      const client = new RealtimeClient(gateway, '?model=any-demo-realtime')
      const session = { type: 'realtime', model: 'any-demo-realtime', audio: { input: { transcription: { model } } } }
      return opened(client, async () => {
        await client.until('session.created')
        client.send({ type: 'session.update', session })
        return client.until('session.updated', 'error')
      })
    },
  },
  'models that transcribe, of a client secret': {
    model: 'demo-transcribe',
    unrecorded: true,
    refusedAs: 'message',
    async ask(model) {
      const session = { type: 'realtime', model: 'demo-realtime', audio: { input: { transcription: { model } } } }
      const minted = await seen(await gateway.post('/v1/realtime/client_secrets', { session }))
      if (minted.status !== 200) return minted
      const client = new RealtimeClient(gateway, '', { key: (minted.body as { value: string }).value })
      return opened(client, () => client.until('session.created'))
    },
  },
}

const cases: { name: string; id: string; requested: string; used: string | undefined }[] = []
let asked = 0
const idOf = () => ({ 'x-request-id': `virtual-${++asked}` })

for (const [name, { model, ask, metadata, refusedAs = 'openai', unrecorded, estimated }] of Object.entries(rows)) {
  t.test(`${name}: a virtual model, and names that rules move and refuse`, async t => {
    for (const called of [`any-${model}`, `moved-${model}`, `over-${model}`]) {
      const id = idOf()
      const answer = await ask(called, id)
      t.equal(answer.status, 200, `${called}: ${JSON.stringify(answer.body)?.slice(0, 300)}`)
      if (metadata) t.match(metadata(answer.body as never), { requested_model: called, used_model: model })
      if (!unrecorded)
        cases.push({ name, id: id['x-request-id'], requested: called, used: estimated ? undefined : model })
    }
    const before = failing.got.length
    const refused = await ask(`denied-${model}`, idOf())
    t.equal(refused.status, 403)
    t.match(refused.body, refusals[refusedAs])
    t.equal(failing.got.length, before, 'no provider is asked')
  })
}

t.test('the log names the requested and the used model of each of them', async t => {
  await untilInFlight(gateway, 0)
  const books = openBooks(t, gateway)
  const row = books.prepare('SELECT requested_model, model FROM requests WHERE request_id = ?')
  for (const { name, id, requested, used } of cases) {
    // A video has its row once it is made, and a session once its last response is settled.
    let found = row.get(id)
    while (!found) {
      await new Promise(resolve => setTimeout(resolve, 20))
      found = row.get(id)
    }
    t.match(found, { requested_model: requested, ...(used !== undefined && { model: used }) }, `${name}: ${requested}`)
  }
})

t.test('each is listed with what its targets share, and explained', async t => {
  interface Entry {
    id: string
    operations: string[]
    context_length?: number
    architecture: { input_modalities: string[] }
    supported_parameters: string[]
  }
  const { data } = (await (await gateway.get('/v1/models')).json()) as { data: Entry[] }
  const entryOf = (id: string) => data.find(one => one.id === id)
  for (const { model } of Object.values(rows)) {
    const [own, any] = [entryOf(model), entryOf(`any-${model}`)]
    const shared = entryOf(`${model}-twin`)?.operations.filter(one => own?.operations.includes(one))
    t.strictSame(any?.operations, shared, model)
    t.equal(any?.context_length, 7000)
    const { input_modalities } = own!.architecture
    t.strictSame(any?.architecture.input_modalities, without(input_modalities, 'image'))
    t.notOk(any?.supported_parameters.includes('tools'))
    t.match(await command('route.explain', { model: `any-${model}` }), {
      model: `any-${model}`,
      candidates: [{ offer: `down/${model}-twin` }, { offer: `demo/${model}` }],
    })
    const moved = await command<{ rule: string; choice: string }>('route.explain', { model: `moved-${model}` })
    t.match(moved, { rule: /^all.yaml#/, choice: `demo/${model}` })
    t.match(await command('route.explain', { model: `denied-${model}` }).catch(String), new RegExp(TEXT))
  }
})

t.test('other lists name them, too', async t => {
  const tools = await callTool(gateway, 'list-models', { limit: 1000 })
  const listed = (tools.structuredContent as { models: { id: string }[] }).models.map(({ id }) => id)
  t.ok(listed.includes('any-demo'), 'list-models')
  const images = await callTool(gateway, 'list-image-models', {})
  t.match(JSON.stringify(images.structuredContent), '"any-demo-image"')
  t.match(await (await gateway.get('/v1beta/models', { 'x-goog-api-key': gateway.key })).text(), 'models/any-demo')
  t.match(await (await gateway.get('/v4/ai/config')).text(), '"any-demo"')
})

t.test('the fixed model of an MCP tool may be a virtual one', async t => {
  const made = await callTool(gateway, 'generate-nano-banana', { prompt: 'a cat' })
  t.match(made, { content: [{ type: 'image' }] }, JSON.stringify(made).slice(0, 300))
})

t.test('the books are sound', async t => {
  await untilInFlight(gateway, 0)
  t.strictSame(await command('usage.check'), { differences: [] })
})
