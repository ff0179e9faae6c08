/** What is held back while an answer comes: nothing that is charged, and nothing whose end cannot change it. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { startGateway } from '../helpers/gateway.ts'

let answer: (res: ServerResponse) => void = () => {}
const server = createServer((req, res) => {
  req.resume()
  req.on('end', () => answer(res))
})
await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
t.teardown(() => {
  server.closeAllConnections()
  server.close()
})
const { port } = server.address() as AddressInfo
const provider = (wire: string, model: string) => ({
  base_url: `http://127.0.0.1:${port}/v1`,
  auth: { scheme: 'none' },
  wires: { chat: wire },
  models: [
    {
      model,
      id: 'x',
      pricing: { prompt: '1', completion: '1', web_search: '0.01' },
      supports: ['streaming', 'web_search', 'tools', 'parallel_tool_calls', 'json_output'],
    },
  ],
})
const gateway = await startGateway(t, {
  providers: { a: provider('anthropic.messages', 'test'), m: provider('mistral.chat', 'mis') },
  models: ['test', 'mis'].map(id => ({ id, name: id, family: 'f', input: ['text'], output: ['text'] })),
  config: { server: { drain: '500ms' } },
})
const stream = (res: ServerResponse) => res.writeHead(200, { 'content-type': 'text/event-stream' })
const sse = (...events: { type: string }[]) =>
  events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
const start = {
  type: 'message_start',
  message: { id: 'm1', model: 'x', usage: { input_tokens: 1000, output_tokens: 1 } },
}
const messages = [{ role: 'user', content: 'hi' }]

t.test('a stream that breaks behind a native block is a stream to whom it is charged', async t => {
  const block = { type: 'server_tool_use', id: 's', name: 'web_search', input: {} }
  answer = res => {
    const begin = { type: 'content_block_start', index: 0, content_block: block }
    stream(res).end(sse(start, begin, { type: 'content_block_stop', index: 0 } as { type: string }))
  }
  const res = await gateway.chat({ model: 'test', stream: true, messages, tools: [{ type: 'web_search' }] })
  const said = await res.text()
  const db = new Database(`${gateway.dir}/data/gateway.db`, { readonly: true })
  const row = db.prepare('SELECT charged FROM requests ORDER BY at DESC').get() as { charged: number }
  db.close()
  t.strictSame([res.status, row.charged > 0], [200, true], 'no 502 is charged')
  t.match(said, /"role":"assistant"[\s\S]*upstream_stream_truncated/)
})

t.test("a Messages client's stream is no answer by tool where no tool is offered", async t => {
  let goOn = () => {}
  answer = res => {
    const text = { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '{"a":' } }
    stream(res).write(sse(start, text))
    goOn = () => {
      goOn = () => {}
      const more = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: '1}' } }
      const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' } }
      res.end(sse(more, { type: 'content_block_stop', index: 0 } as { type: string }, end, { type: 'message_stop' }))
    }
  }
  const format = { type: 'json_schema', schema: { type: 'object' } }
  const res = await gateway.post('/v1/messages', {
    model: 'test',
    max_tokens: 9,
    stream: true,
    messages,
    output_config: { format },
  })
  let said = ''
  for await (const piece of res.body!) {
    said += Buffer.from(piece as Uint8Array).toString()
    // The provider says the rest when its first words are here.
    if (said.includes('text_delta')) goOn()
  }
  t.match(said, /"text":"\{\\"a\\":"[\s\S]*"text":"1\}"[\s\S]*message_stop/, 'its text comes as it is said')
})

t.test('a call of Mistral that waited has its own name', async t => {
  const call = (index: number, name: string, args: string) => ({
    index,
    id: `abcdefgh${index}`,
    function: { name, arguments: args },
  })
  const calls = [call(0, 'clock_u002e_now', ''), call(1, 'weather_u002e_get', '{"city":"Paris"}')]
  answer = res => {
    const choice = { index: 0, delta: { role: 'assistant', tool_calls: calls }, finish_reason: 'tool_calls' }
    stream(res).end(`data: ${JSON.stringify({ id: 'x', choices: [choice] })}\n\ndata: [DONE]\n\n`)
  }
  const tools = ['clock.now', 'weather.get'].map(name => ({ type: 'function', function: { name, parameters: {} } }))
  const res = await gateway.chat({ model: 'mis', messages, tools })
  const { choices } = (await res.json()) as { choices: { message: { tool_calls: { function: { name: string } }[] } }[] }
  t.strictSame(
    choices[0]!.message.tool_calls.map(call => call.function.name),
    ['clock.now', 'weather.get'],
  )
})
