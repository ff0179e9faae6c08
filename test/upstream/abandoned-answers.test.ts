/** Answers that are read on after their client has left: how many at a time, and jobs. */
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Event } from '../../src/core/event.ts'
import { Fetcher } from '../../src/egress/fetcher.ts'
import { errors, GatewayError } from '../../src/lib/error.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { AbandonedAnswers } from '../../src/upstream/abandoned-answers.ts'
import { ResultPoller } from '../../src/upstream/result-poller.ts'
import { Transport } from '../../src/upstream/transport.ts'
import { scripted } from '../helpers/scripted.ts'
import { target } from '../plugins/wire-kit.ts'

t.test('an organization reads 64 answers on, and a process 512 of all organizations', async t => {
  const slots = new AbandonedAnswers()
  const taken = (tenant: string) => Array.from({ length: 100 }, () => slots.acquire(tenant)).filter(Boolean).length
  const organizations = Array.from({ length: 9 }, (_, at) => `organization-${at}`)
  t.strictSame(organizations.map(taken), [64, 64, 64, 64, 64, 64, 64, 64, 0])
  slots.release('organization-0')
  t.strictSame([slots.acquire('organization-8'), slots.acquire('organization-1')], [true, false])
  const few = new AbandonedAnswers({ time: 1, size: 1, per_organization: 2 })
  t.strictSame([few.acquire('a'), few.acquire('a'), few.acquire('a'), few.acquire('b')], [true, true, false, true])
})

t.test('M7 a job cannot be cancelled: it is polled on after its client has left', async t => {
  const provider = await scripted(t)
  const transport = new Transport()
  t.teardown(() => transport.close())
  const results = new ResultPoller(transport, new Fetcher([]))
  const url = `${provider.url}/state`
  const pending: Event = { type: 'wait', url, afterMs: 0 }
  const result: Event = { type: 'result', value: 'made' }
  const failed: Event = { type: 'error', error: errors.invalidAnswer('its job failed') }
  const [gone, closing] = [errors.aborted(), errors.shuttingDown()]
  type Happening = 'leaves' | 'closes' | 'is cut' | 'time ends' | undefined
  interface Row {
    /** What happens while each state is read, and what the state says. */
    readonly states: readonly (readonly [happens: Happening, says: Event])[]
    readonly cancellable?: boolean
    readonly gives: unknown
  }
  const rows: Record<string, Row> = {
    'made, in the state': {
      states: [
        ['leaves', pending],
        [undefined, pending],
        [undefined, result],
      ],
      gives: [result],
    },
    'made, at an address': {
      states: [
        ['leaves', pending],
        [undefined, { type: 'fetch', url }],
      ],
      gives: gone.code,
    },
    'of a mapping that goes on': {
      states: [
        ['leaves', pending],
        [undefined, result],
      ],
      cancellable: false,
      gives: [result],
    },
    'of a mapping that stops': { states: [['leaves', pending]], cancellable: true, gives: gone.code },
    'that fails': {
      states: [
        ['leaves', pending],
        [undefined, failed],
      ],
      gives: failed.error.code,
    },
    'that takes too long': {
      states: [
        ['leaves', pending],
        ['time ends', pending],
      ],
      gives: gone.code,
    },
    'that takes too long, with its client there': { states: [['time ends', pending]], gives: 'timeout' },
    'when the gateway closes': {
      states: [
        ['leaves', pending],
        ['is cut', pending],
      ],
      gives: gone.code,
    },
    'when the gateway closes, with its client there': { states: [['closes', pending]], gives: closing.code },
  }
  for (const [says, { states, cancellable, gives }] of Object.entries(rows)) {
    const signal = new Cancellation()
    let leftMs = 60_000
    const happen: Record<NonNullable<Happening>, () => void> = {
      leaves: () => signal.abort(gone),
      closes: () => signal.abort(closing),
      'is cut': () => signal.cut(),
      'time ends': () => {
        leftMs = 0
      },
    }
    let read = 0
    const decoder = {
      done: false,
      frame: () => {
        const [happens, event] = states[read++]!
        if (happens) happen[happens]()
        return [event]
      },
      end: () => [],
    }
    provider.answers({ json: {} })
    provider.got.length = 0
    const lease = new MemoryBudget(1024 * 1024, { memory: () => 0 }).lease('org')
    const attempt = { decoder, signal, lease, cancellable, tenant: 'org', requestId: 'r', mask: undefined }
    const whole = results.all([pending], {
      ...attempt,
      target: target({ provider: { baseUrl: provider.url } }),
      remainingMs: () => leftMs,
    })
    const outcome = await whole.catch((error: unknown) => (error instanceof GatewayError ? error.code : error))
    t.strictSame([outcome, provider.got.length], [gives, states.length], says)
  }
})
