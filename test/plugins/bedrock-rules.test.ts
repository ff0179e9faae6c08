/** The rules of the simulated Converse API: checks that rely on a refusal which does not happen prove nothing. */

import t from 'tap'
import type { Json } from '../../src/json/json.ts'

type Rules = { check(headers: Json, body: unknown, keys: string[], url: URL): void }
const { check }: Rules = await import(new URL('../helpers/upstream/bedrock-rules.mjs', import.meta.url).href)

const CLAUDE = 'us.anthropic.claude-haiku-4-5-20251001-v1%3A0'
const NEWEST = 'us.anthropic.claude-opus-5-5'
const NOVA = 'amazon.nova-2-lite-v1%3A0'
const MISTRAL = 'mistral.mistral-large-2407-v1%3A0'
const say = (text: string) => ({ text })
const point = (more: Json = {}) => ({ cachePoint: { type: 'default', ...more } })
const tool = (more: Json = {}) => ({ toolSpec: { name: 'f', inputSchema: { json: { type: 'object' } }, ...more } })
const turn = (role: string, ...content: Json[]) => ({ role, content })
const use = (more: Json = {}) => ({ toolUse: { toolUseId: 't', name: 'f', input: {}, ...more } })
const result = (toolUseId = 't') => ({ toolResult: { toolUseId, content: [say('ok')] } })
const image = (format: string, bytes: string) => ({ image: { format, source: { bytes } } })
const document = (name: string) => ({ document: { format: 'txt', name, source: { bytes: 'YQ==' } } })

const hi = turn('user', say('Hi'))
const loop = [hi, turn('assistant', use()), turn('user', result())]
const tools = { tools: [tool()] }

function refusalOf(body: unknown, model = CLAUDE, headers: Json = {}, keys: string[] = []): string | undefined {
  const sent = { authorization: 'Bearer k', 'content-type': 'application/json', ...headers }
  try {
    check(sent, body, keys, new URL(`http://upstream/model/${model}/converse`))
    return undefined
  } catch (thrown) {
    return String(thrown)
  }
}

t.test('good requests are taken', async t => {
  t.equal(refusalOf({ messages: [hi] }), undefined)
  t.equal(refusalOf({ messages: loop, toolConfig: tools, system: [say('Be brief'), point({ ttl: '1h' })] }), undefined)
  t.equal(refusalOf({ messages: [hi, turn('assistant', say('So'))] }), undefined)
})

t.test('bad messages are refused', async t => {
  const rows: [RegExp, Json[], string?][] = [
    [/hold a message/, []],
    [/start with a user/, [turn('assistant', say('a'))]],
    [/alternate/, [hi, hi]],
    [/is empty/, [turn('user')]],
    [/blank/, [turn('user', say(' '))]],
    [/UTF-8/, [turn('user', say('\ud83d'))]],
    [/must have one key/, [turn('user', { ...say('a'), ...point() })]],
    [/not allowed here/, [hi, turn('assistant', image('png', 'iVBORw0KGgo=')), hi]],
    [/no png/, [turn('user', image('png', '/9j/4AAQ'))]],
    [/not base64/, [turn('user', image('png', 'data:image/png;base64,'))]],
    [/format bmp/, [turn('user', image('bmp', 'AAAA'))]],
    [/document name/, [turn('user', say('a'), document('a_b'))]],
    [/document name/, [turn('user', say('a'), document('a  b'))]],
    [/duplicate document/, [turn('user', say('a'), document('a'), document('a'))]],
    [/needs a text/, [turn('user', document('a'))]],
    [/nothing available/, [turn('user', point(), say('a'))]],
    [/not support prompt caching/, [turn('user', say('a'), point())], MISTRAL],
    [/maximum of 4/, [turn('user', say('a'), point(), point(), point(), point(), point())]],
    [/must not come after/, [turn('user', say('a'), point(), say('b'), point({ ttl: '1h' }))]],
    [/end with a user/, [hi, turn('assistant', say('So'))], NOVA],
    [/whitespace/, [hi, turn('assistant', say('So '))]],
    [/calls without results/, loop.slice(0, 2)],
    [/must be those of the previous calls/, [...loop.slice(0, 2), hi]],
    [/must be those of the previous calls/, [...loop.slice(0, 2), turn('user', result(), result('u'))]],
    [/results must come first/, [...loop.slice(0, 2), turn('user', say('a'), result())]],
    [/must be an object/, [hi, turn('assistant', use({ input: [] })), turn('user', result())]],
    [/duplicate Ids/, [hi, turn('assistant', use(), use()), turn('user', result(), result())]],
    [/toolUseId must satisfy/, loop, MISTRAL],
    [/Invalid `signature`/, [hi, turn('assistant', { reasoningContent: { reasoningText: { text: 'a' } } }), hi]],
    [/cannot contain/, [hi, turn('assistant', { reasoningContent: { reasoningText: { text: 'a' } } }), hi], NOVA],
  ]
  for (const [message, messages, model] of rows) t.match(refusalOf({ messages, toolConfig: tools }, model), message)
})

