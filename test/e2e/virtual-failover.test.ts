/** One virtual model of three models over three wires, the first of which fails in every way that it can. */
import t, { type Test } from 'tap'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants, isErrorBody, metric, untilInFlight } from '../helpers/invariants.ts'
import { readEvents, textOf } from '../helpers/sse.ts'
import { CLOSED_PORT, type Step, startUpstream } from '../helpers/upstream.ts'
import { breaks, chunks, defeats, failures, isSilent, refused, timeoutsOf, type Verdict } from './failover-cases.ts'

type Tree = Record<string, unknown>

/** Nano-USD per token. */
const wires = [
  { id: 'chat', wire: 'openai.chat', prompt: 4000, completion: 8000 },
  { id: 'claude', wire: 'anthropic.messages', prompt: 1000, completion: 2000 },
  { id: 'answers', wire: 'openai.responses', prompt: 3000, completion: 5000 },
] as const
type Wire = (typeof wires)[number]
const after = (wire: Wire, by: number) => wires[(wires.indexOf(wire) + by) % wires.length]!
const question = 'Which of the three of you is going to answer this?'
const promptTokens = Math.ceil(question.length / 4)
const usage = { prompt: promptTokens, completion: 3 }
const answer: Step = { chunks: ['Here ', 'I am', '.'], usage }
const priceOf = ({ prompt, completion }: Wire, tokens: number) => promptTokens * prompt + completion * tokens

const upstream = await startUpstream(t, { key: upstreamSecret })
const usd = (nano: number) => String(nano / 1000)
const providers: Record<string, Tree> = {}
const virtual: Tree[] = []
/** A provider with one model, both of this name. */
function offer(id: string, { wire, prompt, completion }: Wire, step: Step | typeof refused = {}): string {
  providers[id] = {
    base_url: step === refused ? `http://127.0.0.1:${CLOSED_PORT}/v1` : upstream.url(id),
    ...(wire === 'anthropic.messages' && { auth: { scheme: 'header', header: 'x-api-key', secret: upstreamSecret } }),
    wires: { chat: wire },
    timeouts: timeoutsOf(step),
    models: [
      { ...testMapping, model: id, id: `${id}-1`, pricing: { prompt: usd(prompt), completion: usd(completion) } },
    ],
  }
  return id
}
/** Every case has a virtual model and a first target of its own, so that none has a past with another. */
const idOf = (group: string, index: number, wire: Wire) => `${group}${index}-${wire.id}`
const name = (model: string) => `any-${model}`
for (const wire of wires) offer(wire.id, wire)
for (const wire of wires) {
  const group = (kind: string, rows: readonly { step: Step | typeof refused }[]) => {
    for (const [index, { step }] of rows.entries()) {
      const id = offer(idOf(kind, index, wire), wire, step)
      virtual.push({ id: name(id), use: [id, after(wire, 1).id, after(wire, 2).id] })
    }
  }
  group('failure', failures)
  group('break', breaks)
  group('blamed', [{ step: {} }])
  group('alone', [{ step: {} }])
  const two = offer(idOf('two', 1, wire), after(wire, 1))
  virtual.push({ id: name(two), use: [offer(idOf('two', 0, wire), wire), two, after(wire, 2).id] })
}
for (const [index, { a, b }] of defeats.entries()) {
  const first = wires[index % wires.length]!
  const use = [a, b, b].map((step, place) => offer(`defeat${index}-${place}`, after(first, place), step))
  virtual.push({ id: `any-defeat${index}`, use })
}
virtual.push({ id: 'loop', use: ['claude', 'answers', 'chat'] }, { id: 'native', use: ['chat', 'answers', 'claude'] })
const gateway = await startGateway(t, {
  providers,
  config: {
    catalog: { routes: './routes.d' },
    endpoints: { chat: { ratelimit: { rpm: 100_000 }, admission: { lag: '60s' } } },
  },
  files: { 'config/routes.d/all.yaml': JSON.stringify({ virtual_models: virtual }) },
})
const books = openBooks(t, gateway)
const command = commandsOf(gateway)
for (const { id } of wires) await upstream.script(id, [answer])

