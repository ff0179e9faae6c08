/** Bodies with an object of which `String` makes no text, in place of a text. */
import t from 'tap'
import { generateContent } from '../../src/codecs/gemini-generate.ts'
import { openAiResponses } from '../../src/codecs/openai-responses.ts'
import type { Codec } from '../../src/core/codec.ts'
import { gemini } from '../../src/endpoints/gemini.ts'
import { responses } from '../../src/endpoints/inference.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { answer } from '../../src/mcp/server.ts'
import type { ToolContext } from '../../src/mcp/tool.ts'
import { exchange, principal, thrown } from '../core/kit.ts'

const no = JSON.parse('{"toString":null}') as object
const hi = { model: 'm', input: 'Hi', tools: [{ type: 'function', name: 'f', parameters: {} }] }
const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }]
const decode = (codec: Codec<'chat'>, body: object) => {
  const endpoint = [responses, ...gemini].find(row => row.codec === codec)!
  return codec.decode(body, Object.assign(exchange({ endpoint }), { params: { model: 'm' } }))
}

t.test('an object in place of a name or a type of the Responses API is refused with 400', async t => {
  const item = (input: object) => ({ ...hi, input: [input] })
  const found = { type: 'tool_search_output', call_id: 'c', execution: 'client' }
  const hosted = { type: 'code_interpreter', name: 'f', container: { type: 'auto' } }
  const space = { type: 'namespace', name: 's', tools: [{ type: 'function', name: 'f' }] }
  const rows: [body: object, param: string][] = [
    [{ ...hi, tool_choice: { type: 'x', name: no } }, 'tool_choice'],
    [{ ...hi, tool_choice: { type: 'x', namespace: no } }, 'tool_choice'],
    [{ ...hi, tool_choice: { type: 'allowed_tools', tools: [{ type: no }] } }, 'tool_choice.tools'],
    [item({ type: 'item_reference', id: no }), 'input[0].id'],
    [
      item({ type: 'tool_search_output', call_id: 'c', execution: 'client', tools: [{ type: no, name: 'g' }] }),
      'input[0].tools[0].type',
    ],
    ...[hosted, { ...space, tools: [hosted] }].map((tool): [object, string] => [
      { ...item({ ...found, tools: [tool] }), tools: [{ type: 'function', name: 'f' }, space] },
      tool === hosted ? 'input[0].tools[0].type' : 'input[0].tools[0].tools[0].type',
    ]),
  ]
  for (const [body, param] of rows) {
    const error = thrown(() => decode(openAiResponses, body))
    t.ok(error instanceof GatewayError, `${param}: ${error}`)
    t.match(error, { status: 400, param })
  }
})

t.test("an object in place of a word of Google's schemas stays what it is", async t => {
  const tools = (parameters: object) => ({ contents, tools: [{ functionDeclarations: [{ name: 'f', parameters }] }] })
  for (const name of ['type', 'format', 'minItems', 'max_length']) {
    for (const schema of [{ [name]: no }, { type: 'OBJECT', properties: { a: { [name]: no } } }]) {
      const generationConfig = { responseMimeType: 'application/json', responseSchema: schema }
      for (const body of [{ contents, generationConfig }, tools(schema)]) {
        t.match(JSON.stringify(decode(generateContent, body)), '"toString":null', name)
      }
    }
  }
})

t.test('an object in place of the name of a tool is refused by MCP', async t => {
  const token = { scopes: ['usage:read'] }
  const ex = exchange({ principal: Object.assign({}, principal, { token }) })
  const services = { version: '1', log: { error: (fields: { err: unknown }) => t.error(fields.err) } }
  const context = { ex, services } as unknown as ToolContext
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call' }
  for (const name of [no, ['chat'], 1, undefined]) {
    const answered = await answer({ ...call, params: { name } }, context)
    t.match(answered, { status: 200, answer: { error: { code: -32_602 } } }, JSON.stringify(name))
  }
  const refused = await answer({ ...call, params: { name: 'chat' } }, context).catch((thrown: unknown) => thrown)
  t.match(refused, { status: 403 })
})
