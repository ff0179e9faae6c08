/** What keys, members, plans and projects may do, as their callers find out: before a provider is asked anything. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { callAiSdk } from '../helpers/ai-sdk-chat.ts'
import { groupsOf, openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { runs } from '../helpers/runs.ts'
import { plainGateway } from './plain.ts'

type Tree = Record<string, unknown>

const { upstream, gateway } = await plainGateway()

const content = 'What does this cost?'
const usage = { prompt: Math.ceil(content.length / 4), completion: 10 }
const request = { model: 'test', max_tokens: usage.completion, messages: [{ role: 'user', content }] }
/** USD, of `request`. */
const PRICE = 0.000025

const command = commandsOf(gateway)
let made = 0
async function tenant({ credits = '1', key = {} }: { credits?: string; key?: object } = {}) {
  const name = `limits-${++made}`
  const { id: org } = await command<{ id: string }>('orgs.create', { name })
  await command('credits.add', { organization: org, amount: credits })
  const { id: project } = await command<{ id: string }>('projects.create', { organization: org, name: 'web' })
  await command('members.add', { organization: org, email: 'dev@x.example', role: 'developer' })
  return { org, project, ...(await newKey(project, key)) }
}
const newKey = async (project: string, more: object = {}) => {
  const { id, key } = await command<{ id: string; key: string }>('keys.create', { project, name: 'k', ...more })
  return { id, as: { authorization: `Bearer ${key}` } }
}
type As = { as: Record<string, string> }
const ask = ({ as }: As, more: Tree = {}) => gateway.chat({ ...request, ...more }, as)
const status = async (response: Promise<Response>) => {
  const got = await response
  const { error } = (await got.json()) as { error?: { message: string; code: string | null } }
  return error ? `${got.status} ${error.message}` : `${got.status}`
}
const keyOf = async ({ as }: As) => ((await (await gateway.get('/v1/key', as)).json()) as { data: Tree }).data

const group = groupsOf(t, { gateway, upstream, books: openBooks(t, gateway) })

/** Requests at once, of which ten have money. */
const AT_ONCE = runs(200, 4)
group('CC-01, CC-04 dozens of requests at once on money for ten are ten, whatever bounds them', async t => {
  const enough = (PRICE * 10).toFixed(9)
  const bounds: [says: string, caller: () => Promise<As>, message: RegExp][] = [
    ['credits', () => tenant({ credits: enough }), /insufficient credits/],
    [
      'a limit of the key',
      () => tenant({ key: { limit: enough } }),
      /^402 API key reached its usage limit\.(?: [\d.]+ USD are held for requests in flight: .*)?$/,
    ],
    [
      'a recurring limit of the key',
      () => tenant({ key: { limit: enough, limitPeriod: 'month', limitZone: 'Asia/Tokyo' } }),
      /^402 API key reached its current period usage limit\. It resets at \d{4}-\d\d-\d\dT15:00:00\.000Z\.(?: [\d.]+ USD are held for requests in flight: .*)?$/,
    ],
    [
      'a budget of the member',
      async () => {
        const { org, project } = await tenant()
        const member = { organization: org, member: 'dev@x.example' }
        await command('members.update', { ...member, limit: enough, limitPeriod: 'week' })
        return newKey(project, { createdBy: 'dev@x.example', limit: '1' })
      },
      /^402 Member has reached their period spend budget\./,
    ],
    [
      'a plan',
      async () => {
        const made = await tenant()
        await command('plans.set', { organization: made.org, plan: 'lite' })
        return made
      },
      /^402 Coding plan credit limit reached\. Upgrade your plan or wait for renewal on \d{4}-\d\d-\d\d\.(?: [\d.]+ USD are held for requests in flight: .*)?$/,
    ],
    [
      'the smallest of all',
      async () => {
        const made = await tenant({ credits: '0.00034', key: { limit: enough } })
        await command('plans.set', { organization: made.org, plan: 'lite', overflow: 'on' })
        await command('keys.update', { id: made.id, limit: '0.0003', limitPeriod: 'day' })
        return made
      },
      /^402 API key reached its usage limit\.(?: [\d.]+ USD are held for requests in flight: .*)?$/,
    ],
  ]
  for (const [says, caller, message] of bounds) {
    await t.test(says, async t => {
      await upstream.reset()
      await upstream.script('a', [{ hold: 0, usage }])
      const who = await caller()
      const asked = Array.from({ length: AT_ONCE }, () => status(ask(who)))
      await upstream.record('a', { requests: 10 })
      const refusals = new Promise<void>(resolve => {
        let refused = 0
        for (const one of asked) one.then(got => got.startsWith('402') && ++refused === AT_ONCE - 10 && resolve())
      })
      await Promise.race([refusals, Promise.all(asked)])
      await upstream.release('a')
      const got = await Promise.all(asked)
      t.equal(got.filter(one => one === '200').length, 10)
      for (const one of got.filter(one => one !== '200')) t.match(one, message)
      t.equal((await upstream.record('a')).length, 10, 'the refused were refused before any call')
    })
  }
})

