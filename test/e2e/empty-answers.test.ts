/** C5: every streamed answer names its role, also one that says nothing. */
import OpenAI from 'openai'
import t from 'tap'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { startUpstream } from '../helpers/upstream.ts'

t.test('the official client reads a stream without content', async t => {
  const upstream = await startUpstream(t)
  const gateway = await startGateway(t, {
    providers: {
      g: {
        base_url: upstream.url('g').replace(/v1$/, 'v1beta'),
        wires: { chat: 'gemini.generate' },
        auth: { scheme: 'header', header: 'x-goog-api-key', secret: upstreamSecret },
        models: [{ ...testMapping, id: 'gemini-3.6-flash' }],
      },
    },
  })
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })
  const usageMetadata = { promptTokenCount: 5, totalTokenCount: 5 }
  const rows = [
    { chunk: { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata }, finish: 'content_filter' },
    { chunk: { candidates: [{ finishReason: 'MAX_TOKENS' }], usageMetadata }, finish: 'length' },
  ]
  for (const { chunk, finish } of rows) {
    const raw = [`data: ${JSON.stringify(chunk)}\r\n\r\n`]
    await upstream.script('g', [{ headers: { 'content-type': 'text/event-stream' }, raw }])
    const stream = client.chat.completions.stream({ model: 'test', messages: [{ role: 'user', content: 'hi' }] })
    const { choices } = await stream.finalChatCompletion()
    t.match(choices, [{ finish_reason: finish, message: { role: 'assistant', content: null } }])
  }
})
