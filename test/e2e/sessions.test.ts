/** Sessions of end users: a key begins them, bounds them, pays for them, and ends them with itself. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { groupsOf, openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { plainGateway } from './plain.ts'

type Tree = Record<string, unknown>

const { upstream, gateway } = await plainGateway()

// 0.000023 USD, held and charged.
const usage = { prompt: 3, completion: 10 }
const request = { model: 'test', max_tokens: usage.completion, messages: [{ role: 'user', content: 'Who pays?' }] }
const PRICE = 0.000023
const times = (count: number) => (PRICE * count).toFixed(9)

const command = commandsOf(gateway)
let made = 0
async function tenant(key: object = {}) {
  const { id: org } = await command<{ id: string }>('orgs.create', { name: `sessions-${++made}` })
  await command('credits.add', { organization: org, amount: '1' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization: org, name: 'web' })
  const { id, key: secret } = await command<{ id: string; key: string }>('keys.create', { project, name: 'k', ...key })
  return { org, project, id, as: asKey(secret) }
}
const asKey = (key: string) => ({ authorization: `Bearer ${key}` })
type As = { as: Record<string, string> }

interface Session {
  id: string
  sessionToken: string
  customer: string
  scope: { models: string[] | null; maxSpend: string | null }
  expiresAt: string
}
const begin = async ({ as }: As, body: unknown = { customer: 'Ada' }) => {
  const response = await gateway.post('/v1/sessions', body, as)
  const answer = (await response.json()) as Session & { error?: { message: string; param: string | null } }
  return { ...answer, status: response.status, as: asKey(answer.sessionToken) }
}
const status = async (response: Promise<Response>) => {
  const got = await response
  const { error } = (await got.json()) as { error?: { message: string } }
  return error ? `${got.status} ${error.message}` : `${got.status}`
}
const ask = ({ as }: As, more: Tree = {}) => status(gateway.chat({ ...request, ...more }, as))

const group = groupsOf(t, {
  gateway,
  upstream,
  books: openBooks(t, gateway),
  before: () => upstream.script('a', [{ usage }]),
})

group('a session calls what it was begun for, and its key pays', async t => {
  const who = await tenant()
  const before = Date.now()
  const free = await begin(who, { customer: { externalId: 'user-1', email: 'user@x.example' }, ttlSeconds: 60 })
  t.match(free, {
    status: 200,
    sessionToken: /^mgw_es_[\w-]{43}$/,
    customer: 'user-1',
    scope: { models: null, maxSpend: null },
  })
  const ends = Date.parse(free.expiresAt)
  t.ok(ends >= before + 60_000 && ends <= Date.now() + 60_000)
  t.strictSame([await ask(free), await ask(free, { model: 'small' })], ['200', '200'])

  const scoped = await begin(who, { customer: 'user-2', scope: { models: ['small'], maxSpend: times(1.5) } })
  t.match(scoped.scope, { models: ['small'], maxSpend: '0.0000345' })
  const usual = Date.parse(scoped.expiresAt) - 900_000
  t.ok(usual >= before && usual <= Date.now(), 'a quarter of an hour, when nothing else is said')
  t.match(await ask(scoped), /^403 Access denied: Model test is not in the allowed models list/)
  t.equal(await ask(scoped, { model: 'small' }), '200')
  t.match(await ask(scoped, { model: 'small' }), '402 Session reached its usage limit.')
  const listed = (await (await gateway.get('/v1/models', scoped.as)).json()) as { data: { id: string }[] }
  t.strictSame(
    listed.data.map(({ id }) => id),
    ['small'],
  )
  const { groups } = await command<{ groups: Tree[] }>('usage', { organization: who.org, groupBy: 'api_key' })
  t.match(groups, [{ id: who.id, cost: '0.000069' }], 'all of it is usage of the key')
  t.match(await command('keys.list', { project: who.project }), { length: 1 }, 'sessions are no keys to be listed')
})

const unknown = '401 Incorrect API key provided: it is unknown or was revoked. Send a key of this gateway.'

group('what bounds the key bounds its sessions together, and they end with it', async t => {
  const who = await tenant({ limit: times(2), expires: '1h' })
  const [one, two] = [await begin(who), await begin(who, { customer: 'Bea', ttlSeconds: 86_400 })]
  t.ok(Date.parse(two.expiresAt) <= Date.now() + 3_600_000, 'no later than its key')
  t.strictSame([await ask(one), await ask(two)], ['200', '200'])
  for (const each of [one, two, who]) t.equal(await ask(each), '402 API key reached its usage limit.')
  await command('keys.update', { id: who.id, limit: 'none' })
  await command('iam.add', { key: who.id, type: 'deny_models', models: ['small'] })
  t.strictSame([await ask(one), await ask(who)], ['200', '200'])
  t.match(await ask(one, { model: 'small' }), /^403 .*of the API key/)
  await command('keys.revoke', { id: one.id })
  t.strictSame([await ask(one), await ask(two)], [unknown, '200'], 'one session can be ended by itself')
  const { key } = await command<{ key: string }>('keys.roll', { id: who.id })
  t.strictSame([await ask(two), await ask(who)], [unknown, unknown])
  const next = await begin({ as: asKey(key) })
  t.equal(await ask(next), '200')
  await command('projects.archive', { project: who.project })
  t.match(await ask(next), /^410 /)
  await command('projects.restore', { project: who.project })
  const response = await gateway.admin('POST', '/commands/keys.roll', { id: next.id })
  t.match([response.status, await response.json()], [400, { error: { message: /is a session/ } }])
})

group('a session is over at its time', async t => {
  const who = await tenant()
  const short = await begin(who, { customer: 'Ada', ttlSeconds: 3 })
  t.equal(await ask(short), '200')
  const deadline = Date.now() + 30_000
  const expired = '401 Incorrect API key provided: it has expired. Send one that is valid.'
  let said = ''
  while (said !== expired && Date.now() < deadline) {
    await sleep(50)
    said = await ask(short)
  }
  t.equal(said, expired)
  t.ok(Date.now() >= Date.parse(short.expiresAt))
})

group('AT-07 only a regular key may begin sessions, and a session reads no status of a key', async t => {
  const who = await tenant()
  const session = await begin(who)
  t.equal(await status(gateway.get('/v1/key', session.as)), '403 Only regular gateway API keys may read their status.')
  const publishable = await command<{ key: string }>('keys.create', { project: who.project, kind: 'publishable' })
  for (const as of [session.as, asKey(publishable.key)]) {
    t.match(await begin({ as }), {
      status: 403,
      error: { message: 'Only regular gateway API keys may begin sessions.' },
    })
  }
  t.equal((await gateway.post('/v1/sessions', { customer: 'x' }, { authorization: null })).status, 401)
  const wrong: [body: unknown, param: string | null][] = [
    [{}, 'customer'],
    [[], null],
    [{ customer: '' }, 'customer'],
    [{ customer: { email: 'user@x.example' } }, 'customer.externalId'],
    [{ customer: 'x', ttlSeconds: 0 }, 'ttlSeconds'],
    [{ customer: 'x', ttlSeconds: 86_401 }, 'ttlSeconds'],
    [{ customer: 'x', scope: { models: [] } }, 'scope.models'],
    [{ customer: 'x', scope: { maxSpend: '-1' } }, 'scope.maxSpend'],
    [{ customer: 'x', scope: { maxSpend: -1 } }, 'scope.maxSpend'],
  ]
  for (const [body, param] of wrong) {
    t.match(await begin(who, body), { status: 400, error: { param } }, JSON.stringify(body))
  }
  t.match(await begin(who, { customer: 'x', scope: { maxSpend: 0.5 } }), { scope: { maxSpend: '0.5' } })
  const last = await (async () => {
    for (let i = 0; i < 40; i++) {
      const response = await gateway.post('/v1/sessions', { customer: 'x' }, who.as)
      await response.text()
      if (response.status !== 200) return response
    }
    return undefined
  })()
  t.equal(last?.status, 429, 'an organization may begin so many in a minute')
})
