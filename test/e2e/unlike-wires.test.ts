/** A model that providers of unlike wires serve: what one wire cannot carry goes to another one. */
import t from 'tap'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { startUpstream } from '../helpers/upstream.ts'

const upstream = await startUpstream(t, { key: upstreamSecret })
const claude = {
  auth: { scheme: 'header', header: 'x-api-key', secret: upstreamSecret },
  headers: { 'anthropic-version': '2023-06-01' },
  wires: { chat: 'anthropic.messages' },
}
const gateway = await startGateway(t, {
  providers: {
    a: { base_url: upstream.url('a'), models: [{ ...testMapping, pricing: { prompt: '0.5', completion: '0.5' } }] },
    b: { ...claude, base_url: upstream.url('b'), models: [testMapping] },
    c: {
      ...claude,
      base_url: upstream.url('c'),
      models: [{ ...testMapping, pricing: { prompt: '9', completion: '9' } }],
    },
  },
})
const messages = [{ role: 'user', content: 'hi' }]
const requests = [
  { messages, reasoning: { max_tokens: 2000 } },
  { messages, tools: [{ type: 'function', function: { name: 'météo' } }] },
]
for (const request of requests) {
  t.test(JSON.stringify(request).slice(45, 80), async t => {
    await upstream.script('b', [{ text: 'yes' }])
    t.equal((await gateway.chat({ model: 'test', ...request })).status, 200)
    await upstream.script('b', [
      { status: 529, body: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } } },
    ])
    t.equal((await gateway.chat({ model: 'test', ...request })).status, 200, 'the third one is asked')
    const refused = await gateway.chat({ model: 'a/test', ...request }, { 'x-no-fallback': 'true' })
    t.equal(refused.status, 400, 'nobody else may be asked')
  })
}
