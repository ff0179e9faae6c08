/** The chain around a request, and the pump that runs it to its last byte. */

import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import { checkOrder, compile, type Link } from '../../src/core/chain.ts'
import type { Codec } from '../../src/core/codec.ts'
import type { Event } from '../../src/core/event.ts'
import type { Facet, Filter, FilterFactory } from '../../src/core/filter.ts'
import { pump } from '../../src/core/pump.ts'
import type { Reply } from '../../src/core/reply.ts'
import { s } from '../../src/core/schema.ts'
import type { Route } from '../../src/core/snapshot.ts'
import { chat } from '../../src/endpoints/inference.ts'
import { errors } from '../../src/lib/error.ts'
import { eventsOf, exchange, recorder, text } from './kit.ts'

const ok = (): Reply => ({ status: 200, headers: [], events: eventsOf() })
function link(name: string, filter: Filter, more: Partial<FilterFactory> = {}): Link {
  return { factory: { name, options: s.object({}), create: () => filter, ...more }, options: {}, filter }
}
const around = (name: string, log: string[], more: Filter = {}): Link =>
  link(name, {
    async handle(_ex, next) {
      log.push(`> ${name}`)
      const reply = await next()
      log.push(`< ${name}`)
      return reply
    },
    finish: () => void log.push(`finish ${name}`),
    ...more,
  })

t.test('filters run in order around the terminal, and finish in reverse', async t => {
  const log: string[] = []
  const bare = link('bare', {})
  const chain = compile([around('a', log), bare, around('b', log)], async ex => {
    log.push(`terminal within ${ex.currentFilter}`)
    return ok()
  })
  const ex = exchange()
  await chain.handle(ex)
  await chain.finish(ex, () => t.fail('no filter throws'))
  t.strictSame(log, ['> a', '> b', 'terminal within upstream', '< b', '< a', 'finish b', 'finish a'])
  t.equal(chain.links[1], bare)
})

t.test('next() may be called again only by a filter that repeats', async t => {
  const twice: Filter = { handle: (_ex, next) => next().then(next) }
  let calls = 0
  const terminal = async () => {
    calls++
    return ok()
  }
  await t.rejects(compile([link('greedy', twice)], terminal).handle(exchange()), /"greedy" called next\(\) twice/)
  t.equal(calls, 1)
  await compile([link('route', twice, { repeats: true }), around('below', [])], terminal).handle(exchange())
  t.equal(calls, 3, 'and what stands below it runs once more')
})

t.test('finish gets whether the request had entered the filter', async t => {
  const log: string[] = []
  const told = (name: string, handle: Filter['handle']) =>
    link(name, { handle: handle!, finish: (_ex, entered) => void log.push(`${name} ${entered}`) })
  const refuse = async () => {
    throw errors.overloaded()
  }
  const chain = compile([told('a', (_ex, next) => next()), told('b', refuse), told('c', (_ex, next) => next())], refuse)
  const ex = exchange()
  await t.rejects(chain.handle(ex), { code: 'overloaded' })
  await chain.finish(ex, () => t.fail('no filter throws'))
  t.strictSame(log, ['c false', 'b true', 'a true'])
})

t.test('a filter that fails to finish is reported, and the others finish', async t => {
  const log: string[] = []
  const throwing = () => {
    throw new Error('sync')
  }
  const rejecting = () => Promise.reject(new Error('async'))
  const links = [around('a', log), around('b', log, { finish: throwing }), around('c', log, { finish: rejecting })]
  const chain = compile([...links, around('d', log)], async () => ok())
  await chain.finish(exchange(), (filter, error) => log.push(`${filter}: ${(error as Error).message}`))
  t.strictSame(log, ['finish d', 'c: async', 'b: sync', 'finish a'])
})

