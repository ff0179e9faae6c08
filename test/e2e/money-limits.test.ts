/** Limits on money that refuse, only notify, or use another model (docs/spending-limits.md#at-a-limit). */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse, stringify } from 'yaml'
import type { OnLimit } from '../../src/limits/kinds.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { runs } from '../helpers/runs.ts'
import { startUpstream } from '../helpers/upstream.ts'

const upstream = await startUpstream(t, { key: upstreamSecret })
const cheap = {
  ...{ ...testMapping, model: 'cheap', id: 'cheap-1', pricing: { prompt: '0.10', completion: '0.20' } },
  supports: testMapping.supports.filter(one => one !== 'tools'),
}
const provider = { base_url: upstream.url('a'), concurrency: 10_000, models: [testMapping, cheap] }
/** Requests at once: many times what a limit admits. */
const AT_ONCE = runs(200, 4)
/** Room for three to seven requests to `test`: each costs 0.000015 USD, and holds that and a little. */
const LIMIT = '0.0001'
const ANSWER = { text: 'Hello', usage: { prompt: 5, completion: 5 } }
await upstream.script('a', [ANSWER])

type Made = { readonly id: string; readonly key: string }
const actions = [
  ['refuse', 'refuse'],
  ['notify', 'notify'],
  ['use:cheap', { use: 'cheap' }],
] as const satisfies readonly (readonly [string, OnLimit])[]

for (const [onLimit, action] of actions) {
  t.test(`limits with ${onLimit}`, async t => {
    const gateway = await startGateway(t, {
      providers: { a: provider },
      config: {
        end_users: { default_limit: { amount: LIMIT, period: 'day', on_limit: action } },
        endpoints: { chat: { admission: { in_flight: 10_000, lag: '60s' }, ratelimit: { rpm: 1_000_000 } } },
      },
    })
    const command = commandsOf(gateway)
    let tenants = 0
    /** An organization with one limit, and what asks with its key. */
    const tenant = async (kind: string, account: 'open' | 'prepaid' = 'open') => {
      const name = `${kind}-${++tenants}`
      const limit = { limit: LIMIT, limitPeriod: 'day', onLimit }
      const { id: organization } = await command<Made>('orgs.create', { name, account })
      const mode = kind === 'provider-key' ? 'api-keys' : 'credits'
      const { id: project } = await command<Made>('projects.create', {
        ...{ organization, name: 'web', mode },
        ...(kind === 'project' && limit),
      })
      const email = 'ada@x.example'
      if (kind === 'member') await command('members.add', { organization, email, role: 'owner', ...limit })
      if (kind === 'provider-key') {
        await command('provider-keys.add', { organization, provider: 'a', secret: upstreamSecret, ...limit })
      }
      const { key, id } = await command<Made>('keys.create', {
        ...{ project, name: 'k' },
        ...(kind === 'member' && { createdBy: email }),
        ...(kind === 'key' && limit),
      })
      const ask = async (model = 'test', more: object = {}) => {
        const body = { model, max_tokens: 5, messages: [{ role: 'user', content: 'Twenty letters here.' }], ...more }
        const answer = await gateway.chat(
          { ...body, ...(kind === 'end-user' && { user: name }) },
          { authorization: `Bearer ${key}` },
        )
        const { metadata, error } = (await answer.json()) as {
          metadata?: { requested_model: string; used_model: string }
          error?: { message: string }
        }
        return { status: answer.status, used: metadata?.used_model, asked: metadata?.requested_model, error }
      }
      return { ask, organization, id }
    }
    const lines = (of: string) => {
      const told = (gateway.stdout() + gateway.stderr())
        .split('\n')
        .filter(line => line.includes('spending limit passed'))
      return told.filter(line => line.includes(`"of":"${of}"`)).length
    }

    for (const kind of ['key', 'member', 'project', 'provider-key', 'end-user']) {
      t.test(kind, async t => {
        const one = await tenant(kind)
        const answers: Awaited<ReturnType<typeof one.ask>>[] = []
        for (let n = 0; n < 12; n++) answers.push(await one.ask())
        const dear = answers.findIndex(({ status, used }) => status !== 200 || used !== 'test')
        const rest = dear < 0 ? [] : answers.slice(dear)
        if (action === 'notify') t.equal(dear, -1, 'all are served')
        else t.ok(dear >= 3 && dear <= 7, `${dear} are within the limit`)
        for (const { status, used, asked, error } of rest) {
          if (action === 'refuse') t.match([status, error?.message], [402, /limit|budget/])
          else t.strictSame([status, asked, used], [200, 'test', 'cheap'])
        }
        t.equal(lines(kind), action === 'refuse' ? 0 : 1, 'the log tells it once')
        if (onLimit === 'use:cheap') t.equal((await one.ask('cheap')).status, 200)
        const two = await tenant(kind)
        const many = await Promise.all(Array.from({ length: AT_ONCE }, () => two.ask()))
        const served = many.filter(({ status }) => status === 200)
        const first = served.filter(({ used }) => used === 'test').length
        const statuses = [...new Set(many.map(({ status, error }) => `${status} ${error?.message}`))]
        t.equal(served.length, action === 'refuse' ? first : AT_ONCE, statuses.join())
        if (action === 'notify') t.equal(first, AT_ONCE)
        else t.ok(first >= 3 && first <= 7, `${first} are within the limit`)
      })
    }

    t.test('a request that names the other model beside its own does not pass the limit by that', async t => {
      const { ask } = await tenant('key')
      for (let n = 0; n < 8; n++) await ask()
      const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }]
      const { status, used, error } = await ask('cheap', { models: ['test'], tools })
      if (action === 'notify') t.strictSame([status, used], [200, 'test'])
      else t.match([status, error?.message], [402, /API key reached/])
      await upstream.script('a', [{ status: 500 }, ANSWER])
      const second = await ask('cheap', { models: ['test'] })
      t.equal(second.used === 'test', action === 'notify', 'nor where that one fails')
      await upstream.script('a', [ANSWER])
      const third = await ask('test', { models: ['cheap'] })
      t.equal(third.used === 'test', action === 'notify', 'nor where it is named second')
    })

    t.test('credits are never passed', async t => {
      const { ask, organization } = await tenant('key', 'prepaid')
      await command('credits.add', { organization, amount: '0.0002' })
      const many = await Promise.all(Array.from({ length: 200 }, () => ask()))
      const refused = many.filter(({ status }) => status !== 200)
      t.ok(refused.length > 0)
      for (const { status } of refused) t.equal(status, 402)
      const { balance } = await command<{ balance: string }>('credits.show', { organization })
      t.ok(Number(balance) >= 0, balance)
    })

    t.test('the books agree', async t => t.strictSame(await command('usage.check'), { differences: [] }))

    if (onLimit !== 'use:cheap') return
    t.test('commands show it, keep it and refuse an unknown model', async t => {
      const { id } = await tenant('key')
      const shown = async (more: object) =>
        (await command<{ limits: { on_limit?: OnLimit }[] }>('keys.update', { id, ...more })).limits[0]!.on_limit
      t.strictSame(await shown({ limit: '1', limitPeriod: 'day' }), action, 'a raised limit keeps it')
      t.equal(await shown({ limit: '1', limitPeriod: 'day', onLimit: 'notify' }), 'notify')
      t.equal(await shown({ limit: '1', limitPeriod: 'day', onLimit: 'refuse' }), undefined)
      const unknown = await gateway.admin('POST', '/commands/keys.update', { id, limit: '1', onLimit: 'use:chaep' })
      t.equal(unknown.status, 400)
      t.match(await unknown.text(), /Argument \\"onLimit\\".*chaep/)
    })

    t.test('the limit refuses once its model is gone', async t => {
      const { ask } = await tenant('member')
      let last = await ask()
      while (last.used === 'test') last = await ask()
      t.equal(last.used, 'cheap')
      const { end_users: _, ...rest } = parse(readFileSync(gateway.configPath, 'utf8')) as Record<string, unknown>
      await gateway.writeFile('config/gateway.yaml', stringify(rest))
      await gateway.writeProvider('a', { ...provider, models: [testMapping] })
      t.match(await gateway.admin('POST', '/reload'), { status: 200 })
      t.match(await ask(), { status: 402, error: { message: /spend budget/ } })
    })
  })
}