const play = (id: string, step: Step | typeof refused) => (step === refused ? undefined : upstream.script(id, [step]))
/** One form is enough where a timeout is waited for. */
const formsOf = (step: Step | typeof refused) => (isSilent(step) ? [true] : [false, true])
const seen = async (id: string) => (await upstream.record(id)).length

interface Attempt {
  provider: string
  model: string
  status_code: number
  error_type: string
  succeeded: boolean
}
interface Told {
  text: string
  ids: string[]
  error: string | null | undefined
  done: boolean
  cost: number
  metadata: { log_id: string; requested_model: string; used_model: string; routing: Attempt[] }
}

/** Asks and reads the whole answer, streamed or not. */
async function ask(model: string, stream: boolean): Promise<Told> {
  const response = await gateway.chat({ model, stream, messages: [{ role: 'user', content: question }] })
  if (response.status !== 200) throw new Error(`${model}: ${response.status} ${await response.text()}`)
  const { data, terminator } = stream
    ? await readEvents<Tree>(response)
    : { data: [(await response.json()) as Tree], terminator: '[DONE]' }
  const last = data.at(-1) as { usage: { cost: number }; metadata: Told['metadata'] }
  const [whole] = data as { choices: { message: { content: string } }[] }[]
  return {
    text: stream ? textOf(data) : whole!.choices[0]!.message.content,
    ids: [...new Set(data.filter(({ error }) => !error).map(({ id }) => String(id)))],
    error: (data.find(({ error }) => error) as { error: { code: string | null } } | undefined)?.error.code,
    done: terminator === '[DONE]',
    cost: last.usage.cost,
    metadata: last.metadata,
  }
}
const ledgerOf = (id: string) => books.prepare('SELECT kind, amount FROM ledger WHERE request_id = ?').all(id)
const holdsOf = (id: string) => books.prepare('SELECT id FROM holds WHERE request_id = ?').all(id)
const heldFor = async (id: string) => (await command<{ held: string }>('requests.show', { id })).held
const failed = (id: string, [status_code, error_type]: Verdict) => ({
  provider: id,
  model: id,
  status_code,
  error_type,
  succeeded: false,
})
const succeeded = (id: string) => ({
  provider: id,
  model: id,
  status_code: 200,
  error_type: 'none',
  succeeded: true,
})

/** What each model holds for the question, asked for by its own name. */
const held = new Map<string, string>()
t.test('each model alone holds and charges by its own price', async t => {
  for (const wire of wires) {
    const told = await ask(wire.id, false)
    t.equal(told.cost, priceOf(wire, 3) / 1e9)
    held.set(wire.id, await heldFor(told.metadata.log_id))
  }
  t.equal(new Set(held.values()).size, wires.length)
})

/** Charged once, by the price of the model that answered, which alone money was held for in the end. */
async function checkPaid(t: Test, told: Told, by: Wire, tokens: number): Promise<void> {
  const { log_id } = told.metadata
  t.equal(told.cost, priceOf(by, tokens) / 1e9)
  t.strictSame(ledgerOf(log_id), [{ kind: 'charge', amount: -priceOf(by, tokens) }])
  t.strictSame(holdsOf(log_id), [])
}

interface Explained {
  candidates: { offer: string; place: number | null; circuit: string }[]
  excluded: { offer: string; reason: string }[]
}

