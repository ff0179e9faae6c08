/** Limits on money and rates that refuse, notify, or use another model, at every endpoint that calls a model. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { untilInFlight } from '../helpers/invariants.ts'
import { modelEndpoints } from '../helpers/model-endpoints.ts'
import { RealtimeClient } from '../helpers/realtime-client.ts'
import type { SentEvent } from '../helpers/realtime-provider.ts'

type Tree = Record<string, unknown>
type Made = { readonly id: string; readonly key: string }

const file = (path: string) => parse(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')) as Tree
/** Prices that are not zero. */
const priced = (price: unknown): unknown =>
  typeof price === 'string'
    ? '1'
    : Object.fromEntries(Object.entries(price as Tree).map(([name, one]) => [name, priced(one)]))
const demo = file('providers.d/demo.yaml') as { models: { model: string; pricing: unknown }[] }
const { models } = file('config/models.d/demo.yaml') as { models: { id: string }[] }
const offers = demo.models.map(one => ({ ...one, pricing: priced(one.pricing) }))
const spare = (id: string) => `${id}-spare`
const { chains } = file('config/gateway.yaml') as { chains: { inference: unknown[] } & Tree }

const actions = ['refuse', 'notify', 'use'] as const
/** One request a minute to each model by keys of these names. */
const rules = actions.flatMap(action =>
  models.map(({ id }) => ({
    match: { model: id, keys: [`rule ${action} *`] },
    rpm: 1,
    on_limit: action === 'use' ? { use: spare(id) } : action,
  })),
)
const gateway = await startGateway(t, {
  models: [...models, ...models.map(one => ({ ...one, id: spare(one.id), aliases: [] }))],
  providers: { demo: { ...demo, models: [...offers, ...offers.map(one => ({ ...one, model: spare(one.model) }))] } },
  chains: {
    ...chains,
    inference: chains.inference.map(one =>
      typeof one === 'object' && one !== null && 'ratelimit' in one ? { ratelimit: { rpm: 600, limits: rules } } : one,
    ),
  },
  config: { jobs: { poll: '20ms', poll_max: '40ms' } },
})
const command = commandsOf(gateway)
const { id: organization } = await command<Made>('orgs.create', { name: 'open', account: 'open' })
const { id: project } = await command<Made>('projects.create', { organization, name: 'web' })

/** How a key gets a limit, the requests that it has room for, and the status of a refusal. */
const limits = {
  money: { room: 0, status: 402, args: (onLimit: string) => ({ limit: '0', onLimit }) },
  rate: { room: 1, status: 429, args: (onLimit: string) => ({ rpm: 1, onLimit }) },
  rule: { room: 1, status: 429, args: () => ({}) },
}
const cases: { name: string; keyId: string; used: string[]; model: string }[] = []

for (const [name, { model, ask, refusedAs, estimated }] of Object.entries(modelEndpoints(gateway))) {
  for (const [kind, { room, status, args }] of Object.entries(limits)) {
    t.test(`${name}: a limit of ${kind}`, async t => {
      for (const action of actions) {
        const onLimit = action === 'use' ? `use:${spare(model)}` : action
        const { id: keyId, key } = await command<Made>('keys.create', {
          ...{ project, name: `${kind} ${action} ${name}` },
          ...args(onLimit),
        })
        const used: string[] = []
        for (let n = 0; n <= room; n++) {
          const answer = await ask(model, { authorization: `Bearer ${key}` })
          const isWithin = estimated || n < room
          const isServed = isWithin || action !== 'refuse'
          const expected = isServed ? 200 : refusedAs === 'tool' ? 403 : status
          t.equal(answer.status, expected, `${action} ${n}: ${JSON.stringify(answer.body)?.slice(0, 300)}`)
          if (isServed) used.push(isWithin || action === 'notify' ? model : spare(model))
        }
        if (!estimated) cases.push({ name: `${name}: ${kind} ${action}`, keyId, used, model })
      }
    })
  }
}

