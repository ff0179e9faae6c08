/** Limits of every kind under two hundred requests at once (docs/rate-limits.md). */
import t from 'tap'
import { type RateKind, rateKinds, windowKinds } from '../../src/limits/kinds.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { startUpstream } from '../helpers/upstream.ts'

const upstream = await startUpstream(t, { key: upstreamSecret })
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
  t.test(`two hundred requests at once pass the limit ${kind} by at most one, and each refusal names it`, async t => {
    await upstream.reset()
    const isPlace = kind === 'concurrency'
    await upstream.script('a', [{ text: 'Hello', usage, ...(isPlace && { hold: 0 }) }])
    const asked = Array.from({ length: 200 }, () => ask(`m-${kind}`))
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
    t.equal(served.length + refused.length, 200)
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
