/** What one tenant can learn of another, reach through us, or spend: nothing, nothing, and no more than it has. */
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { commands } from '../../src/admin/commands/index.ts'
import { endpoints } from '../../src/endpoints/index.ts'
import { groupsOf, openBooks } from '../helpers/books.ts'
import { isErrorBody } from '../helpers/invariants.ts'
import { raw } from '../helpers/raw.ts'
import { readEvents, textOf } from '../helpers/sse.ts'
import { plainGateway } from './plain.ts'

type Tree = Record<string, unknown>

const { upstream, gateway } = await plainGateway()
const books = openBooks(t, gateway, { writable: true })

interface Tenant {
  org: string
  project: string
  keyId: string
  key: string
}

/** Tenants as the accounts' commands will make them; the gateway has not seen their keys before. */
function organization(name: string, account: 'open' | 'prepaid' = 'open', balance = 0): string {
  const id = `org-${name}`
  books.prepare('INSERT INTO organizations (id, name, account, created_at) VALUES (?, ?, ?, 0)').run(id, name, account)
  if (balance > 0) {
    books
      .prepare("INSERT INTO ledger (org_id, request_id, kind, amount, created_at) VALUES (?, ?, 'credit', ?, 0)")
      .run(id, `top-up-${name}`, balance)
    books.prepare('UPDATE balances SET balance = ? WHERE org_id = ?').run(balance, id)
  }
  return id
}
function tenant(org: string, name: string, cacheTtlMs: number | null = null): Tenant {
  const [project, keyId, key] = [`project-${name}`, `key-${name}`, `mgw_${randomUUID()}`]
  books
    .prepare('INSERT INTO projects (id, org_id, name, cache_ttl_ms, created_at) VALUES (?, ?, ?, ?, 0)')
    .run(project, org, name, cacheTtlMs)
  books
    .prepare(
      "INSERT INTO keys (id, project_id, name, kind, hash, preview, created_at) VALUES (?, ?, ?, 'key', ?, '', 0)",
    )
    .run(keyId, project, `label-${name}`, sha256(key))
  return { org, project, keyId, key }
}
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const as = ({ key }: Tenant, headers: Record<string, string> = {}) => ({ authorization: `Bearer ${key}`, ...headers })

const group = groupsOf(t, {
  gateway,
  upstream,
  books,
  after: t => {
    const wrong = books.prepare(`
      SELECT org_id, balance, held, used FROM balances
      WHERE balance <> (
        SELECT coalesce(sum(amount), 0) FROM ledger WHERE ledger.org_id = balances.org_id AND account = 'credits'
      )
      OR used <> (SELECT coalesce(-sum(amount), 0) FROM ledger WHERE ledger.org_id = balances.org_id AND kind = 'charge')
      OR held <> 0`)
    t.strictSame(wrong.all(), [], 'INV-3: every balance is the sum of its entries, and nothing is held')
  },
})

const unknown = `mgw_${'A'.repeat(43)}`
/** Header lines, and the status where it is not 401: that of what is not even HTTP. */
const wrongKeys: [says: string, header: string, status?: number][] = [
  ['an unknown key', `Authorization: Bearer ${unknown}`],
  ['an unknown key as x-api-key', `x-api-key: ${unknown}`],
  ['a key that lacks its last character', `Authorization: Bearer ${gateway.key.slice(0, -1)}`],
  ['a key in other letters', `Authorization: Bearer ${gateway.key.toUpperCase()}`],
  ['the digest of a key', `Authorization: Bearer ${sha256(gateway.key)}`],
  ['a key of 10 KB', `Authorization: Bearer ${'A'.repeat(10_240)}`],
  ['quotes', `Authorization: Bearer '"\``],
  ['a piece of SQL', `Authorization: Bearer ' OR '1'='1`],
  ['a piece of SQL as x-api-key', `x-api-key: ' OR '1'='1' --`],
  ['a statement', `Authorization: Bearer x'; DROP TABLE keys; --`],
  ['an escaped NUL', `Authorization: Bearer ${gateway.key}%00`],
  ['letters of other scripts', 'Authorization: Bearer ключ-鍵-🔑'],
  ['a NUL', `Authorization: Bearer ${gateway.key}\0`, 400],
]
const noKeys: [says: string, header?: string][] = [
  ['no header'],
  ['a scheme alone', 'Authorization: Bearer'],
  ['a scheme and spaces', 'Authorization: Bearer  '],
  ['another scheme', 'Authorization: Basic x'],
  ['an empty x-api-key', 'x-api-key: '],
]

