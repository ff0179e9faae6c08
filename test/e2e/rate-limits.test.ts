/** Limits of every kind under a hundred requests at once (docs/rate-limits.md). */
import t from 'tap'
import { type RateKind, rateKinds, windowKinds } from '../../src/limits/kinds.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { runs } from '../helpers/runs.ts'
import { startUpstream } from '../helpers/upstream.ts'

const upstream = await startUpstream(t, { key: upstreamSecret })
/** More than any limit below admits. */
const AT_ONCE = runs(200, 2)
const usage = { prompt: 5, completion: 10 }
/** Tokens of one request. */
const ESTIMATE = 15
const most = (kind: RateKind) => (isOfRequests(kind) ? 7 : 300)
const isOfRequests = (kind: RateKind) => kind === 'concurrency' || windowKinds[kind].counts === 'requests'
const unitsOf = (kind: RateKind): number => {
  const counts = kind === 'concurrency' ? 'requests' : windowKinds[kind].counts
  const of = { requests: 1, tokens: 15, 'input tokens': usage.prompt, 'output tokens': usage.completion }
  return of[counts]
}
const rpm = 1_000_000
const gateway = await startGateway(t, {
  providers: {
    a: {
      base_url: upstream.url('a'),
      models: [
        testMapping,
        { ...testMapping, model: 'spare', id: 'spare' },
        ...rateKinds.map(kind => ({ ...testMapping, model: `m-${kind}`, id: `m-${kind}` })),
      ],
    },
  },
  config: {
    endpoints: {
      chat: {
        admission: { in_flight: 10_000, lag: '60s' },
        ratelimit: {
          rpm,
          limits: [
            ...rateKinds.map(kind => ({ match: { model: `m-${kind}*` }, [kind]: most(kind) })),
            { match: { model: 'spare' }, tpm: 1000 },
            { match: { model: 'test', end_user: '*' }, rpm: 2 },
            { match: { tags: 'team=*' }, rpm: 3 },
          ],
        },
      },
    },
  },
})