t.test(
  'a job that is asked for again by its idempotency key is the same one, whatever model a limit chooses',
  async t => {
    for (const limit of [limits.money, limits.rate]) {
      const onLimit = `use:${spare('demo-video')}`
      const { key } = await command<Made>('keys.create', { ...{ project, name: 'again' }, ...limit.args(onLimit) })
      const headers = { authorization: `Bearer ${key}`, 'idempotency-key': `again-${limit.status}` }
      const ids: unknown[] = []
      for (let n = 0; n < 2; n++) {
        const answer = await gateway.post('/v1/videos', { model: 'demo-video', prompt: 'a cat', seconds: 4 }, headers)
        const body = (await answer.json()) as Tree
        t.equal(answer.status, 200, JSON.stringify(body))
        ids.push(body.id)
      }
      t.equal(ids[0], ids[1])
    }
  },
)

t.test('the tokens of each response of a session count, and none begins beyond their limit', async t => {
  for (const [onLimit, last] of [
    ['refuse', 'error'],
    ['notify', 'response.done'],
    [`use:${spare('demo-realtime')}`, 'error'],
  ]) {
    const { key } = await command<Made>('keys.create', { project, name: 'talk', tpm: 2, onLimit })
    const client = new RealtimeClient(gateway, '?model=demo-realtime', { key })
    await client.opened()
    const told: SentEvent[] = []
    for (let n = 0; n < 2; n++) {
      client.send({ type: 'response.create' })
      told.push(await client.until('response.done', 'error'))
    }
    t.strictSame(
      told.map(({ type }) => type),
      ['response.done', last],
    )
    if (last === 'error') {
      t.match(told[1]!.error, { code: 'rate_limit_exceeded', message: /2 tokens per minute \(tpm\) of key "talk"/ })
    }
    await client.end()
    if (onLimit !== 'refuse') continue
    const messages = [{ role: 'user', content: 'Hi' }]
    const chat = await gateway.chat({ model: 'demo', messages }, { authorization: `Bearer ${key}` })
    t.equal(chat.status, 429, 'they count with those of other endpoints')
  }
})

t.test('a limit whose model cannot serve the request refuses it', async t => {
  for (const limit of [limits.money, limits.rate]) {
    const { key } = await command<Made>('keys.create', { ...{ project, name: 'unfit' }, ...limit.args('use:demo') })
    const ask = () =>
      gateway.post('/v1/embeddings', { model: 'demo-embed', input: 'a' }, { authorization: `Bearer ${key}` })
    for (let n = 0; n < limit.room; n++) t.equal((await ask()).status, 200)
    const refused = await ask()
    t.equal(refused.status, limit.status)
    t.match(await refused.json(), { error: { message: /limit/ } })
  }
})

t.test(
  'an open session keeps its model: a limit without room for its next response refuses or lets it pass',
  async t => {
    for (const [onLimit, type] of [
      ['refuse', 'error'],
      ['notify', 'response.done'],
      [`use:${spare('demo-realtime')}`, 'error'],
    ]) {
      const args = { project, name: 'talk', limit: '0.000001', onLimit }
      const { id, key } = await command<Made>('keys.create', args)
      const client = new RealtimeClient(gateway, '?model=demo-realtime', { key })
      await client.opened()
      client.send({ type: 'response.create' })
      const told = await client.until('response.done', 'error')
      t.equal(told.type, type, JSON.stringify(told))
      if (type === 'error') t.match(told.error.message, /usage limit/)
      await client.end()
      const lines = gateway.stderr().split('\n')
      const passed = lines.filter(line => line.includes(id) && line.includes('spending limit passed'))
      t.equal(passed.length, type === 'error' ? 0 : 1)
    }
  },
)

t.test('the log names the requested and the used model of each of them', async t => {
  await untilInFlight(gateway, 0)
  const books = openBooks(t, gateway)
  const rows = books.prepare(
    'SELECT requested_model, model FROM requests WHERE key_id = ? AND status < 400 ORDER BY at',
  )
  for (const { name, keyId, used, model } of cases) {
    // A video has its row once it is made, and a session once its last response is settled.
    let found = rows.all(keyId) as { requested_model: string; model: string }[]
    for (let n = 0; n < 500 && found.length < used.length; n++) {
      await new Promise(resolve => setTimeout(resolve, 20))
      found = rows.all(keyId) as typeof found
    }
    t.strictSame(
      found.map(one => [one.requested_model, one.model]),
      used.map(one => [model, one]),
      name,
    )
  }
})

t.test('the books are sound', async t => {
  await untilInFlight(gateway, 0)
  t.strictSame(await command('usage.check'), { differences: [] })
})
