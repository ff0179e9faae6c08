/**
 * The client wire of `POST /v1/messages`: what is refused, and what becomes of a request. `test/golden/messages` holds
 * bodies with the chat request that they become.
 */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { anthropicMessages } from '../../src/codecs/anthropic-messages.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { exchange, thrown } from '../core/kit.ts'
import { runs } from '../helpers/runs.ts'
import { deepFreeze } from '../plugins/wire-kit.ts'
import type { Json } from './bodies.ts'
import { seal } from './messages-answers.ts'
import { blocks, histories, openAiShaped, rows, settings, valid } from './messages-bodies.ts'
import { onlyNative, renewed } from './native-bodies.ts'

/** The same cases on every run. */
fc.configureGlobal({ seed: 20261120 })

const decode = (body: unknown): ChatRequest => anthropicMessages.decode(deepFreeze(body), exchange())
/** Without the keys that rows set to undefined, as JSON would be. */
const body = (fields: Json): Json => JSON.parse(JSON.stringify({ ...valid, ...fields }))
const refusal = (body: unknown): GatewayError => thrown(() => decode(body)) as GatewayError
const facts = ({ status, code, param }: GatewayError) => ({ status, code, param })
const golden = (name: string): Json =>
  JSON.parse(readFileSync(new URL(`../golden/messages/${name}.json`, import.meta.url), 'utf8'))

t.test('a golden body becomes its chat request, and is kept as it came', async t => {
  const ex = exchange()
  const sent = deepFreeze(golden('agent.body'))
  t.strictSame(anthropicMessages.decode(sent, ex), golden('agent.request'))
  t.equal(ex.input.native?.wire, 'anthropic.messages')
  t.equal(ex.input.native?.body, sent)
})

t.test('of an older body, what providers take only with a beta is renewed', async t => {
  for (const [says, fields, sent] of renewed) {
    const ex = exchange()
    const given = deepFreeze(body(fields))
    anthropicMessages.decode(given, ex)
    const expected = Object.fromEntries(Object.entries({ ...given, ...sent }).filter(([, value]) => value !== null))
    t.strictSame(ex.input.native?.body, expected, says)
  }
})

t.test('what only a provider of the same wire can carry is named', async t => {
  for (const [fields, path] of onlyNative) {
    const ex = exchange()
    anthropicMessages.decode(deepFreeze(body(fields)), ex)
    t.equal(ex.input.native?.only, path, JSON.stringify(fields).slice(0, 120))
  }
})

t.test('results that are JSON count with the values of the body, and what is called is counted there', async t => {
  const listed = (values: number): string => `{"a":[${Array.from({ length: values }, () => '0').join()}]}`
  const turns = (input: unknown, content: string) => [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content }] },
  ]
  const outcome = (input: unknown, content: string, values: number) => {
    const ex = exchange()
    ex.input.values = values
    try {
      anthropicMessages.decode(body({ messages: turns(input, content) }), ex)
      return undefined
    } catch (error) {
      return (error as GatewayError).code
    }
  }
  t.equal(outcome(JSON.parse(listed(150_000)), 'ok', 150_020), undefined)
  t.equal(outcome({}, listed(150_000), 60_000), 'too_many_elements')
  t.equal(outcome({}, `{"a":${'['.repeat(500_000)}`, 10), 'too_deep')
})

t.test('every wrong field is refused by name, and its neighbour passes', async t => {
  for (const [wrong, param, right] of rows) {
    const says = JSON.stringify(wrong).slice(0, 120)
    const error = refusal(body(wrong))
    t.strictSame(facts(error), { status: 400, code: 'invalid_parameters', param }, says)
    t.ok(error.message.startsWith(`Invalid request format: ${param}: `), error.message)
    t.doesNotThrow(() => decode(body(right)), JSON.stringify(right).slice(0, 120))
  }
  for (const wrong of [null, [], 'x', 1, true]) {
    const error = refusal(wrong)
    t.strictSame(facts(error), { status: 400, code: 'invalid_parameters', param: null })
    t.equal(error.message, 'Invalid request format: the body: must be object')
  }
})

t.test('a refusal names all faults up to twelve, unions with all that they take', async t => {
  const several = refusal({
    model: 7,
    messages: [
      { role: 'robot', content: 1 },
      { role: 'user', content: [{}] },
    ],
  })
  t.equal(
    several.message,
    'Invalid request format: model: must be string; max_tokens: is required; ' +
      'messages[0].role: must be one of "user", "assistant", "system", "developer", "tool", "function"; ' +
      'messages[1].content[0].type: is required',
  )
  t.match(refusal(body({ system: 7 })).message, 'system: must be string or array or null')
  const many = refusal(body({ messages: Array(50).fill({ role: 'user', content: [{ type: 'text' }] }) }))
  t.equal(many.message.split('; ').length, 12)
})

