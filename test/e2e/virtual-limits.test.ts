/** Limits and cache settings of virtual models (docs/virtual-models.md#limits-and-cache). */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { startUpstream } from '../helpers/upstream.ts'

const page = readFileSync('docs/virtual-models.md', 'utf8').split('## Limits and cache')[1]!
const [limits, routes] = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text]) => text!)
const upstream = await startUpstream(t, { key: upstreamSecret })
const gateway = await startGateway(t, {
  providers: {
    one: { base_url: upstream.url('one'), models: ['first', 'second'].map(model => ({ ...testMapping, model })) },
  },
  config: { catalog: { routes: './routes.d' }, ...(parse(limits!) as object) },
  files: {
    'config/routes.d/cached.yaml': routes!,
    'config/routes.d/more.yaml': JSON.stringify({
      virtual_models: [
        { id: 'outer', use: ['cached'] },
        { id: 'usual', use: ['first'] },
      ],
      rules: [{ match: { model: 'moved' }, use: 'cached' }],
    }),
  },
})
const command = commandsOf(gateway)
let tenants = 0
async function tenant(cached: boolean) {
  const name = `tenant-${++tenants}`
  const { id: organization } = await command<{ id: string }>('orgs.create', { name, account: 'open' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
  if (cached) await command('projects.update', { project, cache: 'on' })
  const { key } = await command<{ key: string }>('keys.create', { project, name: 'k' })
  let asked = 0
  /** A question that was not asked before. */
  const fresh = () => [{ role: 'user', content: `${name} asks ${++asked}` }]
  const ask = (model: string, messages: object[] = fresh(), more = {}) =>
    gateway.chat({ model, messages }, { authorization: `Bearer ${key}`, ...more })
  const isReplayed = async (model: string, more = {}) => {
    const messages = fresh()
    await (await ask(model, messages)).text()
    const again = await ask(model, messages, more)
    const { metadata } = (await again.json()) as { metadata: { cached?: boolean } }
    return metadata.cached === true
  }
  return { ask, isReplayed, organization, project }
}

t.test('the time of a virtual model counts before the time of its project', async t => {
  const without = await tenant(false)
  // The first of the three requests of this minute: a replay is none.
  t.equal(await without.isReplayed('cached'), true)
  t.equal(await without.isReplayed('usual'), false)
  t.equal(await without.isReplayed('first'), false)
  const other = await tenant(true)
  t.equal(await other.isReplayed('usual'), true)
  t.equal(await other.isReplayed('fresh'), false)
  await command('compliance.set', { organization: other.organization, noLogging: true })
})

t.test('an answer of the model that a limit uses is replayed to no one', async t => {
  const { ask, project } = await tenant(true)
  const metadataOf = async (answer: Promise<Response>) =>
    ((await (await answer).json()) as { metadata: object }).metadata
  const onLimit = 'use:second'
  for (const limit of [{ limit: '0.000001' }, { rpm: 1 }]) {
    const { key } = await command<{ key: string }>('keys.create', { project, name: 'limited', ...limit, onLimit })
    const limited = { authorization: `Bearer ${key}` }
    if (limit.rpm) await (await ask('first', undefined, limited)).text()
    const messages = [{ role: 'user', content: JSON.stringify(limit) }]
    t.match(await metadataOf(ask('first', messages, limited)), { used_model: 'second' })
    const other = await metadataOf(ask('first', messages))
    t.match(other, { used_model: 'first', cached: undefined })
    t.match(await metadataOf(ask('first', messages)), { used_model: 'first', cached: true })
  }
})

t.test('a limit of a virtual model counts all that it leads', async t => {
  const { ask } = await tenant(false)
  const statuses: number[] = []
  for (const model of ['outer', 'moved', 'cached']) statuses.push((await ask(model)).status)
  t.strictSame(statuses, [200, 200, 429])
  const refused = await ask('moved')
  t.equal(refused.status, 429)
  t.match(await refused.json(), { error: { message: /"cached"/ } })
  t.equal((await ask('first')).status, 200, 'its targets have no such limit')
  t.equal((await ask('fresh')).status, 200)
})
