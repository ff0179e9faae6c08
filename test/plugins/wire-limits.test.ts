/** What models of these wires refuse, and what is sent in its place. */
import t from 'tap'
import { plugin as anthropic } from '../../plugins/anthropic.ts'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import type { Translator } from '../../src/core/translator.ts'
import { decodePieces, encodeWith, errorsOf, type Json, offer } from './golden-kit.ts'

const chatOf = (plugin: { wires: readonly unknown[] }) => plugin.wires[0] as Translator<'chat'>
const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }]

t.test('of a turn that holds thoughts, the first block is one', async t => {
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'said elsewhere' },
    {
      role: 'assistant',
      content: 'b',
      reasoning_details: [
        { type: 'reasoning.text', text: 'T', signature: 'acme:S', format: 'anthropic-claude-v1', block_index: 0 },
      ],
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c', content: 'ok' },
  ]
  const turn = (plugin: { wires: readonly unknown[] }, externalId: string) => {
    const to = offer({ externalId, supports: ['tools', 'reasoning'] })
    const { body } = encodeWith(chatOf(plugin), { messages, tools, reasoning_effort: 'high' }, to)
    return (body.messages as { content: Json[] }[])[1]!.content
  }
  const ofBedrock = turn(bedrock, 'anthropic.claude-haiku-4-5-20251001-v1:0')
  t.same(
    ofBedrock.map(block => Object.keys(block)[0]),
    ['reasoningContent', 'text', 'text', 'toolUse'],
  )
  const ofAnthropic = turn(anthropic, 'claude-haiku-4-5')
  t.same(
    ofAnthropic.map(({ type }) => type),
    ['thinking', 'text', 'text', 'tool_use'],
  )
})

t.test('no budget is larger than the model takes', async t => {
  const budget = (reasoning_effort: string, externalId: string) => {
    const { body } = encodeWith(chatOf(gemini), { reasoning_effort }, offer({ externalId, supports: ['reasoning'] }))
    return ((body.generationConfig as Json).thinkingConfig as Json).thinkingBudget
  }
  t.equal(budget('max', 'gemini-2.5-pro'), 32_768)
  t.equal(budget('xhigh', 'gemini-2.5-flash'), 24_576)
  t.equal(budget('xhigh', 'gemini-2.5-flash-lite'), 24_576)
  t.equal(budget('low', 'gemini-2.5-pro'), 2048)
})

t.test('models before the third generation take no answer format beside tools', async t => {
  const schema = { type: 'object' }
  const request = { tools, response_format: { type: 'json_schema', json_schema: { name: 'r', schema } } }
  const old = encodeWith(chatOf(gemini), request, offer({ externalId: 'gemini-2.5-flash' })).body
  t.notMatch(old, { generationConfig: { responseMimeType: /./ } })
  t.match(old, { systemInstruction: { parts: [{ text: /JSON Schema/ }] } })
  const gemma = encodeWith(chatOf(gemini), request, offer({ externalId: 'gemma-4-31b-it' })).body
  t.notOk(gemma.systemInstruction)
  const third = offer({ externalId: 'gemini-3.6-flash', reasoningEfforts: ['low'] })
  t.match(encodeWith(chatOf(gemini), request, third).body, {
    generationConfig: { responseMimeType: 'application/json' },
  })
})

t.test('an error among events that comes as bare JSON', async t => {
  const error = { error: { code: 429, message: 'Slow down', status: 'RESOURCE_EXHAUSTED' } }
  const chunk = `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: 'a' }] } }] })}\r\n\r\n`
  for (const text of [JSON.stringify(error), JSON.stringify(error, null, 2), chunk + JSON.stringify(error, null, 2)]) {
    const bytes = Buffer.from(text)
    for (let cut = 0; cut < bytes.length; cut++) {
      const decoder = chatOf(gemini).decoder('stream', offer())
      const [found] = errorsOf(decodePieces(decoder, [bytes.subarray(0, cut), bytes.subarray(cut)]))
      t.match(found, { code: 'upstream_rate_limited', message: 'Slow down' })
    }
  }
})

t.test('a model that does not stream while it has tools answers whole', async t => {
  const to = offer({ externalId: 'meta.llama4-maverick-17b-instruct-v1:0', supports: ['streaming', 'tools'] })
  const path = (request: Json) => encodeWith(chatOf(bedrock), request, to, true).path
  t.match(path({ tools }), /\/converse$/)
  t.match(path({}), /\/converse-stream$/)
})
