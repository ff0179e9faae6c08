/** The analytics tools of `/mcp`: whose usage they show, by which rules, and that it is what `gatewayctl usage` says. */
import t from 'tap'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { callTool, rpc } from '../helpers/mcp.ts'
import { random } from '../helpers/random.ts'
import { runs } from '../helpers/runs.ts'
import { plainGateway } from './plain.ts'

type Tree = Record<string, unknown>

const { upstream, gateway } = await plainGateway()
const command = commandsOf(gateway)
let made = 0

async function tenant() {
  const { id: organization } = await command<{ id: string }>('orgs.create', { name: `analytics-${++made}` })
  await command('credits.add', { organization, amount: '1' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
  const keyOf = async (name: string, more: Tree = {}) => {
    const { id, key } = await command<{ id: string; key: string }>('keys.create', { project, name, ...more })
    return { id, as: { authorization: `Bearer ${key}` } }
  }
  return { organization, project, keyOf }
}

const ask = async (as: Record<string, string>, model = 'test', headers: Record<string, string> = {}) => {
  const body = { model, max_tokens: 5, messages: [{ role: 'user', content: 'Who pays?' }] }
  await (await gateway.chat(body, { ...as, ...headers })).text()
}
const read = async (as: Record<string, string>, tool: string, args: Tree = {}) => {
  const { structuredContent, content } = await callTool(gateway, tool, args, as)
  t.same(JSON.parse(content[0]?.text ?? ''), structuredContent, 'the text is the same object')
  return structuredContent as Tree & { totals: Tree; rows: Tree[]; series: Tree[] }
}

t.test('usage equals what the operator sees, by day, by hour and by every group', async t => {
  const { project, keyOf } = await tenant()
  const { as } = await keyOf('one')
  const other = await keyOf('two')
  await upstream.script('a', [{ usage: { prompt: 100, completion: 7, cached: 30, reasoning: 3 } }])
  await ask(as, 'test', { 'x-source': 'my-app' })
  await upstream.reset()
  // Its row is written soon after its answer, and before that of the next answer.
  await ask(other.as, 'none')
  await ask(as, 'cheap', { 'x-source': 'open-code' })
  await ask(other.as, 'cheap', { 'x-source': 'opencode' })

  const mcp = await read(as, 'get-usage')
  const { totals } = await command<{ totals: Tree }>('usage', { project })
  const { totals: shown } = mcp
  t.match(mcp, { scope: { type: 'project', userId: null }, timezone: 'UTC', currency: 'USD', granularity: 'day' })
  t.strictSame(
    [shown.requestCount, shown.errorCount, shown.inputTokens, shown.outputTokens, shown.cachedTokens],
    [totals.requests, totals.errors, totals.inputTokens, totals.outputTokens, totals.cachedTokens],
  )
  t.equal(shown.totalTokens, Number(totals.inputTokens) + Number(totals.outputTokens))
  t.strictSame(
    [shown.costUsd, shown.creditsCostUsd, shown.byokCostUsd, shown.dataStorageCostUsd],
    [totals.cost, totals.creditsCost, totals.byokCost, totals.storageCost].map(Number),
  )
  t.match(mcp.updatedAt, /^\d{4}-.*Z$/)
  t.match(mcp, { appUsageCoverage: { complete: true }, mostUsedProvider: { id: 'a', name: 'a' } })
  t.match(mcp, { mostUsedApp: { id: 'opencode', requestCount: 2 }, mostUsedModel: { id: 'cheap' } })
  const hours = await read(as, 'get-usage', { granularity: 'hour', from: mcp.to, to: mcp.to })
  t.match(
    hours.series.map(({ date }) => date),
    [/^\d{4}-\d\d-\d\dT\d\d:00:00Z$/],
  )

  for (const groupBy of ['provider', 'model', 'api_key']) {
    const { groups } = await command<{ groups: Tree[] }>('usage', { project, groupBy })
    const { rows } = await read(as, 'get-usage-breakdown', { group_by: groupBy, sort_by: 'cost' })
    t.strictSame(
      rows.map(({ id, requestCount, costUsd }) => [id, requestCount, costUsd]),
      groups.map(({ id, requests, cost }) => [id, requests, Number(cost)]),
      groupBy,
    )
  }
  const page = await read(as, 'get-usage-breakdown', { group_by: 'app', limit: 1, offset: 1 })
  t.match(page, { pagination: { limit: 1, offset: 1, hasMore: true }, coverage: { complete: true } })
  const keys = await read(as, 'get-usage-breakdown', { group_by: 'api_key' })
  t.strictSame(keys.rows.map(({ name }) => name).sort(), ['one', 'two'])
})

t.test('X5 developers see the keys that they made, ended ones too; no role sees another project', async t => {
  const { organization, project, keyOf } = await tenant()
  const email = `dev-${made}@example.com`
  const { id: member } = await command<{ id: string }>('members.add', {
    organization,
    email,
    role: 'developer',
    projects: 'all',
  })
  const [own, old, foreign] = [
    await keyOf('own', { createdBy: email }),
    await keyOf('old', { createdBy: email }),
    await keyOf('foreign'),
  ]
  for (const { as } of [own, old, foreign]) await ask(as)
  await command('keys.revoke', { id: old.id })
  t.match(await read(own.as, 'get-usage'), { scope: { type: 'member', userId: member }, totals: { requestCount: 2 } })
  const { rows } = await read(own.as, 'get-usage-breakdown', { group_by: 'api_key' })
  t.strictSame(rows.map(({ name }) => name).sort(), ['old', 'own'])
  t.match(await read(foreign.as, 'get-usage'), { scope: { type: 'project' }, totals: { requestCount: 3 } })

  const { id: second } = await command<{ id: string }>('projects.create', { organization, name: 'app' })
  const elsewhere = await command<{ key: string }>('keys.create', { project: second, name: 'k', createdBy: email })
  t.match(await read({ authorization: `Bearer ${elsewhere.key}` }, 'get-usage'), {
    totals: { requestCount: 0, costUsd: 0 },
    series: [],
    mostUsedProvider: null,
    mostUsedApp: null,
    updatedAt: null,
  })
  const account = await read(own.as, 'get-account')
  t.match(account, { user: { id: member, name: email }, role: 'developer', creditsBalanceUsd: null })
  t.match(account, { project: { id: project, name: 'web' }, apiKey: { id: own.id, name: 'own' } })
})

t.test('X6 names with markup or line breaks come back as they are, as JSON', async t => {
  const { keyOf } = await tenant()
  const name = '</script><b onclick="x">\n\u2028&amp;\u202e\\'
  const { as } = await keyOf(name)
  await ask(as, '<b>"model"</b>\\', { 'x-title': '<i>app</i>' })
  // With its row comes that of the refused one before it.
  await ask(as)
  const call = (tool: string, args: Tree = {}) => ({
    ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
    params: { name: tool, arguments: args },
  })
  const response = await rpc(gateway, call('get-account'), as)
  t.match(response.headers.get('content-type'), /^application\/json/)
  t.match(await response.json(), { result: { structuredContent: { apiKey: { name } } } })
  const { rows } = await read(as, 'get-usage-breakdown', { group_by: 'api_key' })
  t.strictSame(
    rows.map(row => row.name),
    [name],
  )
  const unknown = await rpc(gateway, call('<b>\n'), as)
  t.match(await unknown.json(), { error: { code: -32_602, message: 'Unknown tool: <b>\n' } })
  const page = await (await fetch(`${gateway.url}/mcp`, { headers: { ...as, accept: 'text/html' } })).text()
  t.notMatch(page, /onclick|<b /)
})

t.test('a key that is spent reads its analytics and cannot generate', async t => {
  const { organization, keyOf } = await tenant()
  const { as } = await keyOf('limited', { limit: '0.000001', limitPeriod: 'day' })
  const books = openBooks(t, gateway)
  const rows = () => books.prepare('SELECT count(*) FROM requests').pluck().get()
  const before = rows()
  const chat = { model: 'test', messages: [{ role: 'user', content: 'hi' }] }
  t.match(await callTool(gateway, 'chat', chat, as), { isError: true, content: [{ text: /^Error: 402 - / }] })
  const account = await read(as, 'get-account')
  t.match(account, {
    user: null,
    role: 'owner',
    organization: { id: organization, kind: 'standard' },
    apiKey: { usageLimitUsd: null, periodUsageLimitUsd: 0.000001, periodStartedAt: /T00:00:00\.000Z$/ },
    creditsBalanceUsd: 1,
  })
  t.notMatch(JSON.stringify(account), /mgw_/)
  await read(as, 'get-usage')
  t.ok(Number(rows()) - Number(before) <= 1, 'analytics leave no rows')
})

t.test(
  'after any history, costs equal those of the operator to the last nano-USD, for owners and for developers',
  async t => {
    const { organization, project, keyOf } = await tenant()
    const email = `dev-${made}@example.com`
    await command('members.add', { organization, email, role: 'developer', projects: 'all' })
    const keys = [await keyOf('a', { createdBy: email }), await keyOf('b', { createdBy: email }), await keyOf('c')]
    const seed = 20_261_124
    const chance = random(seed)
    const oneOf = <T>(list: readonly T[]): T => list[Math.floor(chance() * list.length)]!
    for (let left = runs(300); left > 0; left--) {
      const [prompt, completion, cached] = [
        Math.ceil(chance() * 999),
        Math.floor(chance() * 999),
        Math.floor(chance() * 99),
      ]
      await upstream.script('a', [{ usage: { prompt: prompt + cached, completion, cached } }])
      const source = oneOf(['', 'cursor', 'my-app', 'open-code'])
      await ask(oneOf(keys).as, oneOf(['test', 'cheap', 'premium', 'none']), source ? { 'x-source': source } : {})
    }
    await ask(keys[0]!.as)
    await upstream.reset()
    const nano = (usd: unknown) => Math.round(Number(usd) * 1e9)
    type Sums = Tree & { id: string }
    const shown = (sums: Tree) => [
      sums.requestCount,
      sums.errorCount,
      sums.totalTokens,
      nano(sums.costUsd),
      nano(sums.creditsCostUsd),
    ]
    const expected = (all: readonly Sums[]) => {
      const sum = (of: (one: Sums) => number) => all.reduce((total, one) => total + of(one), 0)
      return [
        sum(one => Number(one.requests)),
        sum(one => Number(one.errors)),
        sum(one => Number(one.inputTokens) + Number(one.outputTokens)),
        sum(one => nano(one.cost)),
        sum(one => nano(one.creditsCost)),
      ]
    }
    const { groups } = await command<{ groups: Sums[] }>('usage', { project, groupBy: 'api_key' })
    const developers = groups.filter(({ id }) => id !== keys[2]!.id)
    const rows: [says: string, as: Record<string, string>, sums: Sums[]][] = [
      ['an owner', keys[2]!.as, groups],
      ['a developer', keys[0]!.as, developers],
    ]
    for (const [says, as, sums] of rows) {
      t.strictSame(shown((await read(as, 'get-usage')).totals), expected(sums), says)
      for (const groupBy of ['provider', 'model', 'app', 'api_key']) {
        const { rows: parts } = await read(as, 'get-usage-breakdown', { group_by: groupBy, limit: 100 })
        const total = parts.map(shown).reduce((one, other) => one.map((count, at) => Number(count) + Number(other[at])))
        t.strictSame(total, expected(sums), `${says} by ${groupBy}, seed ${seed}`)
      }
    }
  },
)

t.test('periods that cannot be, and credentials of end users, are errors of the tool', async t => {
  const { keyOf } = await tenant()
  const { as } = await keyOf('k')
  const errorOf = async (tool: string, args: Tree, by = as) => {
    const { isError, content } = await callTool(gateway, tool, args, by)
    return isError ? content[0]?.text : undefined
  }
  const rows: [args: Tree, says: RegExp | undefined][] = [
    [{ from: '2026-02-30' }, /^Invalid arguments for get-usage: from must be a day of the calendar, got "2026-02-30"$/],
    [{ from: '2026-02-02', to: '2026-02-01' }, /from must not be after to/],
    [{ from: '2025-01-01', to: '2026-01-02' }, /at most 366 days/],
    [{ from: '2025-01-01', to: '2026-01-01' }, undefined],
    [{ from: '2026-01-01', to: '2026-02-01', granularity: 'hour' }, /at most 31 days/],
    [{ from: '2026-01-01', to: '2026-01-31', granularity: 'hour' }, undefined],
    [{ from: '1 Jan' }, /from must match pattern/],
    [{ to: '2999-01-01' }, undefined],
    [{ project: 'other' }, /is unknown; leave it out/],
  ]
  for (const [args, says] of rows) {
    const told = await errorOf('get-usage', args)
    if (says) t.match(told, says)
    else t.equal(told, undefined, JSON.stringify(args))
  }
  t.match(await errorOf('get-usage-breakdown', {}), /group_by is required/)
  t.match(await errorOf('get-usage-breakdown', { group_by: 'app', limit: 101 }), /limit must be <= 100/)
  const begun = await gateway.post('/v1/sessions', { customer: 'Ada' }, as)
  const { sessionToken } = (await begun.json()) as { sessionToken: string }
  const session = { authorization: `Bearer ${sessionToken}` }
  for (const tool of ['get-account', 'get-usage']) {
    t.equal(await errorOf(tool, {}, session), 'A valid, active user API key is required to read analytics.')
  }
})

t.test('the eight tools stand in one order, whose inputs refuse what they do not know', async t => {
  const { result } = (await (await rpc(gateway, { jsonrpc: '2.0', id: 1, method: 'tools/list' })).json()) as {
    result: { tools: (Tree & { inputSchema: Tree; annotations: Tree })[] }
  }
  t.strictSame(
    result.tools.map(({ name, annotations, outputSchema }) => [
      name,
      annotations.readOnlyHint,
      outputSchema !== undefined,
    ]),
    [
      ['get-account', true, true],
      ['get-usage', true, true],
      ['get-usage-breakdown', true, true],
      ['chat', false, false],
      ['generate-image', false, false],
      ['generate-nano-banana', false, false],
      ['list-models', true, true],
      ['list-image-models', true, true],
    ],
  )
  for (const { inputSchema } of result.tools) t.equal(inputSchema.additionalProperties, false)
  t.notMatch(JSON.stringify(result), /"\$ref"|"type":\[/)
})