t.test(
  'limits of key, member, project, end user and provider key count together, and the 402 names the one that is full',
  async t => {
    const gateway = await startGateway(t, {
      providers: { a: provider },
      config: { end_users: { default_limit: { amount: '0.0004', period: 'day' } } },
    })
    const command = commandsOf(gateway)
    const said: Readonly<Record<string, RegExp>> = {
      key: /^API key reached its usage limit\./,
      member: /^Member has reached their total spend budget\./,
      project: /^Project has reached its total spend budget\./,
      'provider-key': /^The organization's key for the provider reached its usage limit\./,
      'end-user': /^End user "ada" has reached their period spend limit\. It resets at /,
      credits: /^The organization has insufficient credits/,
    }
    for (const [full, expected] of Object.entries(said)) {
      const limit = (kind: string) => ({ limit: kind === full ? LIMIT : '0.01' })
      const { id: organization } = await command<Made>('orgs.create', { name: full })
      await command('credits.add', { organization, amount: full === 'credits' ? LIMIT : '1' })
      const { id: project } = await command<Made>('projects.create', {
        ...{ organization, name: 'web', mode: full === 'provider-key' ? 'api-keys' : 'credits', ...limit('project') },
      })
      const email = 'ada@x.example'
      await command('members.add', { organization, email, role: 'owner', ...limit('member') })
      await command('provider-keys.add', {
        ...{ organization, provider: 'a', secret: upstreamSecret },
        ...limit('provider-key'),
      })
      const { key, id } = await command<Made>('keys.create', { project, createdBy: email, ...limit('key') })
      const body = { model: 'test', max_tokens: 5, messages: [{ role: 'user', content: 'Twenty letters here.' }] }
      let served = 0
      let answer: Response
      do {
        answer = await gateway.chat({ ...body, user: 'ada' }, { authorization: `Bearer ${key}` })
        if (answer.status === 200) {
          await answer.text()
          served++
        }
      } while (answer.status === 200)
      t.equal(answer.status, 402, full)
      const { error } = (await answer.json()) as { error: { message: string } }
      t.match(error.message, expected)
      const most = full === 'end-user' ? 27 : 7
      t.ok(served >= 3 && served <= most, `${served} were served`)
      const spent = (0.000015 * served).toFixed(6)
      const shown = await command<{ limits: { spent: string }[] }>('keys.show', { id })
      const [owner] = await command<{ limits: { spent: string }[] }[]>('members.list', { organization })
      for (const [{ spent: own }] of [shown.limits, owner!.limits] as [{ spent: string }][])
        t.equal(Number(own), +spent)
    }
    t.strictSame(await command('usage.check'), { differences: [] })
  },
)
