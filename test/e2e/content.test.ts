/** Content of requests: kept where a project says so, for its time, sealed (docs/requests.md). */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { startUpstream } from '../helpers/upstream.ts'

interface Shown {
  readonly content?: {
    readonly request: Record<string, unknown>
    readonly answer: unknown
    readonly cut: boolean
  } | null
}

const upstream = await startUpstream(t, { key: upstreamSecret })
const gateway = await startGateway(t, { providers: { one: { base_url: upstream.url('one'), models: [testMapping] } } })
const command = commandsOf(gateway)
const said = (text: string) => [{ role: 'user', content: text }]
const ask = async (path: string, body: object) => {
  const answer = await gateway.post(path, { model: 'test', ...body })
  await answer.text()
  const { rows } = await command<{ rows: { id: string }[] }>('requests.list', { limit: 1 })
  return rows[0]!.id
}
const show = (id: string, content = true) => command<Shown>('requests.show', { id, content })

t.test('no content is kept unless the project says so', async t => {
  const id = await ask('/v1/chat/completions', { messages: said('Tell nobody') })
  t.equal((await show(id)).content, null)
  t.equal((await show(id, false)).content, undefined)
})

t.test('questions and answers are kept, whole and streamed, and sealed', async t => {
  await command('projects.update', { project: 'default', content: '7d' })
  await upstream.reset()
  const text = 'A strange answer'
  for (const [path, body] of [
    ['/v1/chat/completions', { messages: said('A strange question') }],
    ['/v1/chat/completions', { messages: said('A strange question'), stream: true }],
    ['/v1/messages', { messages: said('A strange question'), max_tokens: 9 }],
    ['/v1/responses', { input: 'A strange question' }],
  ] as const) {
    await upstream.script('one', [{ text }])
    const { content } = await show(await ask(path, body))
    t.match(content, { request: body, answer: [{ type: 'text', choice: 0, text }], cut: false }, path)
  }
  const folder = dirname(join(dirname(gateway.configPath), '../data/gateway.db'))
  for (const name of readdirSync(folder)) {
    if (/\.db/.test(name)) t.notOk(readFileSync(join(folder, name)).includes('A strange'), name)
  }
})

t.test('long texts are cut, and secrets hidden', async t => {
  const long = 'x'.repeat(200_000)
  const id = await ask('/v1/chat/completions', { messages: said(long), api_key: 'mine' })
  const { content } = await show(id)
  t.equal(content!.cut, true)
  t.ok(JSON.stringify(content).length < 300_000)
  t.notOk(JSON.stringify(content).includes('mine'))
})

t.test('an organization without data retention keeps none, and what was kept is not shown', async t => {
  const id = await ask('/v1/chat/completions', { messages: said('Remember me') })
  t.not((await show(id)).content, null)
  const { organization } = (await command<{ organization: string }[]>('projects.list'))[0]!
  await command('compliance.set', { organization, noLogging: true })
  t.equal((await show(id)).content, null)
  await t.rejects(command('projects.update', { project: 'default', content: '1d' }), /zero data retention/)
  await command('compliance.set', { organization, noLogging: false })
  await command('projects.update', { project: 'default', content: 'off' })
  t.equal((await show(id)).content, null)
})