group('AT-01 a request without a valid key gets 401, which does not tell what is wrong with the key', async t => {
  const paths = { chat: 'POST /v1/chat/completions', key: 'GET /v1/key' }
  const ask = (request: string, header?: string) =>
    raw(
      gateway.port,
      `${[`${request} HTTP/1.1`, 'Host: gateway', header, 'Content-Length: 0'].filter(line => line !== undefined).join('\r\n')}\r\n\r\n`,
      { responses: 1 },
    )
  for (const cases of [noKeys, wrongKeys] as (typeof wrongKeys)[]) {
    const bodies = new Set<string>()
    for (const [says, header, status = 401] of cases) {
      await t.test(says, async t => {
        for (const request of Object.values(paths)) {
          const result = await ask(request, header)
          t.equal(result.status, status)
          const body = JSON.parse(result.body) as Tree
          t.ok(isErrorBody(body))
          if (status !== 401) continue
          t.match(body, { error: { type: 'invalid_request_error', code: 'invalid_api_key' } })
          t.match(result.headers['www-authenticate'], /^Bearer\b/)
          bodies.add(result.body)
        }
      })
    }
    t.equal(bodies.size, 1, 'one body for all of them')
  }
  t.equal((await gateway.get('/v1/key')).status, 200, 'the keys are still there')
  t.equal((await upstream.record()).length, 0)
})