t.test('an order that cannot work is refused by filter and facet', async t => {
  const factory = (name: string, needs: Facet[] = [], gives: Facet[] = []) => link(name, {}, { needs, gives }).factory
  const [auth, route] = [factory('auth', [], ['principal']), factory('route', ['principal'], ['target'])]
  const rest = factory('rest', ['target'], ['quota', 'outbound', 'charge'])
  const givers = (facet: Facet) => (facet === 'principal' ? ['auth', 'sso'] : ['rest'])
  const rows: [FilterFactory[], boolean, [number, string] | undefined][] = [
    [[auth, route, rest], true, undefined],
    [
      [route],
      false,
      [0, 'filter "route" needs "principal", which no filter above it gives; put "auth" or "sso" above it'],
    ],
    [
      [auth, rest, route],
      false,
      [1, 'filter "rest" needs "target", which no filter above it gives; put "rest" above it'],
    ],
    [[auth, route, auth], false, [2, 'filter "auth" occurs twice in one chain; keep one']],
    [[auth, route], true, [2, 'the upstream call needs "quota", which no filter above it gives; put "rest" above it']],
    [[auth, route], false, undefined],
  ]
  for (const [factories, upstream, fault] of rows) {
    const found = checkOrder(factories, upstream, givers)
    t.strictSame(found && [found.index, found.message], fault, factories.map(({ name }) => name).join())
  }
})

/** Shows text events as they are: a stream at once, a whole answer at its end. */
const plain = (streamed: boolean): Codec => ({
  ...chat.codec,
  encoder() {
    let whole = ''
    return {
      contentType: streamed ? 'stream' : 'whole',
      write(batch) {
        const out = batch.map(event => (event.type === 'text' ? event.text : '')).join('')
        if (!streamed) whole += out
        return streamed && out !== '' ? out : undefined
      },
      end: () => (streamed ? 'end' : whole),
      fail: error => (streamed ? `fail ${error.code}` : undefined),
    }
  },
  error: ({ code }) => ({ code }),
})
const routeOf = (events: Reply['events'], streamed = true, links: Link[] = []): Route => ({
  endpoint: { ...chat, codec: plain(streamed) },
  chain: compile(links, async () => ({ ...ok(), events })),
})
const failure: Event = { type: 'error', error: errors.truncated() }
const start: Event = { type: 'start' }

t.test('the pump writes a head with the first output, and says a failure where it still can', async t => {
  const rows: [says: string, streamed: boolean, batches: Event[][], outcome: string, log: string[]][] = [
    ['a stream', true, [[start], [text('a')], [text('b')]], 'ok', ['head 200 stream', 'write a', 'write b', 'end end']],
    ['an empty stream', true, [[start]], 'ok', ['head 200 stream', 'end end']],
    ['a whole answer', false, [[text('a')], [text('b')]], 'ok', ['head 200 whole', 'end ab']],
    [
      'an error first',
      true,
      [[start], [failure]],
      'error',
      ['head 502 application/json', 'end {"code":"upstream_stream_truncated"}'],
    ],
    [
      'an error after output',
      true,
      [[text('a')], [failure], [text('b')]],
      'error',
      ['head 200 stream', 'write a', 'end fail upstream_stream_truncated'],
    ],
    [
      'an error behind output',
      true,
      [[text('a'), failure, text('b')]],
      'error',
      ['head 200 stream', 'write a', 'end fail upstream_stream_truncated'],
    ],
    [
      'an error in a whole answer',
      false,
      [[text('a')], [failure]],
      'error',
      ['head 502 application/json', 'end {"code":"upstream_stream_truncated"}'],
    ],
  ]
  for (const [says, streamed, batches, outcome, log] of rows) {
    const ex = exchange()
    const sink = recorder()
    await pump(routeOf(eventsOf(...batches), streamed), ex, sink)
    t.strictSame(sink.log, log, says)
    t.equal(ex.answer.outcome, outcome, says)
    t.ok(ex.timings.end > 0)
    t.equal(ex.answer.status, log[0] === 'head 502 application/json' ? 502 : 200, says)
  }
})

t.test('headers of a 200 that depend on no provider stand on no other status', async t => {
  for (const [status, headers] of [
    [200, ['x-own', '1', 'ratelimit-limit', '5']],
    [503, ['x-own', '1']],
  ] as const) {
    const heads: unknown[] = []
    const sink = { ...recorder(), head: (...given: unknown[]) => void heads.push(given) }
    const ex = exchange()
    ex.answer.headers = ['ratelimit-limit', '5']
    const reply = async () => ({ status, headers: ['x-own', '1'], events: eventsOf([text('a')]) })
    await pump({ ...routeOf(eventsOf()), chain: compile([], reply) }, ex, sink)
    t.strictSame(heads, [[status, 'stream', headers]])
  }
})