group(
  'AT-09 the same limits bound clients of Messages, Responses, Google and the AI SDK, in the words of each',
  async t => {
    const ways: [says: string, ask: (who: As, model: string) => Promise<Response>, refusal: object][] = [
      [
        'Messages',
        ({ as }, model) => gateway.post('/v1/messages', { ...request, model }, as),
        { type: 'error', error: { type: 'billing_error' } },
      ],
      [
        'Responses',
        ({ as }, model) =>
          gateway.post('/v1/responses', { model, input: content, max_output_tokens: usage.completion }, as),
        { error: { type: 'invalid_request_error', code: String } },
      ],
      [
        'the AI SDK',
        ({ as }, model) => {
          const prompt = [{ role: 'user', content: [{ type: 'text', text: content }] }]
          return callAiSdk(gateway, model, { prompt, maxOutputTokens: usage.completion }, 'whole', as)
        },
        { error: { type: 'invalid_request_error', code: 'billing_error' }, generationId: /^gen_/ },
      ],
      [
        'generateContent',
        ({ as: { authorization } }, model) =>
          gateway.post(
            `/v1beta/models/${model}:generateContent`,
            { contents: [{ parts: [{ text: content }] }], generationConfig: { maxOutputTokens: usage.completion } },
            { authorization: null, 'x-goog-api-key': authorization!.slice('Bearer '.length) },
          ),
        { error: { code: 402, status: 'RESOURCE_EXHAUSTED' } },
      ],
    ]
    for (const [says, ask, refusal] of ways) {
      await upstream.reset()
      await upstream.script('a', [{ usage }])
      const price = PRICE.toFixed(9)
      for (const who of [await tenant({ credits: price }), await tenant({ key: { limit: price } })]) {
        const answers = [await ask(who, 'test'), await ask(who, 'test')]
        t.strictSame(
          answers.map(({ status }) => status),
          [200, 402],
          says,
        )
        t.match(await answers[1]!.json(), refusal, says)
      }
      t.equal((await upstream.record('a')).length, 2, `${says}: the refused were refused before any call`)
      const planned = await tenant()
      await command('plans.set', { organization: planned.org, plan: 'lite' })
      t.equal((await ask(planned, 'a/test')).status, 403, `${says}: a plan takes no provider`)
      t.equal((await gateway.get('/v1/key', planned.as)).status, 200)
    }
  },
)

group('AT-09 a reached limit refuses what is free, but GET /v1/key still tells of it', async t => {
  const who = await tenant({ key: { limit: '0' } })
  t.equal(await status(ask(who, { model: 'free' })), '402 API key reached its usage limit.')
  t.match(await keyOf(who), { label: 'k', usage: '0', limit: '0', devPlan: 'none' })
  const poor = await tenant({ credits: '0.000000001' })
  t.equal(await status(ask(poor, { model: 'free' })), '200', 'credits are not needed for what is free')
  t.match(await status(ask(poor)), /^402 /)
  t.equal((await upstream.record()).length, 1)
})

group('GET /v1/key says what is left of limits and plans (interface 2.10)', async t => {
  await upstream.script('a', [{ usage }])
  const none = {
    usage: '0',
    limit: null,
    devPlan: 'none',
    devPlanCreditsUsed: '0',
    devPlanCreditsLimit: '0',
    devPlanCreditsRemaining: '0',
    devPlanPremiumWeeklyLimit: '0',
    devPlanPremiumCreditsUsed: '0',
    devPlanPremiumWeekResetsAt: null,
  }
  const plain = await tenant()
  t.strictSame(await keyOf(plain), { label: 'k', ...none })
  const limited = await tenant({ key: { limit: '5.00' } })
  await command('keys.update', { id: limited.id, limit: '2', limitPeriod: 'day' })
  t.equal(await status(ask(limited)), '200')
  const daily = { period: 'day', periodLimit: '2', periodUsage: '0.000025', periodResetsAt: /T00:00:00\.000Z$/ }
  t.match(await keyOf(limited), { usage: '0.000025', limit: '5', ...daily })

  const planned = await tenant({ credits: '0.000000001' })
  await command('plans.set', { organization: planned.org, plan: 'lite' })
  t.equal(await status(ask(planned)), '200')
  const before = Date.now()
  t.equal(await status(ask(planned, { model: 'premium' })), '200')
  const { data } = (await (await gateway.get('/v1/key', planned.as)).json()) as { data: Tree }
  t.match(data, {
    usage: '0.000075',
    devPlan: 'lite',
    devPlanCreditsUsed: '0.000075',
    devPlanCreditsLimit: '0.00025',
    devPlanCreditsRemaining: '0.00',
    devPlanPremiumWeeklyLimit: '0.00',
    devPlanPremiumCreditsUsed: '0.00',
  })
  const resets = Date.parse(String(data.devPlanPremiumWeekResetsAt)) - 7 * 86_400_000
  t.ok(resets >= before && resets <= Date.now(), 'a week after the first premium request')
  t.match(await command('credits.show', { organization: planned.org }), { used: '0' }, 'the plan has paid')

  for (const kind of ['publishable', 'session']) {
    const other = await newKey(plain.project, { kind })
    t.match(await status(gateway.get('/v1/key', other.as)), /^403 Only regular gateway API keys/, `AT-07 ${kind}`)
  }
})