t.test('AT-01 no statement contains text of a request', async t => {
  const stores = fileURLToPath(new URL('../../src/stores', import.meta.url))
  const files = readdirSync(stores, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.ts'))
  let statements = 0
  for (const file of files) {
    const source = readFileSync(join(stores, file), 'utf8')
    for (const [, text] of source.matchAll(/\b(?:prepare(?:<.*?>)?|exec)\(\s*(`[^`]*`|[^`]*?\))/gs)) {
      statements++
      t.notMatch(text, /['"] \+|\+ ['"]/, `${file} joins no strings to a statement`)
      for (const [, name] of text!.matchAll(/\$\{(\w+)/g)) {
        t.match(
          source,
          new RegExp(`\\bconst ${name}\\b|^import \\{[^}]*\\b${name}\\b`, 'm'),
          `${file}: "${name}" in a statement is a constant of the file`,
        )
      }
    }
  }
  t.ok(statements > 20, `${statements} statements were read`)
})

group('AT-06 no route shows a tenant anything of another one', async t => {
  const [a, b] = [tenant(organization('matrix-a'), 'matrix-a'), tenant(organization('matrix-b'), 'matrix-b')]
  const secret = `canary ${randomUUID()}`
  const theirs = await gateway.chat(secret, as(b, { 'x-request-id': 'request-of-b' }))
  const { metadata } = (await theirs.json()) as { metadata: { log_id: string } }
  const ids = { organization_id: b.org, org_id: b.org, project_id: b.project, key_id: b.keyId, log_id: metadata.log_id }
  const names = Object.fromEntries(Object.entries(ids).map(([name, id]) => [`x-${name.replace('_', '-')}`, id]))
  const asked = { model: 'test', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }
  const said = [{ parts: [{ text: 'Hi' }] }]
  const body = { ...asked, input: 'Hi', customer: 'Hi', user: b.keyId, metadata: ids, ...ids }

  /** Each wire has its own name for what it is sent. */
  const bodyFor = (path: string): object => {
    if (path === '/mcp') return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get-account' } }
    if (path.endsWith('/language-model')) return { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] }
    return {
      ...body,
      ...(path === '/v1/completions' && { prompt: 'Hi' }),
      // The answer repeats these two of its own request.
      ...(path === '/v1/responses' && { metadata: {}, user: 'Hi' }),
      ...(path.includes(':') && { contents: said }),
    }
  }
  const headers = as(a, { ...names, 'ai-language-model-id': 'test', accept: 'application/json, text/event-stream' })

  // Every route there is.
  for (const { method, path, operation, upgrade } of endpoints) {
    const takesChat = !path.startsWith('/oauth/') && (operation === undefined || operation.name === 'chat')
    await t.test(`${method} ${path}`, async t => {
      const target = `${path.replace(/\{.*?\}/, 'test')}?${new URLSearchParams(ids)}`
      const response =
        method === 'POST'
          ? await gateway.post(target, bodyFor(path), headers)
          : await fetch(`${gateway.url}${target}`, { method, headers })
      // Refused alike for every tenant: other operations of a chat model, JSON where OAuth takes forms, other methods at
      // /mcp, and requests that are no WebSocket.
      const alike = [...(takesChat ? [] : [400]), ...(path === '/mcp' ? [405] : []), ...(upgrade ? [426] : [])]
      t.ok(
        [200, 204, 404, ...alike].includes(response.status),
        `it answers ${response.status}, which does not tell that there is more`,
      )
      const answer = JSON.stringify([...response.headers]) + (await response.text())
      for (const [what, id] of Object.entries({ ...ids, key: b.key, label: 'label-matrix-b', secret })) {
        t.notOk(answer.includes(id), `nothing of the other's ${what}`)
      }
    })
  }
  const own = await gateway.get('/v1/key', as(a))
  t.equal(((await own.json()) as { data: { label: string } }).data.label, 'label-matrix-a')
  const remaining = (response: Response) => Number(response.headers.get('ratelimit-remaining'))
  t.equal(
    remaining(await gateway.chat('Hi', as(b))),
    remaining(theirs) - 1,
    "one tenant's requests do not count for the other",
  )
  for (const path of ['/metrics', '/config', '/commands/keys.list']) {
    t.equal((await gateway.get(path, as(a))).status, 404, `${path} is not on this port`)
  }
  t.equal((await fetch(`${gateway.adminUrl}/config`, { headers: as(a) })).status, 401, 'a key is no admin token')
})

group('AT-06 no command that is asked about one tenant tells anything of another', async t => {
  const command = async (name: string, args: object) => {
    const response = await gateway.admin('POST', `/commands/${name}`, args)
    return { status: response.status, text: await response.text() }
  }
  const [a, b] = await Promise.all(
    ['commands-a', 'commands-b'].map(async name => {
      const made = tenant(organization(name), name)
      await command('members.add', { organization: made.org, email: `dev@${name}.example`, role: 'developer' })
      await command('credits.add', {
        organization: made.org,
        amount: '5',
        reference: `paid by ${name}`.replaceAll(' ', '-'),
      })
      await command('credits.discount', { organization: made.org, model: 'test', percent: '1' })
      await command('plans.set', { organization: made.org, plan: 'lite', overflow: 'on' })
      t.equal((await gateway.chat(name, as(made, { 'x-source': `app-of-${name}` }))).status, 200)
      return made
    }),
  )
  const readers = /\.(list|show|entries|discounts)$|^usage$|^audit$/
  const scopes = { organization: a!.org, project: a!.project, key: a!.keyId }
  let asked = 0
  for (const [name, { args }] of Object.entries(commands)) {
    if (!readers.test(name)) continue
    const takes = Object.keys((args.json.properties ?? {}) as object)
    for (const [scope, id] of Object.entries(scopes).filter(([scope]) => takes.includes(scope))) {
      const { status, text } = await command(name, { [scope]: id, ...(name === 'usage' && { groupBy: 'app' }) })
      t.equal(status, 200, `${name} ${scope}`)
      t.notMatch(text, 'commands-b', `${name} by ${scope}`)
      asked++
    }
  }
  t.ok(asked >= 10, `${asked} ways to ask`)
  const none = { totals: { requests: 0, cost: '0' } }
  t.match(JSON.parse((await command('usage', { organization: a!.org, key: b!.keyId })).text), none)
  t.match(JSON.parse((await command('usage', { organization: a!.org, project: b!.project })).text), none)
  for (const [name, args] of [
    ['members.update', { organization: a!.org, member: 'dev@commands-b.example', role: 'admin' }],
    ['members.update', { organization: a!.org, member: 'dev@commands-a.example', projects: [b!.project] }],
    ['members.remove', { organization: a!.org, member: 'dev@commands-b.example' }],
    ['keys.create', { project: a!.project, createdBy: 'dev@commands-b.example' }],
    ['iam.add', { organization: a!.org, member: 'dev@commands-b.example', type: 'deny_models', models: ['x'] }],
    ['iam.list', { organization: a!.org, member: 'dev@commands-b.example' }],
  ] as const) {
    t.equal((await command(name, args)).status, 404, `${name} with the other's identifiers`)
  }
})

group('AT-11 a cached answer is replayed to its own project only', async t => {
  const [orgA, orgB] = [organization('cache-a'), organization('cache-b')]
  const [a1, a2, b] = [
    tenant(orgA, 'cache-a1', 60_000),
    tenant(orgA, 'cache-a2', 60_000),
    tenant(orgB, 'cache-b', 60_000),
  ]
  interface Answer {
    choices: { message: { content: string } }[]
    usage: { cost: number }
    metadata: { request_id: string; log_id: string; cached?: boolean; organization_id: string; project_id: string }
  }
  const ask = async (tenant: Tenant) => {
    const response = await gateway.chat('What do you keep?', as(tenant))
    t.equal(response.status, 200)
    return { cache: response.headers.get('x-gateway-cache'), answer: (await response.json()) as Answer }
  }
  const firsts = []
  for (const tenant of [a1, a2, b]) {
    await upstream.script('a', [{ text: `For ${tenant.project} only.` }])
    const first = await ask(tenant)
    t.equal(first.cache, 'MISS')
    t.equal(first.answer.choices[0]?.message.content, `For ${tenant.project} only.`)
    t.notOk(first.answer.metadata.cached)
    firsts.push(first.answer)
  }
  t.equal((await upstream.record()).length, 3)

  for (const [index, tenant] of [a1, a2, b].entries()) {
    const { cache, answer } = await ask(tenant)
    const first = firsts[index]!
    t.equal(cache, 'HIT')
    t.strictSame(answer.choices, first.choices)
    t.match(answer, {
      usage: { cost: 0 },
      metadata: { cached: true, organization_id: tenant.org, project_id: tenant.project },
    })
    t.not(answer.metadata.request_id, first.metadata.request_id)
    t.not(answer.metadata.log_id, first.metadata.log_id)

    const streamed = await readEvents(
      await gateway.chat(
        { model: 'test', stream: true, messages: [{ role: 'user', content: 'What do you keep?' }] },
        as(tenant),
      ),
    )
    t.equal(textOf(streamed.data), `For ${tenant.project} only.`)
    t.match(streamed.data.at(-1), { usage: { cost: 0 }, metadata: { cached: true } })
    const charges = books
      .prepare(
        'SELECT request_id FROM ledger WHERE org_id = ? AND request_id IN (SELECT id FROM requests WHERE key_id = ?)',
      )
      .pluck()
    t.strictSame(charges.all(tenant.org, tenant.keyId), [first.metadata.log_id], 'only the first answer was charged')
  }
  t.equal((await upstream.record()).length, 3, 'no replay reached the provider')
})

/** Hosts that lead to this machine or its network, in every spelling that a URL parser takes. */
const insideHosts =
  `127.0.0.1 127.1 127.0.1 2130706433 0x7f.1 0x7f000001 0177.0.0.1 017700000001 127.000.000.001 0.0.0.0 0
  １２７.０.０.１ ①②⑦.⓪.⓪.① 127。0。0。1 127.0.0.1. localhost localhost. LOCALHOST api.localhost %31%32%37.0.0.1 [::1] [::]
  [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::] [fe80::1] [fe80::1%25eth0]
  [fd00:ec2::254] [fc00::1] [ff02::1] 100.64.0.1 10.0.0.1 172.16.0.1 192.168.0.1 169.254.169.254 224.0.0.1 255.255.255.255
  metadata.google.internal printer.local router.home.arpa intranet 127.0.0.1.nip.io 7f000001.nip.io
  127-0-0-1.sslip.io lvh.me app.localtest.me`.split(/\s+/)

group('SI-01 an address inside is refused in every spelling, and nobody connects to it', async t => {
  let connections = 0
  const canary = createServer(socket => {
    connections++
    socket.destroy()
  }).listen(0, '127.0.0.1')
  await once(canary, 'listening')
  t.teardown(() => canary.close())
  const { port } = canary.address() as { port: number }
  // Of what the interface will fetch, chat images are there; image edits, callbacks and video contents will follow.
  const ask = (url: string) =>
    gateway.chat({ model: 'test', messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] })
  const urls = insideHosts.flatMap(host => [`http://${host}:${port}/x.png`, `https://user:pass@${host}:${port}/`])
  urls.push(
    `http://public.example@127.0.0.1:${port}/`,
    `http://127.0.0.1:${port}\\@public.example/`,
    `http:127.0.0.1:${port}/`,
  )
  urls.push(
    `//127.0.0.1:${port}/`,
    'file:///etc/passwd',
    `gopher://127.0.0.1:${port}/`,
    `ftp://127.0.0.1:${port}/`,
    ` \thttp://127.0.0.1:${port}/`,
  )
  urls.push('https://user:pass@images.example/', 'blob:http://127.0.0.1/', `http://images.example/${'x'.repeat(8192)}`)
  for (const url of urls) {
    const response = await ask(url)
    const body = (await response.json()) as Tree
    t.match(
      body,
      { error: { code: 'url_not_allowed', param: 'messages[0].content[0].image_url.url' } },
      url.slice(0, 60),
    )
    t.equal(response.status, 400)
    t.ok(isErrorBody(body))
  }
  t.equal((await upstream.record()).length, 0)
  const allowed = ['https://images.example/x.png', 'http://93.184.216.34/x.png', 'data:image/png;base64,iVBORw0KGgo=']
  for (const url of allowed) t.equal((await ask(url)).status, 200, `${url} is handed on`)
  t.equal((await upstream.record()).length, allowed.length)
  t.equal(connections, 0)
})

