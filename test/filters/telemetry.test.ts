/** What is measured of a request when it is over. */
import t from 'tap'
import type { Attempt } from '../../src/core/attempt.ts'
import type { Metrics, Services } from '../../src/core/ports.ts'
import { telemetry } from '../../src/filters/telemetry.ts'
import { exchange } from '../core/kit.ts'
import { target } from '../plugins/wire-kit.ts'

type Times = Parameters<Metrics['request']>[1]

function measured(attempts: Attempt[]): Times {
  let times: Times | undefined
  const metrics: Partial<Metrics> = {
    attempt() {},
    request(_, at) {
      times = at
    },
  }
  const filter = telemetry.create({ log: 'none' }, { metrics } as unknown as Services)
  const ex = exchange({ request: { model: 'm', messages: [] } })
  const { start } = ex.timings
  Object.assign(ex.timings, { sent: start + 10_010, answered: start + 10_030, firstToken: start + 10_030 })
  ex.timings.end = start + 10_040
  ex.attempts.push(...attempts)
  filter.finish!(ex, true)
  return times!
}

const one = { target: target(), status: 200, succeeded: true, errorType: 'none' } as const
const failed = { target: target(), status: 0, succeeded: false, errorType: 'timeout' } as const

t.test('the wait for a provider that failed is not reported as time of the gateway', async t => {
  t.equal(Math.round(measured([one]).overheadSeconds! * 1000), 10_020, 'before it was sent, and after it was answered')
  const twice = measured([failed, one])
  t.equal(twice.overheadSeconds, undefined)
  t.equal(Math.round(twice.seconds * 1000), 10_040)
})

t.test('offers of own providers are counted under one name, whatever tenants call them', async t => {
  const counted: string[] = []
  const metrics: Partial<Metrics> = {
    attempt: (provider, model) => void counted.push(`${provider} ${model}`),
    request: ({ provider, model }) => void counted.push(`${provider} ${model}`),
  }
  const filter = telemetry.create({ log: 'none' }, { metrics } as unknown as Services)
  const own = target({ provider: { id: 'secret-ai', owner: 'org-1' } })
  const ex = exchange({ request: { model: 'm', messages: [] } })
  ex.target = own
  ex.attempts.push({ ...one, target: own })
  filter.finish!(ex, true)
  const replay = exchange({
    request: { model: 'm', messages: [] },
    snapshot: {
      catalog: { models: new Map(), aliases: new Map(), providers: new Map([[own.provider.id, own.provider]]) },
    },
  })
  for (const provider of ['secret-ai', 'gone-ai']) {
    replay.cached = { provider, model: 'm', externalId: 'm', logId: '', at: 0 }
    filter.finish!(replay, true)
  }
  t.strictSame(counted, Array(4).fill('custom *'))
})
