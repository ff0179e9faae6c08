/** Keys whose models are patterns such as `demo/*`, at every endpoint that names a model, and in lists of models. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { gatewayctl } from '../helpers/gatewayctl.ts'
import { callTool } from '../helpers/mcp.ts'
import { modelEndpoints } from '../helpers/model-endpoints.ts'

type Tree = Record<string, unknown>
type Made = { readonly id: string; readonly key: string; readonly unknown?: string[] }

const file = (path: string) => parse(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')) as Tree
const demo = file('providers.d/demo.yaml')
const { models } = file('config/models.d/demo.yaml') as { models: { id: string }[] }
const gateway = await startGateway(t, { models, providers: { demo }, config: { jobs: { poll: '20ms' } } })
const command = commandsOf(gateway)
const keyFor = async (...models: string[]) => {
  const { key } = await command<Made>('keys.create', { project: 'default', models })
  return { authorization: `Bearer ${key}` }
}

const own = await keyFor('demo/*')
const other = await keyFor('openai/*', 'demo/gpt-*')
for (const [name, { model, ask, refusedAs }] of Object.entries(modelEndpoints(gateway))) {
  t.test(`${name}: a pattern allows the models of a provider, and no others`, async t => {
    const answer = await ask(model, own)
    t.equal(answer.status, 200, JSON.stringify(answer.body)?.slice(0, 300))
    // Moderations ask for no rule of models.
    if (name === 'moderations') return
    const refused = await ask(model, other)
    t.equal(refused.status, 403, JSON.stringify(refused.body)?.slice(0, 300))
    const said = JSON.stringify(refused.body)
    t.match(said, refusedAs === 'tool' ? /not (?:in the allowed models list|available|allowed)/ : /allowed models list/)
  })
}

t.test('lists name the allowed models alone', async t => {
  const some = await keyFor('demo-*e', 'demo/demo-r*')
  const expected = models.map(({ id }) => id).filter(id => /^demo-(?:.*e|r.*)$/.test(id))
  const { data } = (await (await gateway.get('/v1/models', some)).json()) as { data: { id: string }[] }
  t.strictSame(data.map(({ id }) => id).sort(), expected.sort())
  const google = (await (await gateway.get('/v1beta/models', some)).json()) as { models: { name: string }[] }
  t.ok(google.models.every(({ name }) => expected.includes(name.replace('models/', ''))))
  const told = await callTool(gateway, 'list-models', { limit: 1000 }, some)
  const listed = (told.structuredContent as { models: { id: string }[] }).models.map(({ id }) => id)
  t.strictSame(listed.sort(), expected)
  t.match(await (await gateway.get('/v1/models', other)).json(), { data: { length: 0 } })
  const all = await keyFor('*')
  const every = (await (await gateway.get('/v1/models', all)).json()) as typeof google & { data: object[] }
  t.equal(every.data.length, models.length)
})

t.test('the command warns of names and patterns that no model has', async t => {
  const { unknown } = await command<Made>('keys.create', { project: 'default', models: ['demo/*', 'dem/*', 'demp'] })
  t.strictSame(unknown, ['dem/*', 'demp'])
  const shell = await gatewayctl(gateway.dir, 'keys', 'create', '--project', 'default', '--models', 'demo-e*,opnai/*')
  t.match(shell, { code: 0, err: /no opnai\/\* yet/ })
})

t.test('a denying pattern wins, and sessions narrow their key by patterns', async t => {
  const { id, key } = await command<Made>('keys.create', { project: 'default', models: ['demo/*'] })
  await command('iam.add', { key: id, type: 'deny_models', models: ['*-embed'] })
  const as = { authorization: `Bearer ${key}` }
  const embed = (headers: Record<string, string>) =>
    gateway.post('/v1/embeddings', { model: 'demo-embed', input: 'a' }, headers)
  t.equal((await embed(as)).status, 403)
  const begun = await gateway.post('/v1/sessions', { customer: 'ada', scope: { models: ['demo/demo-r*'] } }, own)
  const { sessionToken } = (await begun.json()) as { sessionToken: string }
  const within = { authorization: `Bearer ${sessionToken}` }
  t.equal((await embed(within)).status, 403)
  const ranked = await gateway.post('/v1/rerank', { model: 'demo-rerank', query: 'q', documents: ['a'] }, within)
  t.equal(ranked.status, 200)
})