for (const [index, { says, step, verdict, only, leaves }] of failures.entries()) {
  t.test(
    `the first model's provider ${says}: the second model answers, and is alone charged`,
    { buffered: true },
    async t => {
      await Promise.all(
        wires.map(async wire => {
          // A stream that says nothing but who speaks is written by hand, for one wire.
          if (step !== refused && step.raw && wire.id !== 'chat') return
          const id = idOf('failure', index, wire)
          const next = after(wire, 1)
          await play(id, step)
          const forms = formsOf(step).filter(stream => only !== (stream ? 'whole' : 'stream'))
          for (const [turn, stream] of forms.entries()) {
            const told = await ask(name(id), stream)
            const isAside = leaves && turn > 0
            t.match(told, { text: 'Here I am.', error: undefined, done: true }, `${id} ${stream}`)
            t.equal(told.ids.length, 1, 'one answer')
            t.match(told.metadata, { requested_model: name(id), used_model: next.id })
            const { routing } = told.metadata
            t.match(routing, [...(isAside ? [] : [failed(id, verdict)]), succeeded(next.id)], `${id} ${stream}`)
            t.equal(routing.length, isAside ? 1 : 2)
            await checkPaid(t, told, next, 3)
            t.equal(await heldFor(told.metadata.log_id), held.get(next.id))
          }
          t.equal(await seen(id), step === refused ? 0 : leaves ? 1 : forms.length, 'tried once for each request')
          const { candidates, excluded } = await command<Explained>('route.explain', { model: name(id) })
          const order = [id, next.id, after(wire, 2).id]
          t.strictSame(
            candidates.map(({ offer }) => offer).sort(),
            order.map(one => `${one}/${one}`).sort(),
            'explain names every target',
          )
          t.strictSame(excluded, [])
          if (!leaves) return
          // What a provider has put aside is tried last, and explain says so.
          const own = candidates.find(({ offer }) => offer === `${id}/${id}`)!
          t.equal(own.circuit, 'open')
        }),
      )
    },
  )
}

t.test('two models fail: the third answers, and neither of them is charged', async t => {
  for (const wire of wires) {
    const [first, second, last] = [idOf('two', 0, wire), idOf('two', 1, wire), after(wire, 2)]
    await play(first, { status: 503 })
    await play(second, { fault: 'reset' })
    for (const stream of [false, true]) {
      const told = await ask(name(second), stream)
      t.match(told, { text: 'Here I am.', done: true, metadata: { used_model: last.id } })
      t.match(told.metadata.routing, [
        failed(first, [503, 'upstream_error']),
        failed(second, [0, 'network_error']),
        succeeded(last.id),
      ])
      await checkPaid(t, told, last, 3)
      t.equal(await heldFor(told.metadata.log_id), held.get(last.id))
    }
  }
})

for (const [index, { says, step, verdict, code, delivered = 2 }] of breaks.entries()) {
  t.test(
    `the first model's provider ${says} after content: no other model begins again`,
    { buffered: true },
    async t => {
      await Promise.all(
        wires.map(async wire => {
          const id = idOf('break', index, wire)
          await play(id, { ...step, chunks, afterChunks: 2 })
          const told = await ask(name(id), true)
          t.equal(told.text, chunks.slice(0, delivered).join(''), id)
          t.match(told, { error: code, done: true, metadata: { requested_model: name(id), used_model: id } }, id)
          t.equal(told.ids.length, 1)
          t.match(told.metadata.routing, [failed(id, verdict)], id)
          t.equal(told.metadata.routing.length, 1)
          await checkPaid(t, told, wire, delivered)
          t.equal(await seen(id), 1)
        }),
      )
    },
  )
}

async function checkRefusal(t: Test, response: Response, status: number, code: string): Promise<void> {
  t.equal(response.status, status)
  const body = (await response.json()) as { error: { code: string } }
  t.equal(body.error.code, code)
  t.ok(isErrorBody(body))
}
const unpaid = (model: string) =>
  books.prepare('SELECT id, error_code, cost, attempts FROM requests WHERE requested_model = ?').all(model) as {
    id: string
  }[]

for (const [index, { says, a, b, status, code }] of defeats.entries()) {
  t.test(`all models are ${says}: the client gets ${status} ${code}, and nothing is charged`, async t => {
    const ids = [0, 1, 2].map(place => `defeat${index}-${place}`)
    await Promise.all(ids.map((id, place) => play(id, place === 0 ? a : b)))
    for (const stream of formsOf(a)) {
      const messages = [{ role: 'user', content: question }]
      await checkRefusal(t, await gateway.chat({ model: `any-defeat${index}`, stream, messages }), status, code)
    }
    await untilInFlight(gateway, 0)
    const rows = unpaid(`any-defeat${index}`)
    t.match(
      rows,
      formsOf(a).map(() => ({ error_code: code, cost: 0, attempts: 3 })),
    )
    for (const { id } of rows) t.strictSame([ledgerOf(id), holdsOf(id)], [[], []])
  })
}

