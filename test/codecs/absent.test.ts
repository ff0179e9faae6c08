/** Null members of chat requests count as absent, wherever the schema lets a member be absent. */
import t from 'tap'
import { openAiChat } from '../../src/codecs/openai-chat.ts'
import { chatRequest } from '../../src/core/chat-request.ts'
import type { JsonSchema } from '../../src/core/schema.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { thrown } from '../core/kit.ts'
import { type Json, rows, valid } from './bodies.ts'

const decode = (body: unknown): Json => openAiChat.decode(structuredClone(body)) as unknown as Json
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value with every member that may be absent, as null. */
function filled(value: unknown, schema: JsonSchema): unknown {
  const { anyOf, oneOf, items, properties, required } = schema
  if (Array.isArray(anyOf)) {
    return (anyOf as JsonSchema[]).reduce<unknown>((result, member) => filled(result, member), value)
  }
  if (Array.isArray(value)) return isObject(items) ? value.map(entry => filled(entry, items)) : value
  if (!isObject(value)) return value
  if (Array.isArray(oneOf)) {
    const member = (oneOf as { properties: { type: { enum: unknown[] } } }[]).find(({ properties }) =>
      properties.type.enum.includes(value.type),
    )
    return member ? filled(value, member as unknown as JsonSchema) : value
  }
  if (!isObject(properties)) return value
  const result: Json = { ...value }
  for (const [name, member] of Object.entries(properties as Record<string, JsonSchema>)) {
    if (value[name] != null) result[name] = filled(value[name], member)
    else if (!(required as string[]).includes(name)) result[name] = null
  }
  return result
}

/** Members that are null left out, at all depths. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (!isObject(value)) return value
  const entries = Object.entries(value).filter(([, member]) => member != null)
  return Object.fromEntries(entries.map(([name, member]) => [name, plain(member)]))
}

t.test('a null member is an absent one, in every object of a chat request', async t => {
  for (const [, , right] of rows) {
    const body = { ...valid, ...right }
    const says = JSON.stringify(right).slice(0, 100)
    const [given, expected] = [filled(body, chatRequest.json), plain(body)]
    t.strictSame(plain(decode(given)), plain(decode(expected)), says)
  }
})

t.test('members that are required, and free JSON, keep their nulls', async t => {
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: null } }
  const error = thrown(() => decode({ ...valid, messages: [{ role: 'assistant', tool_calls: [call] }] }))
  t.match((error as GatewayError).param, 'messages[0].tool_calls[0].function.arguments')
  const parameters = { type: 'object', properties: { a: { default: null } }, description: null }
  const tools = [{ type: 'function', function: { name: 'f', description: null, parameters } }]
  t.match(decode({ ...valid, tools }).tools, [{ function: { parameters } }])
})

t.test('a tool, a call and a choice without a type but with a function are of a function', async t => {
  const named = { function: { name: 'f' } }
  const call = { id: 'c', function: { name: 'f', arguments: '{}' } }
  for (const type of [undefined, null]) {
    const untyped = { ...(type === null && { type }) }
    const body = {
      ...valid,
      messages: [...valid.messages, { role: 'assistant', tool_calls: [{ ...untyped, ...call }] }],
      tools: [{ ...untyped, ...named }],
      tool_choice: { ...untyped, ...named },
    }
    const { messages, tools, tool_choice } = decode(body)
    t.strictSame(tools, [{ type: 'function', ...named }])
    t.strictSame(tool_choice, { type: 'function', ...named })
    t.match(messages, [{}, { tool_calls: [{ type: 'function' }] }])
  }
  t.equal((thrown(() => decode({ ...valid, tools: [{ name: 'f' }] })) as GatewayError).param, 'tools[0].type')
})
