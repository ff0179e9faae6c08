/** What passes between the processes of a gateway: calls, and metrics that are added up. */
import t from 'tap'
import { ConfigError } from '../../src/config/error.ts'
import { errors, GatewayError } from '../../src/lib/error.ts'
import { Lag } from '../../src/telemetry/load.ts'
import { countersOf, exposition, type MetricFamily, merge } from '../../src/telemetry/merge.ts'
import { PrometheusMetrics } from '../../src/telemetry/metrics.ts'
import { type Calls, Channel, type IpcPort } from '../../src/workers/channel.ts'

/** Both ends of a channel; what was sent arrives, as JSON, when it is delivered. */
function wires() {
  const ends = [0, 1].map(() => ({ sent: [] as string[], receive: (_: object) => {}, closed: () => {} }))
  const wireOf = (own: number): IpcPort => ({
    send: message => void ends[own]!.sent.push(JSON.stringify(message)),
    onMessage: listener => {
      ends[own]!.receive = listener
    },
    onClose: listener => {
      ends[own]!.closed = listener
    },
  })
  /** All that one side has sent, in one tick. */
  const deliver = (from: number) => {
    for (const text of ends[from]!.sent.splice(0)) ends[1 - from]!.receive(JSON.parse(text) as object)
    return new Promise<void>(resolve => setImmediate(resolve))
  }
  const close = () => ends.forEach(({ closed }) => void closed())
  return { one: wireOf(0), two: wireOf(1), deliver, close }
}

t.test('calls are answered, refused, given up, and lost with the channel', async t => {
  const { one, two, deliver, close } = wires()
  const told: unknown[] = []
  const serves = {
    double: (n: number) => 2 * n,
    later: async (text: string) => `${text}!`,
    refuse: () => Promise.reject(errors.modelNotFound('x')),
    fault: () => {
      throw new ConfigError('config/gateway.yaml', { line: 3, column: 7 }, 'expected a number')
    },
    busy: () => {
      throw Object.assign(new Error('in use'), { code: 'EADDRINUSE', port: 80 })
    },
    silent: () => new Promise<void>(() => undefined),
    note: (text: string) => void told.push(text),
  } satisfies Calls
  new Channel(two, serves)
  const channel = new Channel<typeof serves>(one, {})
  const exchange = async <T>(answer: Promise<T>): Promise<T> => {
    answer.catch(() => undefined)
    await deliver(0)
    await deliver(1)
    return answer
  }
  t.equal(await exchange(channel.call('double', 21)), 42)
  t.equal(await exchange(channel.call('later', 'hi')), 'hi!')
  const refused = await exchange(channel.call('refuse', undefined as never)).catch((thrown: unknown) => thrown)
  t.ok(refused instanceof GatewayError)
  t.match(refused, { status: 404, code: 'model_not_found', message: errors.modelNotFound('x').message })
  await t.rejects(exchange(channel.call('fault', undefined as never)), {
    message: 'config/gateway.yaml:3:7: expected a number',
  })
  await t.rejects(exchange(channel.call('busy', undefined as never)), {
    message: 'in use',
    code: 'EADDRINUSE',
    port: 80,
  })
  channel.notify('note', 'one')
  channel.notify('note', 'two')
  await deliver(0)
  t.strictSame(told, ['one', 'two'])
  await t.rejects(channel.call('silent', undefined as never, 20), /"silent": .* not answered for 20 ms/)
  const lost = channel.call('silent', undefined as never)
  close()
  await t.rejects(lost, /has ended/)
  await t.rejects(channel.call('double', 1), /has ended/)
})

t.test('a message resolves before those sent after it are served', async t => {
  const { one, two, deliver } = wires()
  const order: string[] = []
  const asking = { recall: () => void order.push('recalled') } satisfies Calls
  const lending = { take: () => 1 } satisfies Calls
  const worker = new Channel<typeof lending>(one, asking)
  const primary = new Channel<typeof asking>(two, lending)
  const taken = worker.call('take', undefined as never).then(() => order.push('taken'))
  await deliver(0)
  primary.notify('recall', undefined as never)
  await deliver(1)
  await taken
  t.strictSame(order, ['taken', 'recalled'])
})

t.test('metrics of several processes are one exposition', async t => {
  const lag = new Lag()
  t.teardown(() => lag.close())
  const processes = [1, 2, 3].map(requests => {
    const metrics = new PrometheusMetrics({ version: '1', lag })
    const labels = { endpoint: 'chat', provider: 'acme', model: 'large', outcome: 'ok' }
    for (let i = 0; i < requests; i++) metrics.request(labels, { seconds: 0.2 })
    metrics.inFlight(1)
    metrics.reload('changed', requests < 3 ? 'a' : 'b', 1000 * requests)
    return metrics
  })
  const told = await Promise.all(processes.map(async metrics => overJson(await metrics.families())))
  const text = await exposition(merge(told))
  for (const line of [
    'gateway_requests_total{endpoint="chat",outcome="ok",provider="acme",model="large"} 6',
    'gateway_request_duration_seconds_bucket{le="0.25",endpoint="chat",outcome="ok",provider="acme",model="large"} 6',
    'gateway_request_duration_seconds_count{endpoint="chat",outcome="ok",provider="acme",model="large"} 6',
    'gateway_requests_in_flight 3',
    'gateway_build_info{version="1"} 1',
    'gateway_config_info{version="a"} 1',
    'gateway_config_info{version="b"} 1',
    'gateway_config_reload_last_success_seconds 1',
    'gateway_config_reloads_total{result="changed"} 1',
  ]) {
    t.ok(text.split('\n').includes(line), line)
  }
  t.match(text, /^process_start_time_seconds \d+$/m, 'of the first')
  t.match(text, /^gateway_event_loop_lag_seconds\{quantile="0.99"\} /m)

  const [first, second, third] = told as [MetricFamily[], MetricFamily[], MetricFamily[]]
  const rest = await exposition(merge([first, second, countersOf(third)]))
  t.match(rest, /^gateway_requests_total\{.*\} 6$/m, 'what a process has counted stays when it ends')
  t.match(rest, /^gateway_requests_in_flight 2$/m, 'and what it was doing does not')
})

t.test('each kind of value is combined in its own way', async t => {
  const family = (aggregator: string, values: number[], labels = {}): MetricFamily[][] =>
    values.map(value => [{ name: 'a', type: 'gauge', aggregator, values: [{ labels, value }] }])
  for (const [aggregator, expected] of Object.entries({ sum: 12, average: 4, min: 1, max: 9, first: 2, omit: 2 })) {
    t.equal(merge(family(aggregator, [2, 9, 1]))[0]!.values[0]!.value, expected, aggregator)
  }
  t.equal(merge(family('sum', [2, 9, 1], { quantile: 0.99 }))[0]!.values[0]!.value, 9, 'of quantiles the largest')
})

const overJson = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T