/** Gives the batches, tells the log when it is asked for each and when it ends, and waits for `between` before each. */
async function* told(log: string[], batches: Event[][], between = async () => {}): AsyncGenerator<Event[]> {
  try {
    for (const [index, batch] of batches.entries()) {
      log.push(`asked ${index}`)
      await between()
      yield batch
    }
  } finally {
    await Promise.resolve()
    log.push('ended')
  }
}

t.test('the events have ended before the last byte is written', async t => {
  for (const [streamed, batches, last] of [
    [true, [[text('a')]], 'end end'],
    [false, [[text('a')]], 'end a'],
    [true, [[text('a')], [failure], [text('b')]], 'end fail upstream_stream_truncated'],
    [true, [[failure], [text('b')]], 'end {"code":"upstream_stream_truncated"}'],
  ] as [boolean, Event[][], string][]) {
    const sink = recorder()
    await pump(routeOf(told(sink.log, batches), streamed), exchange(), sink)
    t.equal(sink.log.filter(line => line === 'ended').length, 1)
    t.ok(sink.log.indexOf('ended') < sink.log.indexOf(last), last, { log: sink.log })
  }
})

t.test('nothing more is asked for before the reader has caught up', async t => {
  const log: string[] = []
  const slow = async () => {
    await new Promise(resolve => setImmediate(resolve))
    log.push('drained')
  }
  const ex = exchange()
  await pump(routeOf(told(log, [[text('a')], [text('b')]])), ex, recorder(log, slow))
  t.ok(ex.timings.stalled > 0 && ex.timings.stalled <= ex.timings.end - ex.timings.start, 'and the wait is known')
  const second = ['asked 1', 'write b', 'drained', 'ended', 'end end']
  t.strictSame(log, ['asked 0', 'head 200 stream', 'write a', 'drained', ...second])
})

t.test('a client that goes away ends the answer, wherever it stands', async t => {
  for (const [says, streamed, when, log] of [
    [
      'while it writes',
      true,
      'write',
      ['asked 0', 'head 200 stream', 'write a', 'ended', 'end fail request_cancelled'],
    ],
    [
      'while it waits',
      true,
      'wait',
      ['asked 0', 'ended', 'head 499 application/json', 'end {"code":"request_cancelled"}'],
    ],
    [
      'in a whole answer',
      false,
      'wait',
      ['asked 0', 'ended', 'head 499 application/json', 'end {"code":"request_cancelled"}'],
    ],
  ] as [string, boolean, 'write' | 'wait', string[]][]) {
    const signal = new Cancellation()
    const abort = async () => signal.abort(errors.aborted())
    const ex = exchange({ signal })
    const sink = recorder([], when === 'write' ? abort : undefined)
    const between = async () => {
      if (when === 'write') return
      await abort()
      throw errors.unreachable('the socket was destroyed')
    }
    await pump(routeOf(told(sink.log, [[text('a')], [text('b')]], between), streamed), ex, sink)
    t.strictSame(sink.log, log, says)
    t.match(ex.answer, { outcome: 'aborted', failure: { status: 499 } }, says)
  }
  const unread = exchange({ signal: new Cancellation() })
  const never = new Promise<void>(() => undefined)
  const stalled = recorder([], () => {
    setImmediate(() => unread.signal.abort(errors.readTooSlowly()))
    return never
  })
  await pump(routeOf(told(stalled.log, [[text('a')], [text('b')]])), unread, stalled)
  t.strictSame(stalled.log.at(-1), 'end fail request_cancelled', 'also one that reads no more')
  t.match(unread.answer, { outcome: 'aborted', failure: { status: 499 } })
  const draining = new Cancellation()
  draining.abort(errors.shuttingDown())
  const ex = exchange({ signal: draining })
  await pump(routeOf(eventsOf([text('a')])), ex, recorder())
  t.match(
    ex.answer,
    { outcome: 'error', failure: { code: 'server_shutting_down' } },
    'a gateway that stops is no client',
  )
})