t.test('a body of the other format is refused with its field and its endpoint', async t => {
  for (const [fields, path] of openAiShaped) {
    const error = refusal(body(fields))
    t.strictSame(facts(error), { status: 400, code: 'invalid_parameters', param: path }, path)
    t.ok(error.message.startsWith(`Invalid request format: "${path}" belongs to`), path)
    t.match(error.message, '/v1/chat/completions')
  }
  const tolerated = { top_p: 1, service_tier: 'auto', metadata: { a: 1 }, user: 'u', reasoning_effort: 'low', x: {} }
  t.strictSame(decode({ ...valid, ...tolerated }), { ...valid, top_p: 1, service_tier: 'auto' })
  t.strictSame(anthropicMessages.error(refusal(body({ n: 1 }))).error.type, 'invalid_request_error')
})

/** A body with a turn for each tool that it defines. */
const defining = (...definitions: Json[]): Json => ({
  messages: [
    { role: 'user', content: 'Hi' },
    ...definitions.map(definition => ({
      role: 'system',
      content: [{ type: 'tool_addition', tool: { type: 'tool_definition', definition } }],
    })),
  ],
})

t.test('searches that a turn defines are asked for as those of the request, as one', t => {
  const search = { type: 'web_search_20250305', name: 'web_search' }
  const mine = { name: 'f', input_schema: {} }
  const rows: [fields: Json, tools: Json[] | undefined][] = [
    [defining(mine, { type: 'bash_20250124', name: 'bash' }), undefined],
    [defining(search), [{ type: 'web_search' }]],
    [defining({ ...search, max_uses: 3 }, mine, { ...search, max_uses: 4 }), [{ type: 'web_search', max_uses: 7 }]],
    [
      { ...defining({ ...search, max_uses: 3 }), tools: [mine, { ...search, max_uses: 2, allowed_domains: ['a.b'] }] },
      [
        { type: 'function', function: { name: 'f', parameters: {} } },
        { type: 'web_search', allowed_domains: ['a.b'], max_uses: 5 },
      ],
    ],
    [{ ...defining(search), tools: [{ ...search, max_uses: 2 }] }, [{ type: 'web_search' }]],
  ]
  for (const [fields, tools] of rows) t.strictSame(decode(body(fields)).tools, tools, JSON.stringify(fields))
  const chosen = { ...defining(search), tool_choice: { type: 'tool', name: 'web_search' } }
  t.strictSame(decode(body(chosen)).tool_choice, { type: 'web_search' })
  t.end()
})

t.test('what no provider may be asked is refused where the client wrote it', async t => {
  const source = (type: string, fields: Json) => [{ role: 'user', content: [{ type, source: fields }] }]
  const marked = { type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }
  const local = { type: 'url', url: 'http://127.0.0.1/a.png' }
  const at = 'messages[0].content[0].source'
  const cases: [fields: Json, code: string, param: string][] = [
    [{ messages: source('image', local) }, 'url_not_allowed', `${at}.url`],
    [{ messages: source('document', { type: 'url', url: 'http://10.0.0.1/a' }) }, 'url_not_allowed', `${at}.url`],
    [
      { messages: source('image', { type: 'base64', media_type: 'text/html', data: '' }) },
      'invalid_parameters',
      `${at}.media_type`,
    ],
    [
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'tool_result', tool_use_id: 'a' },
              { type: 'image', source: local },
            ],
          },
        ],
      },
      'url_not_allowed',
      'messages[0].content[1].source.url',
    ],
    [
      { messages: [{ role: 'assistant', content: [marked, { type: 'image', source: local }] }] },
      'url_not_allowed',
      'messages[0].content[1].source.url',
    ],
    [{ safeguards: {} }, 'model_not_supported', 'safeguards'],
    [{ fallbacks: [{ model: 'x' }] }, 'model_not_supported', 'fallbacks'],
    [{ fallbacks: 'default' }, 'model_not_supported', 'fallbacks'],
    [
      {
        output_format: { type: 'json_schema', schema: {} },
        output_config: { format: { type: 'json_schema', schema: {} } },
      },
      'unsupported_parameter_combination',
      'output_format',
    ],
    [{ tools: [{ type: 'advisor_20260301', name: 'advisor', model: 'x' }] }, 'model_not_supported', 'tools[0].model'],
    [
      defining({ type: 'advisor_20260301', name: 'advisor', model: 'x' }),
      'model_not_supported',
      'messages[1].content[0].tool.definition.model',
    ],
    [
      defining({ type: 'web_search_20250305', name: 'web_search', max_uses: 'x' }),
      'invalid_parameters',
      'messages[1].content[0].tool.definition.max_uses',
    ],
  ]
  for (const [fields, code, param] of cases) t.strictSame(facts(refusal(body(fields))), { status: 400, code, param })
})

t.test('a thread is refused with what its clients act on, before anything else', async t => {
  for (const thread of [{ type: 'create' }, { type: 'continue', previous_message_id: 'msg_1' }, {}, 'x', false]) {
    const error = refusal({ thread, messages: [], n: 1 })
    t.strictSame(facts(error), { status: 400, code: 'thread_unsupported_request', param: 'thread' })
    t.strictSame(anthropicMessages.error(error), {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: error.message,
        details: { error_code: 'thread_unsupported_request', unsupported: ['message_threads'] },
      },
    })
  }
  t.strictSame(decode(body({ thread: null })), valid)
})

