/** Stored responses: what a request continues is bounded, and an answer is stored before its end or not at all. */
import t, { type Test } from 'tap'
import type { Event } from '../../src/core/event.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { ResponseRecord, ResponseShare, Services } from '../../src/core/ports.ts'
import { responses as endpoint } from '../../src/endpoints/inference.ts'
import { responses } from '../../src/filters/responses.ts'
import { errors, GatewayError } from '../../src/lib/error.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { eventsOf, exchange, text } from '../core/kit.ts'
import { principalOf } from '../core/principal.ts'

type Json = Record<string, unknown>

const NOW = 1_000_000
const MIB = 1024 * 1024
const usual = { max_response: 4 * MIB, organization: 1024 * MIB, session: 64 * MIB, max_chain: 1000 }
const finish: Event = { type: 'finish', choice: 0, reason: 'stop' }

/** A project that stores responses for 1,000 seconds, and what its requests are answered. */
function project(options: Partial<typeof usual> = {}) {
  const records = new Map<string, ResponseRecord>()
  const log: string[] = []
  const state = {
    fails: false,
    isFull: false,
    filled: 0,
    shares: [] as ResponseShare[],
    onAdd: () => {},
    onFind: () => {},
  }
  const budget = new MemoryBudget(8 * MIB, { memory: () => 0 })
  const find = async (id: string, _owner: unknown, since: number) => {
    state.onFind()
    if (state.fails) throw errors.responsesUnavailable(new Error('disk'))
    const found = records.get(id)
    return found && found.createdAt >= since ? found : undefined
  }
  const services = {
    responses: {
      find,
      findTurn: find,
      async add(record: ResponseRecord, _owner: unknown, share: ResponseShare) {
        state.onAdd()
        state.shares.push(share)
        if (state.fails) throw errors.responsesUnavailable(new Error('disk'))
        if (!state.isFull) records.set(record.id, record)
        return !state.isFull
      },
    },
    memory: budget,
    log: { warn: (_fields: object, message: string) => void log.push(message) },
    now: () => NOW,
  } as unknown as Services
  const filter = responses.create({ ...usual, ...options }, services)
  /** The answer, or what the request is refused with. `said`: what a provider says. */
  const ask = async (given: Json, said: readonly Event[] = [text('Hi'), finish], answered = (_ex: Exchange) => {}) => {
    const principal = principalOf({ responsesMs: 1_000_000 })
    const ex = exchange({ endpoint, principal, body: async () => ({ model: 'm', input: 'Hi', ...given }) })
    try {
      const reply = await filter.handle!(ex, async () => {
        await ex.readRequest()
        return { status: 200, headers: [], events: eventsOf(said) }
      })
      const encoder = endpoint.codec.encoder(ex)
      let out = ''
      for await (const batch of reply.events) out += encoder.write(batch) ?? ''
      const {
        answer: { failure },
      } = ex
      answered(ex)
      await encoder.conclude?.(failure)
      out += encoder.end()
      const last = ex.streaming ? out.slice(out.lastIndexOf('\ndata: ') + 7) : out
      return { ex, response: (ex.streaming ? JSON.parse(last).response : JSON.parse(last)) as Json, out }
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      return { ex, refused: thrown, response: {} as Json, out: '' }
    } finally {
      filter.finish!(ex, true)
      if (budget.used > state.filled) log.push('memory is held after the request')
    }
  }
  const fill = (bytes: number) => {
    budget.lease(principalOf().orgId, bytes).grow(bytes)
    state.filled = budget.used
  }
  return { records, log, state, ask, fill }
}

/** A conversation of so many turns; the id of its last response. */
async function conversation({ ask }: ReturnType<typeof project>, turns: number, given: Json = {}): Promise<string> {
  let previous: unknown
  for (let turn = 0; turn < turns; turn++) {
    const { response, refused } = await ask({ ...given, ...(turn > 0 && { previous_response_id: previous }) })
    if (refused) throw refused
    previous = response.id
  }
  return String(previous)
}

const refusal = (t: Test, { refused }: { refused?: GatewayError }, expected: object) =>
  t.match(refused && { ...refused, message: refused.message }, expected)

t.test('a request goes on from so many responses, characters and values, and memory for them is taken', async t => {
  const long = { input: 'x'.repeat(400_000) }
  const many = { input: [{ role: 'user', content: 'a', extra: Array.from({ length: 12_000 }, () => 1) }] }
  const rows: [options: Partial<typeof usual>, turns: number, given: Json, filled: number, refused?: object][] = [
    [{ max_chain: 3 }, 3, {}, 0],
    [{ max_chain: 2 }, 2, {}, 0],
    [{}, 2, long, 0],
    [{}, 2, long, 4.8 * MIB, { status: 529 }],
    [{}, 3, many, 0],
    [{}, 4, many, 0, { status: 400, message: /more than 40000 JSON values/ }],
  ]
  for (const [options, turns, given, filled, refused] of rows) {
    const own = project(options)
    const previous = await conversation(own, turns, given)
    own.fill(filled)
    const next = await own.ask({ ...given, previous_response_id: previous })
    if (refused) refusal(t, next, refused)
    else t.match(next.response, { status: 'completed', previous_response_id: previous })
    t.strictSame(own.log, [])
  }
  const short = project({ max_chain: 2 })
  const previous = await conversation(short, 2)
  const third = await short.ask({ previous_response_id: previous })
  refusal(t, await short.ask({ previous_response_id: third.response.id }), {
    status: 400,
    param: 'previous_response_id',
    message: /more than 2 responses. Begin a new one/,
  })
  const items = Array.from({ length: 3 }, (_, n) => ({
    type: 'item_reference',
    id: `msg_${'a'.repeat(19)}${'bcd'[n]}_0`,
  }))
  refusal(t, await short.ask({ input: items }), { status: 400, message: /items of more than 2 responses/ })
})

