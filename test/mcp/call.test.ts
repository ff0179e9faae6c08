/** A call of another endpoint within the process. */
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import { compile } from '../../src/core/chain.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Filter } from '../../src/core/filter.ts'
import type { Access } from '../../src/core/policy.ts'
import type { Snapshot } from '../../src/core/snapshot.ts'
import { chat } from '../../src/endpoints/inference.ts'
import { errors } from '../../src/lib/error.ts'
import { type Called, call } from '../../src/mcp/call.ts'
import { eventsOf, exchange, principal, text } from '../core/kit.ts'

const path = '/v1/chat/completions'
const body = { model: 'test', messages: [{ role: 'user', content: 'hi' }] }
const lease = (room = true) => ({ held: 0, grow: () => room, keep: () => undefined, release: () => undefined })

/** An exchange of a gateway with the chat endpoint alone, whose chain is `handle` around an answer. */
function caller(handle: Filter['handle'], finished: string[] = []): Exchange {
  const filter = {
    handle: handle!,
    finish: (ex: Exchange) => void finished.push(`${ex.answer.outcome} ${ex.answer.status}`),
  }
  const factory = { name: 'own', options: { json: {} }, create: () => filter }
  const chain = compile([{ factory, options: {}, filter }], async ex => {
    await ex.readRequest()
    return {
      status: 200,
      headers: [],
      events: eventsOf([text('hello'), { type: 'finish', choice: 0, reason: 'stop' }]),
    }
  })
  const snapshot: Partial<Snapshot> = {
    match: (method, at) =>
      method === 'POST' && at === path ? { value: { endpoint: chat, chain }, params: {} } : undefined,
  }
  const headers = { 'x-source': 'app', authorization: 'Bearer secret', 'x-api-key': 'secret', cookie: 'a=b' }
  const ex = exchange({ snapshot, headers, principal, signal: new Cancellation() })
  ex.caller.access = {} as Access
  return ex
}
const report = () => t.fail('no filter throws')
const said = (called: Called) => ('failure' in called ? called.failure.message : called.answer)

t.test('a call has its caller, its attribution and no credential, and answers as the endpoint does', async t => {
  const finished: string[] = []
  let seen: Exchange | undefined
  const parent = caller((ex, next) => {
    seen = ex
    return next()
  }, finished)
  const called = await call(parent, { path, body, lease: lease(), report })
  t.match(said(called), { choices: [{ message: { content: 'hello' } }] })
  t.equal(seen?.caller.principal, parent.caller.principal)
  t.equal(seen?.signal, parent.signal)
  t.equal(seen?.id, parent.id, 'both stand under one request id')
  t.not(seen?.logId, parent.logId)
  t.strictSame(Object.keys(seen?.http.headers ?? {}).sort(), ['content-type', 'x-request-id', 'x-source'])
  t.strictSame(finished, ['ok 200'])
})

t.test('a call of a request that holds much has turns of the loop for itself', async t => {
  let isLarge: boolean | undefined
  const parent = caller(async (ex, next) => {
    const reply = await next()
    isLarge = ex.input.isLarge
    return reply
  })
  for (const values of [100, 20_000]) {
    parent.input.values = values
    await call(parent, { path, body, lease: lease(), report })
    t.equal(isLarge, values === 20_000)
  }
})

t.test('a refusal, a wrong body and an unknown path come back as errors', async t => {
  const finished: string[] = []
  const refusing = caller(() => Promise.reject(errors.insufficientCredits()), finished)
  t.match(said(await call(refusing, { path, body, lease: lease(), report })), /insufficient credits/)
  const serving = caller((_ex, next) => next(), finished)
  t.match(said(await call(serving, { path, body: {}, lease: lease(), report })), /model: is required/)
  t.strictSame(finished, ['error 402', 'error 400'], 'filters finish all the same')
  t.match(said(await call(serving, { path: '/v1/none', body, lease: lease(), report })), /no endpoint \/v1\/none/)
})

t.test('an answer that memory has no room for is refused', async t => {
  const parent = caller((_ex, next) => next())
  t.match(said(await call(parent, { path, body, lease: lease(false), report })), /overloaded/)
})
