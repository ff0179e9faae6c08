/** What the tests of chat wires check alike: rows of their tables, and what holds of any conversation and any cut. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Test } from 'tap'
import type { Event } from '../../src/core/event.ts'
import type { Target, Translator } from '../../src/core/translator.ts'
import type { WireRequest } from '../../src/core/wire.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { runs } from '../helpers/runs.ts'
import type { Step } from '../helpers/upstream.ts'
import {
  ask,
  call,
  cuts,
  decodePieces,
  errorsOf,
  type golden,
  hi,
  type Json,
  offer,
  type RequestRow,
} from './golden-kit.ts'
import { target } from './wire-kit.ts'

/** A wire as its tests speak to it, with its tables. */
interface Tested {
  wire: Translator<'chat'>
  table: ReturnType<typeof golden>['table']
  encode(request: Json, to: Target): WireRequest
}

/** Rows of `parameters`: fields of the body, where null stands for one that must be absent. `taken` sees each body. */
export async function checkParameters(
  t: Test,
  { table, encode }: Pick<Tested, 'table' | 'encode'>,
  taken?: (sent: WireRequest, name: string) => unknown,
  offered: (mapping?: Json) => Target = offer,
): Promise<void> {
  for (const { name, mapping, request, body } of table<RequestRow>('parameters')) {
    const sent = encode(request, offered(mapping))
    for (const [field, value] of Object.entries(body)) {
      t.strictSame(sent.body[field] ?? null, value, `${name}: ${field}`)
    }
    await taken?.(sent, name)
  }
}

/** Rows of `refusals`: what the wire cannot carry is the caller's fault, and nobody else is asked. */
export function checkRefusals(
  t: Test,
  { table, encode }: Pick<Tested, 'table' | 'encode'>,
  offered: (mapping?: Json) => Target = offer,
): void {
  type Row = { mapping?: Json; request: Json; param: string; message: string; code?: string }
  for (const { name, mapping, request, ...refusal } of table<Row>('refusals')) {
    t.throws(() => encode(request, offered(mapping)), { ...refusal, status: 400, failover: false }, name)
  }
}

/** Rows of `errors`: answers with a status, and whose fault each is. */
export function checkErrors(
  t: Test,
  { wire, table }: Pick<Tested, 'wire' | 'table'>,
  to = target({ secret: 'secret-0123456789' }),
): void {
  for (const { name, status, body, error } of table<{ status: number; body: unknown; error: Json }>('errors')) {
    t.match(wire.error(status, typeof body === 'string' ? body : JSON.stringify(body), to), error, name)
  }
}

/** However the bytes of a stream are cut, they give the events that they give in one piece, which it returns. */
export function checkCuts(t: Test, wire: Translator<'chat'>, bytes: Buffer): Event[] {
  const read = (pieces: readonly Buffer[]) => decodePieces(wire.decoder('stream', target()), pieces)
  const whole = read([bytes])
  const single = Array.from(bytes, (_, i) => bytes.subarray(i, i + 1))
  t.strictSame(read(single), whole, 'S12, S15 byte by byte')
  const holds = fc.property(cuts(bytes), pieces => {
    assert.deepEqual(read(pieces), whole)
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: runs(100), seed: 1 }))
  return whole
}

/** What `prefix` keeps of a body is the same a hundred times, however long the conversation and whatever is asked. */
export function checkPrefix(t: Test, later: Json[], prefix: (more: Json[], rest: Json) => string): string {
  const first = prefix([], {})
  const all = new Set<string>()
  for (let i = 0; i < 100; i++) {
    all.add(prefix(later.slice(0, i % (later.length + 1)), i % 2 ? { temperature: 1 } : {}))
  }
  t.strictSame([...all], [first])
  return first
}

/** Conversations without order: results without calls, ids that come again, texts that are none. */
export function anyMessages(ids: readonly string[], texts: readonly string[]): fc.Arbitrary<Json[]> {
  const id = fc.constantFrom(...ids)
  const words = fc.constantFrom(...texts)
  const parts = fc.array(
    words.map(text => ({ type: 'text', text })),
    { maxLength: 3 },
  )
  const content = fc.oneof(words, fc.constant(null), parts)
  const message: fc.Arbitrary<Json> = fc.oneof(
    fc.record({ role: fc.constantFrom('system', 'developer', 'user', 'assistant'), content }),
    fc.record({ role: fc.constant('assistant'), content, tool_calls: anyCalls(id) }),
    fc.record({ role: fc.constant('tool'), content, tool_call_id: id }),
  )
  return fc.array(message, { minLength: 1, maxLength: 8 })
}

/** Calls of one turn. */
export const anyCalls = (id: fc.Arbitrary<string>): fc.Arbitrary<Json[]> =>
  fc.array(
    fc.tuple(id, fc.constantFrom('{}', '', '{"a":1}')).map(([id, args]) => call(id, args)),
    { maxLength: 3 },
  )

/** A history is refused for a result that no call asked for, or `check` passes what became of it; many do. */
export function checkHistories<Sent>(
  t: Test,
  histories: fc.Arbitrary<Json[]>,
  encode: (messages: Json[]) => Sent,
  check: (sent: Sent) => void,
): void {
  const tried = runs(1000)
  let accepted = 0
  const holds = fc.property(histories, messages => {
    let sent: Sent
    try {
      sent = encode(messages)
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      assert.match(String(thrown.param), /^messages\[\d\]\.tool_call_id$/)
      return
    }
    check(sent)
    accepted += 1
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: tried, seed: 1 }))
  t.ok(accepted > tried / 5, 'many histories are valid')
}

/** What `checkFailures` has the scripted provider do, one request each. */
export const failures: Step[] = [
  { fault: 'truncate' },
  { fault: 'error-event', afterChunks: 1 },
  { status: 429 },
  { fault: 'error-in-200' },
]

/** Each of `failures` is told as what it is. */
export async function checkFailures(t: Test, wire: Translator<'chat'>, url: string, to: Target): Promise<void> {
  const fail = () => ask(wire, url, { messages: [hi], stream: true }, to)
  t.match(errorsOf(await fail()), [{ code: 'upstream_stream_truncated' }])
  t.match(errorsOf(await fail()), [{ status: 502, message: 'Simulated failure 500.' }])
  await t.rejects(fail(), { code: 'upstream_rate_limited' })
  t.match(errorsOf(await fail()), [{ message: 'Simulated failure 500.' }])
}
