/**
 * Whatever is sent, answered and left: no balance passes its bound, nothing stays held, and what providers do is paid.
 * SPENDING_RUNS sets how many mixes are tried.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Event } from '../../src/core/event.ts'
import type { Principal, Services } from '../../src/core/ports.ts'
import { billing } from '../../src/filters/billing/index.ts'
import { asError, errors } from '../../src/lib/error.ts'
import { checkBooks } from '../../src/stores/sqlite/books.ts'
import { SqliteLedger } from '../../src/stores/sqlite/ledger.ts'
import { openDatabase } from '../../src/stores/sqlite/open.ts'
import { Writer } from '../../src/stores/sqlite/writer.ts'
import { exchange, principal, text } from '../core/kit.ts'
import { flat } from '../core/prices.ts'
import { runs } from '../helpers/runs.ts'
import { target } from '../plugins/wire-kit.ts'
import { seed } from './subject.ts'

const RUNS = Number(process.env.SPENDING_RUNS ?? runs(100))
/** Nano-USD a token. */
const PROMPT = 1000n
const ANSWER = 2000n
const PROMPT_TOKENS = 10

const ask = fc.record({
  stream: fc.boolean(),
  limit: fc.option(fc.integer({ min: 1, max: 400 })),
  n: fc.integer({ min: 1, max: 3 }),
  /** Tokens of each piece that the provider sends. */
  pieces: fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 12 }),
  reports: fc.boolean(),
  /** The client leaves with this piece. */
  leaves: fc.option(fc.nat(12)),
  fails: fc.option(fc.nat(12), { freq: 6 }),
})
type Ask = typeof ask extends fc.Arbitrary<infer A> ? A : never

/** What a provider bills, and what of it can be lost with a stream that ends between two pieces. */
interface Bill {
  due: bigint
  slack: bigint
  /** What was still written once the client had left: nothing more is held for it. */
  after: bigint
}

async function serve(filter: ReturnType<typeof billing.create>, payer: Principal, asked: Ask): Promise<Bill> {
  const { stream, limit, n, pieces, reports, leaves, fails } = asked
  const signal = new Cancellation()
  const to = target({
    mapping: {
      price: flat({ prompt: '1', completion: '2' }),
      supports: new Set(['streaming']),
      maxOutput: 500,
    },
  })
  const messages = [{ role: 'user', content: 'x'.repeat(PROMPT_TOKENS * 4) }]
  const request = { model: 'acme-large', messages, stream, n, ...(limit !== null && { max_tokens: limit }) }
  const ex = exchange({ request, target: to, principal: payer, signal })
  const bill: Bill = { due: 0n, slack: 0n, after: 0n }
  let written = 0
  let broke = false
  async function* answer(): AsyncGenerator<Event[]> {
    let left = Math.min(ex.outbound.limit?.tokens ?? 500, limit ?? 500) * n
    for (const [at, piece] of pieces.entries()) {
      if (fails === at) {
        broke = true
        throw errors.truncated()
      }
      const tokens = Math.min(piece, left)
      if (tokens === 0) break
      left -= tokens
      written += tokens
      if (signal.aborted) bill.after += BigInt(tokens) * ANSWER
      if (leaves === at) signal.abort(errors.aborted())
      yield [text('x'.repeat(tokens * 4))]
    }
    if (reports) yield [{ type: 'usage', usage: { prompt: PROMPT_TOKENS, completion: written } }]
    for (let choice = 0; choice < n; choice++) yield [{ type: 'finish', choice, reason: 'stop' }]
  }
  const next = async () => {
    ex.outbound.atProvider = true
    const events = answer()
    if (stream) return { status: 200, headers: [], events }
    const whole: Event[][] = []
    for await (const batch of events) whole.push(batch)
    return {
      status: 200,
      headers: [],
      events: (async function* () {
        yield* whole
      })(),
    }
  }
  try {
    for await (const batch of (await filter.handle!(ex, next)).events) {
      ex.observe(batch)
      if (signal.reason) throw signal.reason
    }
    ex.answer.outcome = 'ok'
  } catch (thrown) {
    ex.answer.failure = asError(thrown)
    ex.answer.outcome = signal.aborted ? 'aborted' : 'error'
  }
  await filter.finish!(ex, true)
  // Providers that fail are not paid for what nobody saw.
  if (ex.outbound.atProvider && !(broke && (!stream || ex.timings.firstToken === 0))) {
    bill.due = BigInt(PROMPT_TOKENS) * PROMPT + BigInt(written) * ANSWER
    bill.slack = bill.after + (ex.answer.isCut ? 60n * ANSWER : 0n)
  }
  return bill
}

t.test(`spending stays within its bound over ${RUNS} mixes of requests`, async t => {
  const credit = fc.bigInt(0n, 3_000_000n)
  const property = fc.asyncProperty(credit, fc.array(ask, { minLength: 1, maxLength: 12 }), async (credit, asks) => {
    const db = openDatabase(':memory:')
    const writer = new Writer(db)
    const warn = (error: unknown) => {
      throw error
    }
    const ledger = new SqliteLedger(db, writer, { now: Date.now, warn })
    const { orgId, projectId } = seed(db, 'prepaid', credit)
    const metrics = { tokens() {}, cost() {}, unpriced() {} }
    const log = { warn: (fields: object, message: string) => assert.fail(`${message} ${JSON.stringify(fields)}`) }
    const services = { ledger, metrics, log, now: Date.now } as unknown as Services
    const filter = billing.create({ stream_hold: 100, least_output: 20, hold_unmeasured: true, storage: '0' }, services)
    const payer = { ...principal, orgId, projectId, account: 'prepaid' as const }
    const bills = await Promise.all(asks.map(asked => serve(filter, payer, asked)))
    const { balance, held } = await ledger.balance(orgId)
    const sum = (of: (bill: Bill) => bigint) => bills.reduce((all, bill) => all + of(bill), 0n)
    assert.equal(held, 0n)
    assert.ok(balance >= -sum(({ after }) => after), `the balance is ${balance}`)
    const charged = credit - balance
    assert.ok(charged >= sum(({ due }) => due) - sum(({ slack }) => slack), `charged ${charged}`)
    assert.ok(charged <= sum(({ due }) => due), `charged ${charged}`)
    assert.deepEqual(await checkBooks(db), [])
    await ledger.close()
    db.close()
  })
  await t.resolves(fc.assert(property, { numRuns: RUNS }))
})