group('CC-01 two hundred requests at once spend a balance for fifty to its last unit, and no further', async t => {
  const [paid, asked] = [50, 200]
  const content = 'What does this cost?'
  const usage = { prompt: Math.ceil(content.length / 4), completion: 10 }
  const reserve = usage.prompt * 1000 + usage.completion * 2000
  const org = organization('spender', 'prepaid', paid * reserve)
  const spender = tenant(org, 'spender')
  await upstream.script('a', [{ hold: 0, usage }])
  const request = { model: 'test', max_tokens: usage.completion, messages: [{ role: 'user', content }] }
  const answers = Array.from({ length: asked }, () => gateway.chat(request, as(spender)))
  await upstream.record('a', { requests: paid })
  const balance = books.prepare('SELECT balance, held, used FROM balances WHERE org_id = ?')
  let refused = 0
  const refusals = new Promise<void>(resolve => {
    for (const answer of answers) answer.then(({ status }) => status === 402 && ++refused === asked - paid && resolve())
  })
  await Promise.race([refusals, Promise.all(answers)])
  t.match(balance.get(org), { balance: paid * reserve, held: paid * reserve, used: 0 })
  await upstream.release('a')
  const statuses = (await Promise.all(answers)).map(({ status }) => status)
  t.equal(statuses.filter(status => status === 200).length, paid)
  t.equal(statuses.filter(status => status === 402).length, asked - paid)
  for (const answer of answers) await (await answer).text()
  t.equal((await upstream.record('a')).length, paid)
  t.strictSame(balance.get(org), { balance: 0, held: 0, used: paid * reserve })
  const charged = books.prepare(
    "SELECT count(*) AS charges, count(DISTINCT request_id) AS requests FROM ledger WHERE org_id = ? AND kind = 'charge'",
  )
  t.strictSame(charged.get(org), { charges: paid, requests: paid })
  t.equal((await gateway.chat(request, as(spender))).status, 402, 'and the next is refused too')
})
