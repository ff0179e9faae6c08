/** Traces and metrics that a collector gets by OTLP, and what a broken collector costs. */
import t from 'tap'
import { type Collector, startCollector } from '../helpers/collector.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { readEvents } from '../helpers/sse.ts'
import { startUpstream } from '../helpers/upstream.ts'

const upstream = await startUpstream(t, { key: upstreamSecret })
const providers = {
  a: { base_url: upstream.url('a'), priority: 2 },
  b: { base_url: upstream.url('b'), priority: 1 },
}
const env = { OTEL_BSP_SCHEDULE_DELAY: '20', OTEL_METRIC_EXPORT_INTERVAL: '50' }
const prompt = 'a prompt that nobody else may read'
const otlp = ({ url }: Collector) => ({ endpoint: url, headers: { 'x-collector-key': 'collector-canary' } })
const started = (collector: Collector, content = false) =>
  startGateway(t, { providers, env, config: { telemetry: { otlp: otlp(collector), content } } })
const traceId = '0af7651916cd43dd8448eb211c80319c'
const parent = { traceparent: `00-${traceId}-b7ad6b7169203331-01`, tracestate: 'vendor=kept' }
const ofTrace = (id: string) => (spans: { traceId: string }[]) => spans.filter(span => span.traceId === id)

const collector = await startCollector(t)
const gateway = await started(collector)

t.test('a trace of a failed-over stream shows both attempts, first token, usage and cost', async t => {
  await upstream.reset()
  await upstream.script('a', [{ status: 500 }])
  const body = { model: 'test', stream: true, messages: [{ role: 'user', content: prompt }] }
  const response = await gateway.chat(body, parent)
  t.equal(response.status, 200)
  await readEvents(response)
  const spans = ofTrace(traceId)(await collector.spans(all => ofTrace(traceId)(all).length === 3)) as Awaited<
    ReturnType<Collector['spans']>
  >
  const request = spans.find(({ kind }) => kind === 2)!
  const [failed, answered] = spans
    .filter(({ kind }) => kind === 3)
    .sort((one, other) => Number(one.attributes['gateway.attempt']) - Number(other.attributes['gateway.attempt']))
  t.match(request, {
    name: 'chat test',
    parentSpanId: 'b7ad6b7169203331',
    events: ['gateway.first_token'],
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'test',
      'gen_ai.usage.input_tokens': Number,
      'gen_ai.usage.output_tokens': Number,
      'gateway.cost_usd': Number,
      'gateway.time_to_first_token': Number,
      'gateway.attempts': 2,
      'gateway.outcome': 'ok',
      'gateway.streamed': true,
    },
  })
  t.match(failed, {
    parentSpanId: request.spanId,
    status: 2,
    attributes: { 'gen_ai.provider.name': 'a', 'http.response.status_code': 500, 'error.type': String },
  })
  t.match(answered, {
    name: 'chat test',
    parentSpanId: request.spanId,
    status: 0,
    events: ['gateway.first_token'],
    attributes: { 'gen_ai.provider.name': 'b', 'gen_ai.usage.output_tokens': Number, 'gateway.cost_usd': Number },
  })
  const [sent] = await upstream.record('b')
  t.equal(sent!.headers.traceparent, `00-${traceId}-${answered!.spanId}-01`)
  t.equal(sent!.headers.tracestate, 'vendor=kept')
  t.match(gateway.stderr(), `"trace_id":"${traceId}","span_id":"${request.spanId}"`, 'the log line names the trace')
})

t.test(
  "the span of a request that its client has to mend has no error's status, and that of its attempt has",
  async t => {
    await upstream.reset()
    await upstream.script('a', [{ status: 400 }])
    const id = '1af7651916cd43dd8448eb211c80319c'
    const body = { model: 'test', messages: [{ role: 'user', content: prompt }] }
    const response = await gateway.chat(body, { traceparent: `00-${id}-b7ad6b7169203331-01` })
    t.equal(response.status, 400)
    const spans = ofTrace(id)(await collector.spans(all => ofTrace(id)(all).length === 2)) as Awaited<
      ReturnType<Collector['spans']>
    >
    t.match(
      spans.find(({ kind }) => kind === 2),
      { status: 0, attributes: { 'error.type': String, 'http.response.status_code': 400 } },
    )
    t.match(
      spans.find(({ kind }) => kind === 3),
      { status: 2 },
    )
  },
)