group('a plan excludes what interface 8.6 says, and its week bounds premium models', async t => {
  await upstream.script('a', [{ usage }])
  const who = await tenant()
  await command('plans.set', { organization: who.org, plan: 'lite' })
  t.match(await status(ask(who, { model: 'a/test' })), /^403 .*name the model without a provider/)
  t.match(await status(ask(who, { routing: 'price' })), '200')
  t.match(await status(ask(who, { routing: 'throughput' })), /^400 .*routing "throughput"; use auto, price/)
  const ways: [body: Tree, refusal: RegExp][] = [
    [{ model: 'test:nitro' }, /^400 .*routing "throughput"; use auto, price/],
    [{ models: ['small:nitro'] }, /^400 .*routing "throughput"/],
    [{ provider: { sort: 'latency' } }, /^400 .*routing "latency"/],
    [{ models: ['a/small'] }, /^403 .*name the model without a provider/],
    [{ provider: { only: ['a'] } }, /^403 .*name the model without a provider/],
    [{ provider: { order: ['a'] } }, /^403 .*name the model without a provider/],
  ]
  for (const [body, refusal] of ways) t.match(await status(ask(who, body)), refusal, JSON.stringify(body))
  const embeddings = gateway.post('/v1/embeddings', { model: 'test', input: 'x' }, who.as)
  t.ok((await embeddings).status >= 400)
  await (await embeddings).text()
  const premium = () => status(ask(who, { model: 'premium' }))
  t.strictSame([await premium(), await premium(), await premium()], ['200', '200', '200'])
  t.match(await premium(), /^402 Coding plan weekly premium limit reached\..* It resets at /)
  t.equal(await status(ask(who)), '200', 'others are still paid for')
  await command('plans.reset', { organization: who.org })
  t.equal(await premium(), '200')
  t.match(await premium(), /^402 Coding plan credit limit reached/)
  t.match(await keyOf(who), { devPlanCreditsUsed: '0.00025', devPlanCreditsRemaining: '0.00' })
  await command('plans.set', { organization: who.org, overflow: 'on' })
  t.equal(await premium(), '200', 'credits pay for what the plan does not')
  const { used } = await command<{ used: string }>('credits.show', { organization: who.org })
  t.equal(used, '0.00005')
  t.equal((await gateway.chat(request, who.as)).headers.get('ratelimit-policy'), '"requests";q=1200;w=60')
})

group('AT-05, AT-08, CC-10 keys end, projects are archived, members leave: the next request is refused', async t => {
  const who = await tenant()
  t.equal(await status(ask(who)), '200')
  await command('projects.archive', { project: who.project })
  t.match(await status(ask(who)), /^410 This project is archived/)
  t.match(await status(gateway.get('/v1/models', who.as)), /^410 /)
  await command('projects.restore', { project: who.project })
  t.equal(await status(ask(who)), '200')

  const developers = await newKey(who.project, { createdBy: 'dev@x.example' })
  t.equal(await status(ask(developers)), '200')
  await command('members.update', { organization: who.org, member: 'dev@x.example', projects: [] })
  t.match(await status(ask(developers)), /^403 The member who made this API key has no access to its project\./)
  await command('members.update', { organization: who.org, member: 'dev@x.example', projects: ['web'] })
  t.equal(await status(ask(developers)), '200')

  await upstream.script('a', [{ chunks: ['one ', 'two ', 'three'], hold: 1 }])
  const running = await ask(who, { stream: true })
  await command('keys.revoke', { id: who.id })
  t.match(await status(ask(who)), /^401 Incorrect API key provided: it is unknown or was revoked\./, 'at once')
  await upstream.release('a')
  // Callers of streams are judged again each second: before that the stream finishes, after it the reason ends it.
  const ended = /three[\s\S]*data: \[DONE\]|"message":"Incorrect API key provided: it is unknown or was revoked/
  t.match(await running.text(), ended, 'CC-10 what ran finishes by its own, or ends with the reason')
  const rolled = await command<{ key: string }>('keys.roll', { id: developers.id })
  t.match(await status(ask(developers)), /^401 /)
  await upstream.reset()
  t.equal(await status(ask({ as: { authorization: `Bearer ${rolled.key}` } })), '200')

  const publishable = await newKey(who.project, { kind: 'publishable' })
  t.match(await status(ask(publishable)), /^403 Publishable keys cannot call models/)
  t.equal((await gateway.get('/v1/models', publishable.as)).status, 200)
  const session = await newKey(who.project, { kind: 'session' })
  t.equal(await status(ask(session)), '200')
})