t.test('a request that is itself at fault, or that forbids fallback, reaches one model', async t => {
  for (const wire of wires) {
    const cases = [
      {
        id: idOf('blamed', 0, wire),
        step: { status: 400, body: { error: { message: 'No such knob.' } } },
        status: 400,
      },
      { id: idOf('alone', 0, wire), step: { status: 500 }, status: 502, header: { 'x-no-fallback': 'true' } },
    ]
    for (const { id, step, status, header } of cases) {
      await play(id, step)
      const messages = [{ role: 'user', content: question }]
      const refusal = await gateway.chat({ model: name(id), messages }, header)
      t.equal(refusal.status, status, await refusal.text())
      await untilInFlight(gateway, 0)
      t.match(unpaid(name(id)), [{ cost: 0, attempts: 1 }])
      t.equal(await seen(id), 1)
    }
  }
})

/** Thinking of one turn goes back to the model that signed it, and to no other one. */
t.test('reasoning goes back to its own provider alone', async t => {
  const tools = [{ name: 'look', input_schema: { type: 'object' } }]
  const call: Step = { reasoning: 'Let me look.', toolCalls: [{ name: 'look', args: {} }] }
  await upstream.script('claude', [call, { status: 503 }, answer])
  await upstream.script('answers', [answer])
  const user = { role: 'user', content: question }
  const asked = async (messages: object[]) => {
    const thinking = { type: 'enabled', budget_tokens: 1024 }
    const response = await gateway.post('/v1/messages', { model: 'loop', max_tokens: 2048, thinking, tools, messages })
    const body = (await response.json()) as { content: Tree[]; metadata: Told['metadata'] }
    t.equal(response.status, 200, JSON.stringify(body))
    return body
  }
  const first = await asked([user])
  const { signature } = first.content.find(({ type }) => type === 'thinking') as { signature: string }
  const { id } = first.content.find(({ type }) => type === 'tool_use') as { id: string }
  t.ok(signature)
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'seen' }] }
  const turns = [user, { role: 'assistant', content: first.content }, result]
  const sent = async (model: string) => JSON.stringify((await upstream.record(model)).at(-1)!.body)
  const second = await asked(turns)
  t.match(second.metadata, { used_model: 'answers', routing: [{ model: 'claude' }, { model: 'answers' }] })
  const own = await sent('claude')
  t.ok(own.includes('Let me look.'), own)
  const foreign = await sent('answers')
  t.ok(foreign.includes('seen') && foreign.includes('look'), 'the loop goes on')
  for (const secret of [signature, 'Let me look.']) t.notOk(foreign.includes(secret), foreign)
  const third = await asked(turns)
  t.equal(third.metadata.used_model, 'claude')
  t.ok((await sent('claude')).includes('Let me look.'))
})

t.test('native parts of a body are sent to their own wire alone', async t => {
  for (const { id } of wires) await upstream.script(id, [answer])
  const system = [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }]
  const messages = [{ role: 'user', content: question }]
  const ask = async (more: object) => {
    const response = await gateway.post('/v1/messages', { model: 'native', max_tokens: 9, system, messages, ...more })
    const body = (await response.json()) as { metadata: Told['metadata'] }
    t.equal(response.status, 200, JSON.stringify(body))
    return body.metadata
  }
  const sent = async (model: string) => JSON.stringify((await upstream.record(model)).at(-1)?.body)
  t.equal((await ask({ metadata: { user_id: 'u' } })).used_model, 'chat')
  t.notMatch(await sent('chat'), 'cache_control')
  await upstream.script('chat', [{ status: 503 }])
  await upstream.script('answers', [{ status: 503 }])
  t.match(await ask({}), { used_model: 'claude', routing: { length: 3 } })
  t.match(await sent('claude'), 'cache_control')
})

t.test('the gateway is as it was, and money equals the sum of what each attempt owes', async t => {
  await checkInvariants(t, gateway, upstream)
  const tried = books.prepare('SELECT sum(attempts) FROM requests').pluck().get()
  t.equal(metric(await gateway.metrics(), 'gateway_attempts_total'), tried)
  const [{ used }] = books.prepare('SELECT held, used FROM balances').all() as [{ used: number }]
  t.strictSame(books.prepare('SELECT held, balance + used AS rest FROM balances').all(), [{ held: 0, rest: 0 }])
  t.equal(used, books.prepare('SELECT sum(cost) FROM requests').pluck().get())
})
