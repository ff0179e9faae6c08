/** Two providers for one model, the first of which fails in every way that it can. */
import t, { type Test } from 'tap'
import { formatMoney } from '../../src/core/money.ts'
import { openBooks } from '../helpers/books.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants, isErrorBody, metric, untilInFlight } from '../helpers/invariants.ts'
import { readEvents, textOf } from '../helpers/sse.ts'
import { CLOSED_PORT, type Step, startUpstream } from '../helpers/upstream.ts'
import { breaks, chunks, defeats, failures, refused, timeoutsOf, type Verdict } from './failover-cases.ts'

type Tree = Record<string, unknown>
const question = 'Which of the two of you is going to answer this?'
const promptTokens = Math.ceil(question.length / 4)
/** Nano-USD per token. The first is asked because of its priority, although the second is cheaper. */
const rates = { a: { prompt: 4000, completion: 8000 }, b: { prompt: 1000, completion: 2000 } }
const upstream = await startUpstream(t)
const nobody = `http://127.0.0.1:${CLOSED_PORT}/v1`
const usd = (nano: number) => String(nano / 1000)

/** Every case has a model and two providers of its own, so that none has a past with another. */
const idOf = (group: string, index: number) => `${group}${index}`
const providers: Record<string, Tree> = {}
function offer(id: string, steps: { a?: Step | typeof refused; b?: Step | typeof refused }): void {
  for (const side of ['a', 'b'] as const) {
    const step = steps[side] ?? {}
    providers[`${side}-${id}`] = {
      base_url: step === refused ? nobody : upstream.url(`${side}-${id}`),
      priority: side === 'a' ? 100 : 1,
      timeouts: timeoutsOf(step),
      models: [
        {
          ...testMapping,
          model: id,
          id: `${side}-1`,
          pricing: { prompt: usd(rates[side].prompt), completion: usd(rates[side].completion) },
        },
      ],
    }
  }
}
failures.forEach(({ step }, index) => void offer(idOf('failure', index), { a: step }))
breaks.forEach(({ step }, index) => void offer(idOf('break', index), { a: step }))
defeats.forEach(({ a, b }, index) => void offer(idOf('defeat', index), { a, b }))
for (const id of ['blamed', 'alone']) offer(id, {})

const gateway = await startGateway(t, { providers, config: { endpoints: { chat: { admission: { lag: '60s' } } } } })
const books = openBooks(t, gateway)

/** Plays a step at one provider of a case, from its next request on; a provider that is down plays none. */
const play = (side: 'a' | 'b', id: string, step: Step | typeof refused) =>
  step === refused ? undefined : upstream.script(`${side}-${id}`, [step])
const seen = async (side: 'a' | 'b', id: string) => (await upstream.record(`${side}-${id}`)).length

interface Told {
  text: string
  /** Ids of the answer: one, however many attempts there were. */
  ids: string[]
  error: string | null | undefined
  done: boolean
  cost: number
  logId: string
  routing: object[]
}

/** Asks and reads the whole answer, streamed or not. */
async function ask(model: string, stream: boolean): Promise<Told> {
  const response = await gateway.chat({ model, stream, messages: [{ role: 'user', content: question }] })
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  const { data, terminator } = stream
    ? await readEvents<Tree>(response)
    : { data: [(await response.json()) as Tree], terminator: '[DONE]' }
  const last = data.at(-1) as { usage: { cost: number }; metadata: { log_id: string; routing: object[] } }
  const [answer] = data as { choices: { message: { content: string } }[] }[]
  return {
    text: stream ? textOf(data) : answer!.choices[0]!.message.content,
    ids: [...new Set(data.filter(({ error }) => !error).map(({ id }) => String(id)))],
    error: (data.find(({ error }) => error) as { error: { code: string | null } } | undefined)?.error.code,
    done: terminator === '[DONE]',
    cost: last.usage.cost,
    logId: last.metadata.log_id,
    routing: last.metadata.routing,
  }
}

/** Traces of one request: entries of the ledger, and holds that were not closed. */
const ledgerOf = (logId: string) => books.prepare('SELECT kind, amount FROM ledger WHERE request_id = ?').all(logId)
const holdsOf = (logId: string) => books.prepare('SELECT id FROM holds WHERE request_id = ?').all(logId)