t.test('the listener of a cancellation is called once, and the first reason stays', async t => {
  const signal = new Cancellation()
  const heard: string[] = []
  const [first, second] = ['first', 'second'].map(name => () => void heard.push(`${name} ${signal.reason?.code}`))
  signal.listen(first!)
  signal.ignore(second!)
  signal.ignore(first!)
  signal.listen(second!)
  t.notOk(signal.aborted)
  signal.abort(errors.aborted())
  signal.abort(errors.shuttingDown())
  signal.listen(first!)
  t.ok(signal.aborted)
  t.strictSame(heard, ['second request_cancelled', 'first request_cancelled'])
})

t.test('what is thrown before or between the events becomes the answer', async t => {
  const bug = async () => {
    throw new TypeError('x is undefined')
  }
  const internal = 'end {"code":null}'
  const first = recorder()
  await pump({ ...routeOf(eventsOf()), chain: compile([], bug) }, exchange(), first)
  t.strictSame(first.log, ['head 500 application/json', internal])

  const unpaid = async function* () {
    yield [text('a')]
    throw errors.billingUnavailable(new Error('disk full'))
  }
  const streamed = recorder()
  await pump(routeOf(unpaid()), exchange(), streamed)
  t.strictSame(streamed.log, ['head 200 stream', 'write a', 'end fail billing_unavailable'])
  const whole = recorder()
  await pump(routeOf(unpaid(), false), exchange(), whole)
  t.strictSame(whole.log, ['head 503 application/json', 'end {"code":"billing_unavailable"}'])
})

t.test('a stream whose codec has no way to fail is broken off', async t => {
  const route = routeOf(eventsOf([text('a')], [failure]))
  const encoder = { ...plain(true).encoder(exchange()), fail: () => undefined }
  const sink = recorder()
  await pump({ ...route, endpoint: { ...chat, codec: { ...plain(true), encoder: () => encoder } } }, exchange(), sink)
  t.strictSame(sink.log, ['head 200 stream', 'write a', 'destroy'])
})

t.test('filters that were never reached finish too, and see how the request ended', async t => {
  const seen: string[] = []
  const note = (name: string): Filter => ({
    finish: ex => void seen.push(`${name}: ${ex.answer.outcome} ${ex.answer.status} ${ex.answer.failure?.code}`),
  })
  const refuse = around('auth', [], { handle: () => Promise.reject(errors.noCredentials()), ...note('auth') })
  const { chain, endpoint } = routeOf(eventsOf(), true, [
    refuse,
    around('billing', [], note('billing')),
    link('tell', note('tell')),
  ])
  const ex = exchange()
  const sink = recorder()
  await pump({ chain, endpoint }, ex, sink)
  await chain.finish(ex, () => t.fail('no filter throws'))
  t.strictSame(sink.log, ['head 401 application/json', 'end {"code":"invalid_api_key"}'])
  t.strictSame(
    seen,
    ['tell', 'billing', 'auth'].map(name => `${name}: error 401 invalid_api_key`),
  )
  t.equal(ex.currentFilter, 'auth')
})

t.test('an endpoint checks a request before its chain sees it, and says refusals in its own form', async t => {
  const seen: string[] = []
  const route = routeOf(eventsOf([text('a')]), false, [around('auth', seen)])
  const own: Route = {
    ...route,
    endpoint: {
      ...route.endpoint,
      check(ex) {
        if (ex.http.header('host') !== 'here') throw errors.forbidden('not here')
      },
      errorAnswer: (error, ex) => ({
        contentType: 'text/html',
        headers: ['x-id', ex.id],
        body: `<p>${error.message}</p>`,
      }),
    },
  }
  const away = exchange({ headers: { host: 'there' } })
  const refused = recorder()
  await pump(own, away, refused)
  t.strictSame(refused.log, ['head 403 text/html', 'end <p>not here</p>'])
  t.strictSame([away.answer.outcome, away.answer.status, seen], ['error', 403, []])

  const served = recorder()
  await pump(own, exchange({ headers: { host: 'here' } }), served)
  t.strictSame(served.log, ['head 200 whole', 'end a'])
  t.strictSame(seen, ['> auth', '< auth'])
})