t.test('bad settings are refused', async t => {
  const thinking = { type: 'enabled', budget_tokens: 1024 }
  const claude = (additionalModelRequestFields: Json, more: Json = {}) => ({ additionalModelRequestFields, ...more })
  const rows: [RegExp, Json, string?][] = [
    [/unknown field model/, { model: 'm' }],
    [/must be defined/, { messages: loop }],
    [/must hold a tool/, { toolConfig: { tools: [] } }],
    [/description/, { toolConfig: { tools: [tool({ description: '' })] } }],
    [/name must satisfy/, { toolConfig: { tools: [tool({ name: 'a.b' })] } }],
    [/must be object/, { toolConfig: { tools: [tool({ inputSchema: { json: {} } })] } }],
    [/unique/, { toolConfig: { tools: [tool(), tool()] } }],
    [/strict/, { toolConfig: { tools: [tool({ strict: true })] } }, NEWEST],
    [/not supported/, { toolConfig: { ...tools, toolChoice: { any: {} } } }, NEWEST],
    [/no such tool/, { toolConfig: { ...tools, toolChoice: { tool: { name: 'g' } } } }],
    [/conflicts/, { toolConfig: { ...tools, toolChoice: { auto: {} } }, ...claude({ tool_choice: { type: 'auto' } }) }],
    [/No cachePoint in tools/, { toolConfig: { tools: [tool(), point()] } }, NOVA],
    [/temperature: must be/, { inferenceConfig: { temperature: 1.1 } }],
    [/cannot both/, { inferenceConfig: { temperature: 1, topP: 1 } }],
    [/not supported/, { inferenceConfig: { temperature: 1 } }, NEWEST],
    [/greater than/, claude({ thinking })],
    [/while thinking/, claude({ thinking }, { inferenceConfig: { maxTokens: 2000, temperature: 1 } })],
    [
      /forces/,
      claude({ thinking }, { inferenceConfig: { maxTokens: 2000 }, toolConfig: { ...tools, toolChoice: { any: {} } } }),
    ],
    [
      /Expected `thinking`/,
      claude({ thinking }, { inferenceConfig: { maxTokens: 2000 }, messages: loop, toolConfig: tools }),
    ],
    [/output_config.format/, claude({ output_config: { format: {} } }), NEWEST],
    [/extraneous key/, claude({ reasoning_effort: 'low' })],
    [/must be unset/, claude({ reasoningConfig: { maxReasoningEffort: 'high' } }, { inferenceConfig: {} }), NOVA],
    [/schema as text/, { outputConfig: { textFormat: { type: 'json_schema', structure: {} } } }],
    [/serviceTier/, { serviceTier: { type: 'auto' } }],
    [/requestMetadata/, { requestMetadata: { user: 'é' } }],
    [/percent-encoded/, {}, 'anthropic.x-v1:0'],
  ]
  for (const [message, body, model] of rows) t.match(refusalOf({ messages: [hi], ...body }, model), message)
})

t.test('a bearer key or a signature is needed', async t => {
  const body = { messages: [hi] }
  const scope = 'AKIDEXAMPLE/20261120/us-east-1/bedrock/aws4_request'
  const signature = `Signature=${'0a'.repeat(32)}`
  const signed = (names: string, day = '20261120') => ({
    authorization: `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=${names}, ${signature}`,
    'x-amz-date': `${day}T000000Z`,
  })
  t.equal(refusalOf(body, CLAUDE, {}, ['k']), undefined)
  t.match(refusalOf(body, CLAUDE, {}, ['other']), /token/)
  t.match(refusalOf(body, CLAUDE, { authorization: undefined }), /token/)
  t.equal(refusalOf(body, CLAUDE, signed('content-type;host;x-amz-date'), ['k']), undefined)
  t.match(refusalOf(body, CLAUDE, signed('host;content-type')), /SignedHeaders/)
  t.match(refusalOf(body, CLAUDE, signed('host;x-amz-date', '20261121')), /scope/)
  t.match(refusalOf(body, CLAUDE, { authorization: `AWS4-HMAC-SHA256 Credential=${scope}` }), /token/)
})