/** The log line of a request, once it is there. */
async function lineOf(logId: string): Promise<Tree> {
  for (;;) {
    const line = gateway
      .stderr()
      .split('\n')
      .find(text => text.endsWith('}') && text.includes(logId))
    if (line) return JSON.parse(line) as Tree
    await new Promise(setImmediate)
  }
}
/** What every line says. */
const logged = (requested_model: string, cost: number) => ({
  level: 'info',
  endpoint: 'chat',
  key_id: String,
  project: String,
  requested_model,
  used_model: requested_model,
  cost: formatMoney(BigInt(cost)),
})

const attempt = (provider: string, model: string, [status_code, error_type]: Verdict) => ({
  provider,
  model,
  status_code,
  error_type,
  succeeded: false,
})
const success = (provider: string, model: string) => ({
  provider,
  model,
  status_code: 200,
  error_type: 'none',
  succeeded: true,
})
const priceOf = (side: 'a' | 'b', completion: number) =>
  promptTokens * rates[side].prompt + completion * rates[side].completion

failures.forEach(({ says, step, verdict, only, leaves }, index) => {
  const id = idOf('failure', index)
  t.test(`SF-04 SF-05 the first provider ${says}: the second answers, and is alone charged`, async t => {
    await play('a', id, step)
    await play('b', id, { chunks: ['Here ', 'I am', '.'] })
    const forms = [false, true].filter(stream => only !== (stream ? 'whole' : 'stream'))
    for (const [index, stream] of forms.entries()) {
      const told = await ask(id, stream)
      const failed = leaves && index > 0 ? [] : [attempt(`a-${id}`, id, verdict)]
      t.equal(told.text, 'Here I am.')
      t.match(told, { error: undefined, done: true, cost: priceOf('b', 3) / 1e9 })
      t.equal(told.ids.length, 1, 'one answer')
      t.match(told.routing, [...failed, success(`b-${id}`, id)])
      t.equal(told.routing.length, failed.length + 1)
      t.strictSame(ledgerOf(told.logId), [{ kind: 'charge', amount: -priceOf('b', 3) }])
      t.strictSame(holdsOf(told.logId), [])
      const shown = await gateway.admin('POST', '/commands/requests.show', { id: told.logId })
      const { attempts, held } = (await shown.json()) as { attempts: Tree[]; held: string }
      t.match(held, /^0\.\d+$/)
      t.strictSame(
        attempts.map(({ provider, status, error_type, reason }) => [provider, status, error_type, typeof reason]),
        [...failed.map(one => [one.provider, ...verdict, 'string']), [`b-${id}`, 200, 'none', 'object']],
      )
      if (failed.length === 0) continue
      const line = await lineOf(told.logId)
      t.match(line, { ...logged(id, priceOf('b', 3)), msg: 'request failed over', used_provider: `b-${id}` })
      t.equal((line.attempts as object[]).length, failed.length + 1)
    }
    if (says === 'answers 401') {
      const explained = (await (await gateway.admin('POST', '/commands/route.explain', { model: id })).json()) as Tree
      const circuits = (explained.candidates as Tree[]).map(({ offer, circuit }) => [offer, circuit]).sort()
      t.strictSame(circuits, [
        [`a-${id}/${id}`, 'open'],
        [`b-${id}/${id}`, 'closed'],
      ])
      for (const name of ['list', 'health']) {
        const listed = (await (await gateway.admin('POST', `/commands/providers.${name}`, {})).json()) as Tree[]
        const status = (side: string) => listed.find(provider => provider.id === `${side}-${id}`)?.status
        t.strictSame([status('a'), status('b')], ['credential failing', 'live'])
      }
    }
    if (says === 'answers 401') {
      const text = await gateway.metrics()
      for (const [side, up, failing] of [
        ['a', 0, 1],
        ['b', 1, 0],
      ] as const) {
        const provider = `${side}-${id}`
        t.equal(metric(text, 'gateway_provider_up', { provider }), up)
        t.equal(metric(text, 'gateway_credentials_failing', { provider }), failing)
        t.equal(metric(text, 'gateway_circuits_open', { provider }), failing)
      }
      t.equal(metric(text, 'gateway_database_up'), 1)
      t.equal(metric(text, 'gateway_spool_bytes'), 0)
      for (const name of ['gateway_disk_free_bytes', 'gateway_heap_used_ratio', 'gateway_connections']) {
        t.ok(metric(text, name)! > 0, name)
      }
    }
    const tries = leaves ? 1 : forms.length
    t.equal(await seen('a', id), step === refused ? 0 : tries, 'the first is tried once for each request')
    t.equal(await seen('b', id), forms.length)
  })
})