const ask = async (model: string, more: object = {}) => {
  const response = await gateway.chat({
    model,
    max_tokens: 10,
    messages: [{ role: 'user', content: 'Twenty letters here.' }],
    ...more,
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text }
}

for (const kind of rateKinds) {
  t.test(`${AT_ONCE} requests at once pass the limit ${kind} by at most one, and each refusal names it`, async t => {
    await upstream.reset()
    const isPlace = kind === 'concurrency'
    await upstream.script('a', [{ text: 'Hello', usage, ...(isPlace && { hold: 0 }) }])
    const asked = Array.from({ length: AT_ONCE }, () => ask(`m-${kind}`))
    if (isPlace) {
      await upstream.record('a', { requests: most(kind) })
      await Promise.any(
        asked.map(one => one.then(({ status }) => status === 429 || Promise.reject(new Error('served')))),
      )
      await upstream.release('a')
    }
    const answers = await Promise.all(asked)
    const served = answers.filter(({ status }) => status === 200)
    const refused = answers.filter(({ status }) => status === 429)
    t.equal(served.length + refused.length, AT_ONCE)
    t.ok(refused.length > 0, 'some are refused')
    const counted = served.length * unitsOf(kind)
    if (isPlace) t.ok(counted >= most(kind), `${counted}`)
    else if (isOfRequests(kind)) t.equal(counted, most(kind))
    else t.ok(counted <= most(kind) + ESTIMATE && counted > most(kind) - ESTIMATE, `${counted}`)
    const what = isPlace ? 'requests at a time' : `${windowKinds[kind].counts} per ${windowKinds[kind].span}`
    for (const { text, headers } of refused) {
      const { error } = JSON.parse(text) as { error: { code: string; message: string } }
      t.equal(error.code, 'rate_limit_exceeded')
      const expected = `The limit of ${most(kind)} ${what} (${kind}) of model "m-${kind}" is reached. Please retry after `
      t.ok(error.message.startsWith(expected), error.message)
      t.match(headers.get('retry-after'), /^[1-9]\d*$/)
      t.ok(headers.get('ratelimit-policy')?.startsWith(`"model-${kind}";q=${most(kind)};`))
    }
    if (isPlace) {
      await upstream.reset()
      t.equal((await ask(`m-${kind}`)).status, 200, 'places are free again')
      return
    }
    const unit = isOfRequests(kind) ? 'requests' : 'tokens'
    for (const { headers } of served) {
      t.match(headers.get('ratelimit'), new RegExp(`^"model-${kind}";r=\\d+;t=\\d+$`))
      t.equal(headers.get(`x-ratelimit-limit-${unit}`), `${most(kind)}`)
      t.match(headers.get(`x-ratelimit-reset-${unit}`), /^\d+s$/)
    }
  })
}

t.test('tokens that a request did not use are free for the next one', async t => {
  await upstream.reset()
  await upstream.script('a', [{ text: 'Hello', usage: { prompt: 5, completion: 1 } }])
  const left = async (model: string, more: object = {}) => {
    const { status, headers } = await ask(model, more)
    return [status, headers.get('x-ratelimit-remaining-tokens')]
  }
  t.strictSame(await left('spare', { max_tokens: 900 }), [200, '95'])
  t.strictSame(await left('spare', { max_tokens: 85, stream: true }), [200, '904'])
  t.strictSame(await left('spare', { max_tokens: 100 }), [200, '883'])
  const { headers } = await ask('test')
  t.match(headers.get('ratelimit'), /^"requests";/, 'models without a limit show that of the organization')
  t.notOk(headers.get('x-ratelimit-limit-tokens'))
})

const command = commandsOf(gateway)
type Limited = { rateLimits?: object }

t.test(
  'commands set limits of keys, members, projects and organizations, which keep to them and show them',
  async t => {
    await upstream.reset()
    const { id: organization } = await command<{ id: string }>('orgs.create', {
      name: 'limited',
      account: 'open',
      rpd: 4,
    })
    const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web', rph: '3' })
    await command('members.add', { organization, email: 'ada@x.example', role: 'owner', rpm: 2 })
    const made = await command<{ id: string; key: string } & Limited>('keys.create', {
      ...{ project, name: 'ci', createdBy: 'ada@x.example', rpm: 1, tpm: 100_000, concurrency: 5 },
    })
    t.strictSame(made.rateLimits, { rpm: 1, tpm: 100_000, concurrency: 5 })
    const as = (key: string) => ({ authorization: `Bearer ${key}` })
    const call = async (key = made.key) => {
      const response = await gateway.chat('Hello', as(key))
      const body = (await response.json()) as { error?: { message: string } }
      return body.error?.message.replace(/ is reached.*/, '') ?? response.status
    }
    t.equal(await call(), 200)
    t.equal(await call(), 'The limit of 1 requests per minute (rpm) of key "ci"')
    await command('keys.update', { id: made.id, rpm: 'none' })
    t.strictSame((await command<Limited>('keys.show', { id: made.id })).rateLimits, { tpm: 100_000, concurrency: 5 })
    t.equal(await call(), 200)
    t.equal(await call(), 'The limit of 2 requests per minute (rpm) of member "ada@x.example"')
    await command('members.update', { organization, member: 'ada@x.example', rpm: 0 })
    t.equal(await call(), 200)
    t.equal(await call(), 'The limit of 3 requests per hour (rph) of project "web"')
    await command('projects.update', { project, rph: 10 })
    t.equal(await call(), 200)
    t.equal(await call(), 'The limit of 4 requests per day (rpd) of organization "limited"')
    const status = (await (await gateway.get('/v1/key', as(made.key))).json()) as { data: Limited }
    t.strictSame(status.data.rateLimits, [
      { of: 'key', name: 'ci', tpm: 100_000, concurrency: 5 },
      { of: 'project', name: 'web', rph: 10 },
      { of: 'org', name: 'limited', rpd: 4 },
    ])
    await command('orgs.update', { organization, rpd: 100, onLimit: 'notify' })
    const rolled = await command<{ key: string } & Limited>('keys.roll', { id: made.id })
    t.strictSame(rolled.rateLimits, { tpm: 100_000, concurrency: 5 })
    t.equal(await call(rolled.key), 200)
  },
)

t.test('a limit that uses another model sends to it what is beyond, and the answer names both', async t => {
  await upstream.reset()
  const { key } = await command<{ key: string }>('keys.create', {
    ...{ project: 'default', name: 'thrifty', rpm: 1, onLimit: 'use:spare' },
  })
  const used = async (more: object = {}) => {
    const response = await gateway.chat(
      { model: 'test', messages: [{ role: 'user', content: 'Hi' }], ...more },
      { authorization: `Bearer ${key}` },
    )
    const { metadata } = (await response.json()) as { metadata: { requested_model: string; used_model: string } }
    return [response.status, metadata.requested_model, metadata.used_model]
  }
  t.strictSame(await used(), [200, 'test', 'test'])
  t.strictSame(await used(), [200, 'test', 'spare'])
  t.strictSame(await used({ models: ['spare'] }), [200, 'test', 'spare'], 'naming both passes no limit')
  const entries = await upstream.record('a')
  t.strictSame(
    entries.map(({ model }) => model),
    [testMapping.id, 'spare', 'spare'],
  )
})

t.test('end users and tags are counted apart', async t => {
  await upstream.reset()
  const call = async (user: string | undefined, tags: string | undefined) => {
    const body = { model: 'test', messages: [{ role: 'user', content: 'Hi' }], ...(user && { user }) }
    const response = await gateway.chat(body, { ...(tags && { 'x-gateway-tags': tags }) })
    const { error } = (await response.json()) as { error?: { message: string } }
    return error?.message.replace(/ is reached.*/, '') ?? response.status
  }
  for (let times = 0; times < 2; times++) t.equal(await call('ada', undefined), 200)
  t.equal(await call('ada', undefined), 'The limit of 2 requests per minute (rpm) of model "test" and end user "ada"')
  t.equal(await call('bob', undefined), 200)
  t.equal(await call(undefined, undefined), 200)
  for (let times = 0; times < 3; times++) t.equal(await call(undefined, 'team=blue'), 200)
  t.equal(await call(undefined, 'team=blue,a=b'), 'The limit of 3 requests per minute (rpm) of tag "team=blue"')
  t.equal(await call(undefined, 'team=red'), 200)
})