group('discounts and storage are charged as they are told', async t => {
  await upstream.script('a', [{ usage }])
  const who = await tenant()
  await command('credits.discount', { organization: who.org, model: 'test', percent: '20' })
  await command('orgs.update', { organization: who.org, retain: 'on' })
  for (const stream of [false, true]) {
    const text = await (await ask(who, { stream })).text()
    const last = stream
      ? text
          .split('\n')
          .filter(line => line.startsWith('data: {'))
          .at(-1)!
          .slice(6)
      : text
    const answer = JSON.parse(last) as { usage: { cost: number; cost_details: Tree }; metadata: Tree }
    t.equal(answer.metadata.discount, 0.2)
    t.equal(answer.usage.cost, 0.00002)
    t.match(answer.usage.cost_details, { input_cost: 0.000004, output_cost: 0.000016, data_storage_cost: 1.5e-7 })
  }
  t.match(await command('credits.show', { organization: who.org }), { used: '0.0000403' })
  t.match(await command('usage', { organization: who.org }), {
    totals: { cost: '0.00004', creditsCost: '0.00004', byokCost: '0', storageCost: '0.0000003' },
  })
})

group('requests are attributed to the apps that they come from, whatever name those use', async t => {
  const who = await tenant()
  const from = (headers: Record<string, string>) => gateway.chat(request, { ...who.as, ...headers })
  for (const headers of [
    { 'x-source': 'https://www.opencode' },
    { 'x-source': 'open-code' },
    { 'user-agent': 'opencode/0.5' },
    { 'x-source': 'my.app/v2' },
    { 'user-agent': 'curl/8' },
  ]) {
    t.equal((await from(headers)).status, 200)
  }
  t.match(await status(from({ 'x-source': 'my app' })), /^400 x-source may have at most 128 letters/)
  const { groups } = await command<{ groups: Tree[] }>('usage', { organization: who.org, groupBy: 'app' })
  t.strictSame(Object.fromEntries(groups.map(({ id, requests }) => [id, requests])), {
    opencode: 3,
    'my.app/v2': 1,
    unknown: 1,
  })
})

group('a credential that is none gets 401 in one shape, whatever it is made of', async t => {
  const { as } = await tenant()
  const key = as.authorization!.slice('Bearer '.length)
  const hash = createHash('sha256').update(key).digest('hex')
  const bodies = new Set<string>()
  const letters = 'abcXYZ019_-.~+/="\';%\\<>{}()$`|&*?!#@^[] '
  let state = 20261120
  const random = (n: number) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    return Math.floor((state / 2 ** 32) * n)
  }
  const noise = () => Array.from({ length: 1 + random(80) }, () => letters[random(letters.length)]).join('')
  const wrong = [key.slice(0, -1), `${key}x`, key.toLowerCase(), key.slice(4), `mgw_pk_${key.slice(4)}`, hash]
  wrong.push(
    `${key}' OR '1'='1`,
    `'; DROP TABLE keys; --`,
    'x'.repeat(10_240),
    `${key}%0d%0aX-Admin: 1`,
    `mgw_${'A'.repeat(43)}`,
  )
  for (let i = 0; i < runs(200); i++) wrong.push(noise().trim() || 'x', key.slice(0, random(key.length)) + noise())
  for (const one of wrong.map(text => text.trim()).filter(text => text !== '' && text !== key)) {
    for (const headers of [{ authorization: `Bearer ${one}` }, { 'x-api-key': one }]) {
      const response = await gateway.get('/v1/key', headers)
      t.equal(response.status, 401, one.slice(0, 60))
      bodies.add(`${response.headers.get('www-authenticate')} ${await response.text()}`)
    }
  }
  t.equal(bodies.size, 1, [...bodies].join('\n'))
  t.equal(await status(gateway.get('/v1/key', as)), '200', 'the key is still there')
})