t.test('an input that is too large to be stored is not written', async t => {
  const own = project()
  let written = 0
  const toJSON = () => {
    written++
    return {}
  }
  const item = (text: string) => ({ role: 'user', content: text, extra: { toJSON } })
  t.equal((await own.ask({ input: [item('a')] })).response.store, true)
  t.equal(written, 1)
  t.equal((await own.ask({ input: [item('a'.repeat(4 * MIB))] })).response.store, false)
  t.equal(written, 1)
})

t.test('responses past their time, or of no project, are not found', async t => {
  const own = project()
  const { response } = await own.ask({})
  const record = own.records.get(String(response.id))!
  own.records.set(record.id, { ...record, createdAt: NOW - 1_000_001 })
  const gone = { status: 400, code: 'previous_response_not_found', message: new RegExp(record.id) }
  refusal(t, await own.ask({ previous_response_id: record.id }), gone)
  own.records.set(record.id, { ...record, createdAt: NOW - 1_000_000 })
  t.match((await own.ask({ previous_response_id: record.id })).response, { status: 'completed' })
})

t.test('a conversation without one of its responses is refused, and its missing response named', async t => {
  const rows: [what: string, lose: (own: ReturnType<typeof project>, id: string) => void][] = [
    ['removed', ({ records }, id) => records.delete(id)],
    ['past its time', ({ records }, id) => records.set(id, { ...records.get(id)!, createdAt: NOW - 1_000_001 })],
  ]
  for (const [what, lose] of rows) {
    t.comment(what)
    for (const place of [0, 1, 2]) {
      const own = project()
      const last = await conversation(own, 3)
      const id = [...own.records.keys()][place]!
      lose(own, id)
      const next = await own.ask({ previous_response_id: last, input: 'On' })
      const param = 'previous_response_id'
      refusal(t, next, { status: 400, code: 'previous_response_not_found', param, message: new RegExp(id) })
    }
  }
})

t.test('an answer that cannot be stored says so at its end, and is answered all the same', async t => {
  const rows: [what: string, options: Partial<typeof usual>, prepare: (own: ReturnType<typeof project>) => void][] = [
    ['the store fails', {}, ({ state }) => void Object.assign(state, { fails: true })],
    ['the organization has no room', {}, ({ state }) => void Object.assign(state, { isFull: true })],
    ['it is too large', { max_response: 500 }, () => {}],
  ]
  for (const [what, options, prepare] of rows) {
    for (const stream of [false, true]) {
      const own = project(options)
      prepare(own)
      const { response, out } = await own.ask({ stream })
      t.match(response, { status: 'completed', store: false, output: [{ content: [{ text: 'Hi' }] }] }, what)
      if (stream) t.match(out, /response\.created[^\n]*\n[^\n]*"store":true/, `${what}: the stream began otherwise`)
      t.equal(own.records.size, 0, what)
      t.strictSame(own.log, own.state.fails ? ['response not stored'] : [], what)
    }
  }
  const own = project()
  const { response } = await own.ask({})
  own.state.fails = true
  refusal(t, await own.ask({ previous_response_id: response.id }), { status: 503, code: 'store_unavailable' })
})

t.test('an answer is stored before its last event is written, whole and with what it says of itself', async t => {
  const own = project()
  let written = ''
  const { now } = Date
  t.teardown(() => {
    Date.now = now
  })
  own.state.onAdd = () => {
    written = 'stored'
    Date.now = () => now() + 5000
  }
  const { response, out } = await own.ask({ stream: true, metadata: { a: 'b' } })
  t.equal(written, 'stored')
  t.match(out, /response\.completed/)
  const { turn, answer } = own.records.get(String(response.id))!
  t.strictSame({ ...JSON.parse(answer), output: JSON.parse(turn).output }, response)
  t.match(JSON.parse(turn), { input: [{ role: 'user', content: 'Hi' }], values: 17 })
  t.strictSame(own.state.shares, [{ bytes: 1024 * MIB, session: 64 * MIB, dropped: 200 }])
})

t.test('items that a body refers to wrongly are left to its decoding', async t => {
  const own = project()
  for (const input of [7, { a: 1 }, [7], [{ id: 7 }], [{ id: 'msg_x' }], [{ type: 'item_reference' }], [null]]) {
    const { refused } = await own.ask({ input, previous_response_id: 7 })
    t.equal(refused?.status, 400, JSON.stringify(input))
  }
  for (const body of [null, [], 'x', { previous_response_id: {} }]) {
    const { refused } = await own.ask({ input: body })
    t.equal(refused?.status ?? 200, body === 'x' ? 200 : 400, JSON.stringify(body))
  }
})