t.test('a request that needs no provider is a span of its own, whether it is answered or refused', async t => {
  const paths: [path: string, status: number][] = [
    ['/v1/models', 200],
    ['/v1/models/absent', 404],
  ]
  for (const [index, [path, status]] of paths.entries()) {
    const id = `${index + 1}`.padEnd(32, 'a')
    const response = await gateway.get(path, { traceparent: `00-${id}-b7ad6b7169203331-01` })
    t.equal(response.status, status, path)
    await response.text()
    const spans = ofTrace(id)(await collector.spans(all => ofTrace(id)(all).length === 1))
    t.match(spans, [{ kind: 2, attributes: { 'gateway.attempts': 0, 'http.response.status_code': status } }], path)
  }
  t.notMatch(gateway.stderr(), 'filter finish failed')
})

t.test('metrics by the conventions are sent beside traces', async t => {
  await collector.saw(
    'gen_ai.client.token.usage',
    'gen_ai.client.operation.duration',
    'gen_ai.server.time_to_first_token',
  )
  t.equal(collector.headers['x-collector-key'], 'collector-canary')
})

t.test('every client wire gives the same span names', async t => {
  await upstream.reset()
  const user = { role: 'user', content: prompt }
  const wires: [path: string, body: object][] = [
    ['/v1/chat/completions', { model: 'test', messages: [user] }],
    ['/v1/completions', { model: 'test', prompt }],
    ['/v1/messages', { model: 'test', max_tokens: 9, messages: [user] }],
    ['/v1/responses', { model: 'test', input: prompt, store: false }],
    ['/v1beta/models/test:generateContent', { contents: [{ role: 'user', parts: [{ text: prompt }] }] }],
  ]
  for (const [index, [path, body]] of wires.entries()) {
    const id = `${index + 1}`.repeat(32)
    const response = await gateway.post(path, body, { traceparent: `00-${id}-b7ad6b7169203331-01` })
    t.equal(response.status, 200, path)
    await response.text()
    const spans = ofTrace(id)(await collector.spans(all => ofTrace(id)(all).length === 2))
    t.match(spans, [{ name: 'chat test' }, { name: 'chat test' }], path)
  }
})

t.test('a cost is a floating-point number in every span, so that collectors give it one type', async t => {
  const collector = await startCollector(t)
  const models = [{ ...testMapping, pricing: { prompt: '0', completion: '0' } }]
  const free = await startGateway(t, {
    ...{ providers: { free: { base_url: upstream.url('free'), models } }, env },
    config: { telemetry: { otlp: otlp(collector) } },
  })
  const response = await free.chat({ model: 'test', messages: [{ role: 'user', content: prompt }] })
  t.equal(response.status, 200)
  await collector.spans(all => all.length === 2)
  t.match(collector.text, '"gateway.cost_usd","value":{"doubleValue":0}')
  t.notMatch(collector.text, '"gateway.cost_usd","value":{"intValue"')
})

t.test('no secret and no prompt is exported', async t => {
  for (const secret of [prompt, gateway.key, upstreamSecret, 'collector-canary'])
    t.notOk(collector.text.includes(secret))
  const config = await (await gateway.admin('GET', '/config')).text()
  t.match(config, collector.url)
  t.notOk(config.includes('collector-canary'), 'the configuration in force masks headers of the collector')
})

t.test('prompts are exported where content is on', async t => {
  const collector = await startCollector(t)
  const gateway = await started(collector, true)
  await (await gateway.chat(prompt)).text()
  await collector.saw(prompt)
})

t.test('a collector that fails or hangs costs no request anything', async t => {
  for (const status of [500, undefined]) {
    const collector = await startCollector(t, status)
    const gateway = await started(collector)
    for (let sent = 0; sent < 20 || collector.requests === 0; sent++) {
      const response = await gateway.chat(prompt)
      t.equal(response.status, 200)
      await response.text()
    }
    t.equal(await gateway.kill(), 0, `answers ${status}: the gateway stops in order`)
  }
})
