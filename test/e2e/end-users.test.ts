/** End users and tags, from clients to the request log and the sums (docs/end-users-and-tags.md). */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { startUpstream } from '../helpers/upstream.ts'

type Tree = Record<string, unknown>

const page = readFileSync('docs/end-users-and-tags.md', 'utf8')
const printed = parse(/```yaml\n(end_users:[\s\S]*?)```/.exec(page)![1]!) as Tree
const upstream = await startUpstream(t, { key: upstreamSecret })
const providers = { one: { base_url: upstream.url('one'), models: [testMapping] } }
const gateway = await startGateway(t, { providers })
const command = commandsOf(gateway)
const messages = [{ role: 'user', content: 'Hi' }]

interface Row {
  readonly id: string
  readonly end_user: string | null
  readonly tags: Readonly<Record<string, string>>
  readonly status: number
}
const rows = async (filter: object = {}): Promise<readonly Row[]> =>
  (await command<{ rows: readonly Row[] }>('requests.list', filter)).rows

const tags = { 'x-gateway-tags': 'team=blue,feature=chat' }
const metadata = { team: 'red', run: 7, user_id: 'ann' }
const all = { team: 'blue', feature: 'chat', run: '7' }
const clients: readonly (readonly [path: string, body: Tree, endUser: string | null, tags: Tree])[] = [
  ['/v1/chat/completions', { model: 'test', messages, user: 'bob', metadata }, 'bob', all],
  ['/v1/chat/completions', { model: 'test', messages, user: 'bob', stream: true }, 'bob', { ...all, run: undefined }],
  ['/v1/completions', { model: 'test', prompt: 'Hi', user: 'bob' }, 'bob', { ...all, run: undefined }],
  ['/v1/responses', { model: 'test', input: 'Hi', safety_identifier: 'cy', metadata }, 'cy', all],
  [
    '/v1/messages',
    { model: 'test', messages, max_tokens: 9, metadata: { user_id: 'ann' } },
    'ann',
    { ...all, run: undefined },
  ],
  [
    '/v1beta/models/test:generateContent',
    { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
    null,
    { ...all, run: undefined },
  ],
  [
    '/v3/ai/language-model',
    {
      prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
      providerOptions: { gateway: { user: 'dan', metadata } },
    },
    'dan',
    all,
  ],
]
for (const [path, body, endUser, expected] of clients) {
  t.test(`${path}${body.stream ? ', streamed,' : ''} names its end user and its tags`, async t => {
    await upstream.reset()
    const answer = await gateway.post(path, body, { ...tags, 'ai-language-model-id': 'test' })
    t.equal(answer.status, 200, await answer.text())
    const [row] = await rows()
    t.equal(row!.end_user, endUser)
    t.strictSame(row!.tags, JSON.parse(JSON.stringify(expected)))
    const [sent] = await upstream.record('one')
    t.notOk(JSON.stringify(sent!.headers).includes('feature=chat'), 'no provider gets the header')
  })
}

t.test('a refused request is recorded with its labels too', async t => {
  const missing = await gateway.chat({ model: 'nothing', messages, user: 'eve' }, tags)
  t.equal(missing.status, 404)
  t.match(await rows({ endUser: 'eve' }), [{ status: 404, tags: { team: 'blue' } }])
})

t.test('labels beyond a bound are refused with 400 by every client wire', async t => {
  for (const [path, body] of clients) {
    const many = Array.from({ length: 17 }, (_, n) => `k${n}=v`).join()
    for (const [header, said] of [
      ['blue', 'is not a tag'],
      [many, 'a request may have at most 16 tags'],
      [`k=${'v'.repeat(513)}`, 'may have at most 512 characters'],
    ] as const) {
      const refused = await gateway.post(path, body, { 'x-gateway-tags': header })
      t.equal(refused.status, 400, path)
      t.match(await refused.text(), said)
    }
  }
})

t.test('the log and the sums are read by end user and by tag', async t => {
  const listed = await rows({ endUser: 'ann', tag: 'team=blue' })
  t.match(listed, [{ end_user: 'ann', status: 200 }])
  const shown = await command<Tree & { attempts: Tree[] }>('requests.show', { id: listed[0]!.id })
  t.match(shown, { end_user: 'ann', tags: { feature: 'chat' }, attempts: [{ provider: 'one', connect_ms: Number }] })
  t.strictSame(await rows({ tag: 'team=green' }), [])
  const groups = async (groupBy: string) => {
    const { groups } = await command<{ groups: { id: string; requests: number }[] }>('usage', { groupBy })
    return Object.fromEntries(groups.map(({ id, requests }) => [id, requests]))
  }
  t.match(await groups('end_user'), { bob: 3, ann: 1, cy: 1, dan: 1, eve: 1 })
  t.match(await groups('tag:run'), { 7: 3 })
  t.match(await groups('tag:team'), { blue: 8 })
  await t.rejects(groups('team'), /one of provider/)
})

t.test("a key of an end user's session names its own end user", async t => {
  const begun = await gateway.post('/v1/sessions', { customer: 'fay' })
  const { sessionToken } = (await begun.json()) as { sessionToken: string }
  t.equal(
    (await gateway.chat({ model: 'test', messages, user: 'bob' }, { authorization: `Bearer ${sessionToken}` })).status,
    200,
  )
  t.match(await rows({ endUser: 'fay' }), [{ status: 200 }])
})

t.test('the configuration of the page names end users by its header, then by its field', async t => {
  const own = await startGateway(t, { providers, config: printed })
  const ask = commandsOf(own)
  const send = async (headers: Record<string, string>, body: Tree) => {
    const answer = await own.chat({ model: 'test', messages, user: 'bob', ...body }, headers)
    const { rows } = await ask<{ rows: Row[] }>('requests.list', { limit: 1 })
    return [answer.status, answer.status === 200 ? rows[0]!.end_user : await answer.text()]
  }
  const customer = { metadata: { customer: 'acme' } }
  t.strictSame(await send({ 'X-OpenWebUI-User-Id': 'ann' }, customer), [200, 'ann'])
  t.strictSame(await send({}, customer), [200, 'acme'])
  t.strictSame(await send({}, {}), [200, null])
  t.match(await send({ 'x-openwebui-user-id': 'x'.repeat(257) }, {}), [400, /at most 256 characters/])
})

t.test('what each end user may spend is held and charged, whatever key and client it comes by', async t => {
  const { end_users } = parse(/```yaml\n(end_users:\n {2}default_limit[\s\S]*?)```/.exec(page)![1]!) as {
    end_users: Tree
  }
  // A request holds 9,000,000 nano-USD and more, and costs 20,000.
  const limit = { amount: '0.00005', period: 'day' }
  const own = await startGateway(t, { providers, config: { end_users: { ...end_users, default_limit: limit } } })
  const ask = commandsOf(own)
  const send = (user: string | undefined, headers: Record<string, string> = {}) =>
    own.chat({ model: 'test', messages, max_tokens: 5, ...(user && { user }) }, headers)
  await upstream.reset()
  const { key } = await ask<{ key: string }>('keys.create', { project: 'default', name: 'second' })
  const second = { authorization: `Bearer ${key}` }
  const statuses: number[] = []
  for (let n = 0; n < 12; n++) statuses.push((await send('ann', n % 2 ? second : {})).status)
  const served = statuses.filter(status => status === 200).length
  t.ok(served > 0 && served < 12, statuses.join())
  t.strictSame(statuses, [...statuses].sort(), 'none is served behind a refusal')
  const refused = await send('ann')
  t.equal(refused.status, 402)
  t.match(await refused.text(), /End user \\"ann\\" has reached their period spend limit. It resets at 20/)
  t.equal((await send('bob')).status, 200, 'another end user has its own')
  t.equal((await send(undefined)).status, 200, 'a request without an end user has none')
  const many = await Promise.all(Array.from({ length: 40 }, () => send('cy')))
  t.equal(many.filter(({ status }) => status === 200).length <= served, true, 'at a time, they are no more')
  const { groups } = await ask<{ groups: { id: string; cost: string }[] }>('usage', { groupBy: 'end_user' })
  for (const { id, cost } of groups) t.ok(id === 'unknown' || Number(cost) <= 0.00005, `${id} spent ${cost}`)
  t.strictSame(await ask('usage.check'), { differences: [] })
  await own.writeFile('config/gateway.yaml', readFileSync(own.configPath, 'utf8').replace('0.00005', '1.5'))
  await own.admin('POST', '/reload')
  t.equal((await send('ann')).status, 200, 'a raised limit holds at once')
})

t.test('the books agree', () => checkInvariants(t, gateway))