t.test('settings are mapped', async t => {
  for (const [says, fields, canonical] of settings) {
    const isLenient = 'reasoning' in canonical || 'reasoning_effort' in canonical
    const lenient = isLenient && { lenient_reasoning: true }
    t.strictSame(decode(body(fields)), { ...valid, ...canonical, ...lenient }, says)
  }
})

t.test('every kind of block has its chat form, or none', async t => {
  for (const [says, given, content] of blocks) {
    const request = decode(body({ messages: [{ role: 'user', content: given }] }))
    t.strictSame(request.messages, [{ role: 'user', content }], says)
  }
})

t.test('histories are mapped', async t => {
  for (const [says, messages, canonical] of histories) {
    t.strictSame(decode(body({ messages })).messages, canonical, says)
  }
})

t.test('what one dialect signed comes back to it through a thinking block', async t => {
  const claude = { type: 'reasoning.text', text: 'a', format: 'anthropic-claude-v1', block_index: 0 }
  const cases: [signature: string | undefined, detail: Json | undefined][] = [
    ['', undefined],
    [undefined, undefined],
    [seal('text|||'), undefined],
    [
      seal('text|x-v1|2|acme:s|1|'),
      { type: 'reasoning.text', text: 'a', signature: 'acme:s|1|', format: 'x-v1', block_index: 2 },
    ],
    [seal('text|x-v1||'), { type: 'reasoning.text', text: 'a', format: 'x-v1' }],
    [seal('text||0|acme:é🙂'), { type: 'reasoning.text', text: 'a', signature: 'acme:é🙂', block_index: 0 }],
    [
      seal('signature|x-v1|2|acme:s'),
      { type: 'reasoning.text', text: '', signature: 'acme:s', format: 'x-v1', block_index: 2 },
    ],
    [seal('data||0|acme:d'), { type: 'reasoning.encrypted', data: 'acme:d', block_index: 0 }],
    [seal('data|a%|0|acme:d'), { type: 'reasoning.encrypted', data: 'acme:d', format: 'a%', block_index: 0 }],
    [seal('data|a%7Cb|x|acme:d'), { type: 'reasoning.encrypted', data: 'acme:d', format: 'a|b' }],
    ['acme:x|1|y', { ...claude, signature: 'acme:x|1|y' }],
    [seal('other|||'), { ...claude, signature: seal('other|||') }],
    ['bWd3', { ...claude, signature: 'bWd3' }],
  ]
  for (const [signature, detail] of cases) {
    const block = { type: 'thinking', thinking: 'a', ...(signature !== undefined && { signature }) }
    const [message] = decode(body({ messages: [{ role: 'assistant', content: [block] }] })).messages
    t.strictSame(message?.reasoning_details, detail && [detail], JSON.stringify(signature))
    t.equal(message?.reasoning, 'a')
  }
})

t.test('what was signed of a call comes back to it, whatever fields and order the client keeps', async t => {
  const call = (id: string, more: Json = {}) => ({ type: 'tool_use', id, name: 'f', input: {}, ...more })
  const vendor = (sealed: string) => ({ extra_content: { vendor: { thought_signature: sealed } } })
  const thought = (id: string, sealed: string) => ({
    type: 'thinking',
    thinking: '',
    signature: seal(`call||${id}|${sealed}`),
  })
  const orders: Json[][] = [
    [thought('a', 'acme:s'), call('a'), thought('c%7C', 'acme:t'), call('b'), call('c|')],
    [thought('c%7C', 'acme:t'), thought('a', 'acme:s'), thought('gone', 'acme:u'), call('a'), call('b'), call('c|')],
    [call('a', vendor('acme:s')), call('b'), call('c|', vendor('acme:t')), thought('a', 'acme:other')],
  ]
  for (const content of orders) {
    const [message] = decode(body({ messages: [{ role: 'assistant', content }] })).messages
    const signatures = message?.tool_calls?.map(({ extra_content: extra }) => extra?.vendor?.thought_signature)
    t.strictSame(signatures, ['acme:s', undefined, 'acme:t'])
    t.notOk(message?.reasoning_details)
  }
})

t.test('any JSON is decoded or refused with 400', async t => {
  anthropicMessages.prepare()
  const legal = [...rows.flatMap(([wrong, , right]) => [wrong, right]), ...openAiShaped.map(([fields]) => fields)]
  const keys = [...new Set(legal.flatMap(Object.keys))]
  const seeded = fc.record({
    base: fc.constantFrom(...legal.map(body)),
    fields: fc.dictionary(fc.constantFrom(...keys), fc.jsonValue()),
  })
  const any = fc.oneof(
    fc.jsonValue(),
    seeded.map(({ base, fields }) => ({ ...base, ...fields })),
  )
  const holds = fc.property(any, given => {
    try {
      return typeof decode(given) === 'object'
    } catch (error) {
      return error instanceof GatewayError && error.status === 400
    }
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: runs(2000) }))
})