breaks.forEach(({ says, step, verdict, code, delivered = 2 }, index) => {
  const id = idOf('break', index)
  t.test(
    `SF-01 SF-02 SF-03 SF-06 the provider ${says} after content: nothing is repeated, and what was delivered is charged`,
    async t => {
      await play('a', id, { ...step, chunks, afterChunks: 2 })
      const told = await ask(id, true)
      t.equal(told.text, chunks.slice(0, delivered).join(''))
      t.match(told, { error: code, done: true, cost: priceOf('a', delivered) / 1e9 })
      t.equal(told.ids.length, 1)
      t.match(told.routing, [attempt(`a-${id}`, id, verdict)])
      t.equal(told.routing.length, 1)
      t.strictSame(ledgerOf(told.logId), [{ kind: 'charge', amount: -priceOf('a', delivered) }])
      t.strictSame([await seen('a', id), await seen('b', id)], [1, 0])
      const [status, error_type] = verdict
      t.match(await lineOf(told.logId), {
        ...logged(id, priceOf('a', delivered)),
        msg: 'answer broke off',
        status: 200,
        attempts: [{ provider: `a-${id}`, status, error_type, duration_ms: Number }],
      })
    },
  )
})

/** Nothing was charged for a model, nothing is held for it, and each request has a row that says so. */
async function checkUnpaid(t: Test, model: string, code: string, attempts: number): Promise<void> {
  // A refusal is on its way before its row is kept.
  await untilInFlight(gateway, 0)
  const rows = books
    .prepare('SELECT id, outcome, error_code, cost, attempts FROM requests WHERE requested_model = ?')
    .all(model) as { id: string }[]
  t.match(rows, [
    { outcome: 'error', error_code: code, cost: 0, attempts },
    { outcome: 'error', error_code: code, cost: 0, attempts },
  ])
  for (const { id } of rows) {
    t.strictSame(ledgerOf(id), [])
    t.strictSame(holdsOf(id), [])
  }
}

async function checkRefusal(t: Test, response: Response, status: number, code: string): Promise<void> {
  t.equal(response.status, status)
  t.match(response.headers.get('content-type'), /^application\/json/)
  const body = (await response.json()) as { error: { code: string } }
  t.equal(body.error.code, code)
  t.ok(isErrorBody(body))
}

defeats.forEach(({ says, a, b, status, code }, index) => {
  const id = idOf('defeat', index)
  t.test(`UF-14 both providers are ${says}: the client gets ${status} ${code}, and nothing is charged`, async t => {
    await play('a', id, a)
    await play('b', id, b)
    for (const stream of [false, true]) {
      const response = await gateway.chat({ model: id, stream, messages: [{ role: 'user', content: question }] })
      await checkRefusal(t, response, status, code)
    }
    await checkUnpaid(t, id, code, 2)
    t.strictSame([await seen('a', id), await seen('b', id)], [a === refused ? 0 : 2, b === refused ? 0 : 2])
  })
})

t.test('a request that is itself at fault, or that forbids fallback, is tried once', async t => {
  const cases = [
    {
      id: 'blamed',
      step: { status: 400, body: { error: { message: 'No such knob.', code: 'knob' } } },
      status: 400,
      code: 'knob',
    },
    {
      id: 'alone',
      step: { status: 500 },
      status: 502,
      code: 'all_providers_failed',
      header: { 'x-no-fallback': 'true' },
    },
  ]
  for (const { id, step, status, code, header } of cases) {
    await play('a', id, step)
    for (const stream of [false, true]) {
      const response = await gateway.chat(
        { model: id, stream, messages: [{ role: 'user', content: question }] },
        header,
      )
      await checkRefusal(t, response, status, code)
    }
    await checkUnpaid(t, id, code, 1)
    t.strictSame([await seen('a', id), await seen('b', id)], [2, 0])
  }
})

t.test('the gateway is as it was, and its metrics count every attempt', async t => {
  await checkInvariants(t, gateway, upstream)
  const tried = books.prepare('SELECT sum(attempts) FROM requests').pluck().get()
  t.equal(metric(await gateway.metrics(), 'gateway_attempts_total'), tried)
  // An attempt that broke after content is no success, although its answer had begun.
  const answered = books.prepare("SELECT count(*) FROM requests WHERE outcome = 'ok'").pluck().get()
  t.equal(metric(await gateway.metrics(), 'gateway_attempts_total', { outcome: 'ok' }), answered)
  t.strictSame(books.prepare('SELECT held, balance + used AS rest FROM balances').all(), [{ held: 0, rest: 0 }])
})
