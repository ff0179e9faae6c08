/** The client wire of chat: what is refused, and what becomes of a request. */
import fc from 'fast-check'
import t from 'tap'
import { openAiChat } from '../../src/codecs/openai-chat.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { exchange, principal, thrown } from '../core/kit.ts'
import { cpuMs, leastOf } from '../helpers/cpu.ts'
import { runs } from '../helpers/runs.ts'
import { type Json, localUrls, publicUrls, rows, valid, wrongData } from './bodies.ts'

/** The same cases on every run. */
fc.configureGlobal({ seed: 20261120 })

/** As it would come from `JSON.parse`, but with the numbers that JSON can write and not hold. */
const decode = (body: unknown): Json => openAiChat.decode(body) as unknown as Json
const refusal = (body: unknown): GatewayError => thrown(() => decode(body)) as GatewayError
const facts = ({ status, code, param }: GatewayError) => ({ status, code, param })
const merged = (fields: Json): Json =>
  Object.fromEntries(Object.entries({ ...valid, ...fields }).filter(([, field]) => field !== undefined))

t.test(
  'MF-08, MF-09, MF-10 every bound and every word of a chat request is refused by name, and its neighbour passes',
  async t => {
    for (const [wrong, param, right, code = 'invalid_parameters'] of rows) {
      const says = JSON.stringify(wrong).slice(0, 100)
      const error = refusal(clean(merged(wrong)))
      t.strictSame(facts(error), { status: 400, code, param }, says)
      t.match(error.message, /^\S.{10,}/, says)
      t.doesNotThrow(() => decode(clean(merged(right))), JSON.stringify(right).slice(0, 100))
    }
    for (const body of [null, [], 'x', 1, true]) {
      t.strictSame(facts(refusal(body)), { status: 400, code: 'invalid_parameters', param: null }, JSON.stringify(body))
    }
  },
)

/** Without the keys that rows set to undefined, as JSON would be. */
function clean(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(clean)
  if (typeof body !== 'object' || body === null) return body
  const entries = Object.entries(body).filter(([, field]) => field !== undefined)
  return Object.fromEntries(entries.map(([key, field]) => [key, clean(field)]))
}

t.test('a refusal says what would be right', async t => {
  const rows: [Json, string][] = [
    [{ n: 129 }, 'n: must be <= 128'],
    [{ effort: 'max' }, 'effort: must be one of "low", "medium", "high", null'],
    [{ temperature: '1' }, 'temperature: must be number or null'],
    [{ messages: [{ role: 'user', content: 7 }] }, 'messages[0].content: must be string or array or null'],
    [{ tools: [{ type: 'x' }] }, 'tools[0].type: must be one of "function", "custom", "tool_search", "web_search"'],
    [{ messages: undefined }, 'messages: is required'],
  ]
  for (const [wrong, message] of rows) t.equal(refusal(merged(wrong)).message, message)
  t.equal(refusal([]).message, 'The request body must be object')
})

t.test('the canonical request holds what was set, under one name', async t => {
  const tool = { type: 'function', function: { name: 'f' } }
  const other = { type: 'function', function: { name: 'g', description: 'd', parameters: { type: 'object' } } }
  const late = { type: 'function', function: { name: 'late' }, defer_loading: true }
  const custom = { type: 'custom', custom: { name: 'c' } }
  const search = { type: 'tool_search', tool_search_type: 'tool_search_tool' }
  const functions = [other.function, { name: 'f', description: null }]
  const rows: [says: string, sent: Json, canonical: Json][] = [
    ['unknown parameters are dropped', { stop: ['x'], seed: 1, logprobs: true, logit_bias: {}, x: 1 }, {}],
    ['null is absent', { temperature: null, tools: null, n: null, stream: null, reasoning: null }, {}],
    ['max_completion_tokens is max_tokens', { max_completion_tokens: 5 }, { max_tokens: 5 }],
    ['max_completion_tokens wins', { max_completion_tokens: 5, max_tokens: 9 }, { max_tokens: 5 }],
    ['but not with null', { max_completion_tokens: null, max_tokens: 9 }, { max_tokens: 9 }],
    ['onboarding is ignored', { onboarding: true }, {}],
    ['R10 no tools, no choice', { tools: [], tool_choice: 'required', parallel_tool_calls: true }, {}],
    ['R11 a choice without tools', { tool_choice: 'auto' }, {}],
    [
      'tools and their choice',
      { tools: [tool], tool_choice: 'auto', parallel_tool_calls: false },
      { tools: [tool], tool_choice: 'auto', parallel_tool_calls: false },
    ],
    ['what is no boolean forbids nothing', { tools: [tool], parallel_tool_calls: 'no' }, { tools: [tool] }],
    [
      'allowed tools are the tools that are left, with the search for them',
      {
        tools: [tool, other, late, custom, search],
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'required', tools: [custom, { type: 'function', name: 'late' }] },
        },
        parallel_tool_calls: false,
      },
      { tools: [late, custom, search], tool_choice: 'required', parallel_tool_calls: false },
    ],
    [
      'functions are tools, of which one is called at a time',
      { functions, function_call: { name: 'f' } },
      {
        functions,
        tools: [other, { type: 'function', function: { name: 'f' } }],
        tool_choice: { type: 'function', function: { name: 'f' } },
        parallel_tool_calls: false,
      },
    ],
    [
      'a choice among functions by a word',
      { functions: functions.slice(0, 1), function_call: 'none' },
      { functions: functions.slice(0, 1), tools: [other], tool_choice: 'none', parallel_tool_calls: false },
    ],
    ['tools win over functions', { tools: [tool], functions, function_call: 'none' }, { tools: [tool] }],
    ['functions that are none', { functions: [functions[0], { name: 7 }], function_call: 'auto' }, {}],
    ['no functions, and a choice', { functions: [], function_call: { name: 'f' } }, {}],
    [
      'zero and false are values',
      { temperature: 0, stream: false, web_search: false },
      { temperature: 0, stream: false, web_search: false },
    ],
    ['unknown keys within are kept', { reasoning: { effort: 'low', x: 1 } }, { reasoning: { effort: 'low', x: 1 } }],
  ]
  for (const [says, sent, canonical] of rows)
    t.strictSame(decode({ ...valid, ...sent }), { ...valid, ...canonical }, says)
})

t.test('parameters outside the interface pass for projects that allow them, where they are well-formed', async t => {
  const rows: [sent: Json, passed: Json][] = [
    [{ stop: 'a' }, { stop: ['a'] }],
    [
      { stop: ['a', '', 'b'], seed: 0, top_k: 1 },
      { stop: ['a', 'b'], seed: 0, top_k: 1 },
    ],
    [
      { logprobs: true, top_logprobs: 0 },
      { logprobs: true, top_logprobs: 0 },
    ],
    [{ logprobs: false, top_logprobs: 5 }, { logprobs: false }],
    [{ logit_bias: { 5: -100 } }, { logit_bias: { 5: -100 } }],
    [{ stop: '', seed: null, logprobs: null, logit_bias: null, top_k: null }, {}],
    [{ stop: [], seed: 1.5, logprobs: 5, top_logprobs: 2, top_k: -1 }, {}],
    [
      { stop: [7], seed: '1', logprobs: true, top_logprobs: 21, logit_bias: { 5: 'x' }, top_k: '1' },
      { logprobs: true },
    ],
    [{ stop: {}, logit_bias: [], x: 1 }, {}],
  ]
  const of = (passesParameters: boolean) => exchange({ principal: { ...principal, passesParameters } })
  for (const [sent, passed] of rows) {
    const says = JSON.stringify(sent)
    t.strictSame(openAiChat.decode({ ...valid, ...sent }, of(true)), { ...valid, ...passed }, says)
    t.strictSame(openAiChat.decode({ ...valid, ...sent }, of(false)), valid, `${says} is ignored by default`)
  }
})

t.test('calls and results in the form before tools are those of today, by ids that stay the same', async t => {
  const called = (name: string, more: Json = {}) => ({
    role: 'assistant',
    content: null,
    function_call: { name, arguments: '{}' },
    ...more,
  })
  const now = (id: string, name: string) => ({
    role: 'assistant',
    content: null,
    tool_calls: [{ id, type: 'function', function: { name, arguments: '{}' } }],
  })
  const answer = (name: string | undefined, content: string) => ({ role: 'function', ...(name && { name }), content })
  const result = (tool_call_id: string, content: string) => ({ role: 'tool', content, tool_call_id })
  const hi = { role: 'user', content: 'Hi' }
  const rows: [says: string, sent: Json[], canonical: Json[]][] = [
    [
      'turn by turn',
      [hi, called('f'), answer('f', '1'), called('f'), answer('f', '2')],
      [
        hi,
        now('call_function_1', 'f'),
        result('call_function_1', '1'),
        now('call_function_3', 'f'),
        result('call_function_3', '2'),
      ],
    ],
    [
      'by name, or else the latest',
      [called('f'), called('g'), answer('f', '1'), answer(undefined, '2')],
      [
        now('call_function_0', 'f'),
        now('call_function_1', 'g'),
        result('call_function_0', '1'),
        result('call_function_1', '2'),
      ],
    ],
    ['a result without a call', [hi, answer('f', '1')], [hi, answer('f', '1')]],
    [
      'no call',
      [called('f', { function_call: { name: 'f' } }), hi],
      [called('f', { function_call: { name: 'f' } }), hi],
    ],
    [
      'a call in both forms',
      [{ ...now('c', 'f'), function_call: { name: 'f', arguments: '{}' } }],
      [{ ...now('c', 'f'), function_call: { name: 'f', arguments: '{}' } }],
    ],
  ]
  for (const [says, messages, canonical] of rows) t.strictSame(decode({ ...valid, messages }).messages, canonical, says)
})

t.test('cache marks are counted by the wires that apply them, and nowhere else', async t => {
  const content = Array.from({ length: 9 }, () => ({ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }))
  const messages = [{ role: 'user', content }]
  t.strictSame(decode({ ...valid, messages }), { ...valid, messages })
})

t.test('MF-18, SI-01, SI-04 an image is a data URL of an image, or stands at a public address', async t => {
  const pictured = (url: string) => ({
    ...valid,
    messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
  })
  const param = 'messages[0].content[0].image_url.url'
  for (const url of localUrls)
    t.strictSame(facts(refusal(pictured(url))), { status: 400, code: 'url_not_allowed', param }, url.slice(0, 80))
  for (const url of wrongData)
    t.strictSame(facts(refusal(pictured(url))), { status: 400, code: 'invalid_parameters', param }, url)
  for (const url of publicUrls) t.doesNotThrow(() => decode(pictured(url)), url)
})

const nested = (levels: number, open = '[', close = ']') => open.repeat(levels) + close.repeat(levels)
const listed = (values: number) => `{"a":[${Array.from({ length: values }, () => '0').join()}]}`

const namedArguments = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, at) => [`name ${at}`, at])))

t.test('values and levels inside text that is JSON count with those of the body', async t => {
  const call = (args: string) => ({ id: 'c', type: 'function', function: { name: 'f', arguments: args } })
  const called = (...args: string[]) => [{ role: 'assistant', tool_calls: args.map(call) }]
  const gives = (...texts: string[]) => [
    ...called('{}'),
    ...texts.map(content => ({ role: 'tool', tool_call_id: 'c', content })),
  ]
  const parts = (...texts: string[]) => [
    ...called('{}'),
    { role: 'tool', tool_call_id: 'c', content: texts.map(text => ({ type: 'text', text })) },
  ]
  const many = listed(35_000)
  const cases: [says: string, messages: unknown, code: string | undefined][] = [
    ['levels of arguments that fit', called(nested(122)), undefined],
    ['levels of arguments below those of the body', called(nested(123)), 'too_deep'],
    ['half a million levels', called(nested(500_000, '{"a":', '}')), 'too_deep'],
    ['arguments that were encoded twice', called(JSON.stringify(nested(123))), 'too_deep'],
    ['brackets in a string, and escaped quotes', called(JSON.stringify({ a: `"\\"${'['.repeat(200)}` })), undefined],
    ['values of one call', called(listed(39_990)), undefined],
    ['too many values of one call', called(listed(40_000)), 'too_many_elements'],
    ['too many values of two calls', called(many, many), 'too_many_elements'],
    ['names of two calls', called(namedArguments(9_900), namedArguments(9_900)), undefined],
    ['too many names of two calls', called(namedArguments(10_100), namedArguments(10_100)), 'too_many_elements'],
    ['names of results', gives(namedArguments(10_100), namedArguments(10_100)), undefined],
    ['too many values that were encoded twice', called(JSON.stringify(listed(40_000))), 'too_many_elements'],
    [
      'arguments of more characters than any model reads',
      called(`{"a":"${'a'.repeat(4 << 20)}"}`),
      'invalid_parameters',
    ],
    ['a result that is deep', gives(`{"a":${nested(125)}}`), 'too_deep'],
    ['results with too many values', gives(many, many), 'too_many_elements'],
    ['one result in parts', parts(`{"a":${'['.repeat(60)}`, `${'['.repeat(70)}${']'.repeat(130)}}`), 'too_deep'],
    ['results that are no JSON', gives(nested(500), `{${nested(500)}}`, ','.repeat(300_000)), undefined],
    [
      'any input of a custom tool',
      [{ role: 'assistant', tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'f', input: nested(500) } }] }],
      undefined,
    ],
    [
      'the older form of a call',
      [{ role: 'assistant', function_call: { name: 'f', arguments: nested(500_000) } }],
      'too_deep',
    ],
  ]
  for (const [says, messages, code] of cases) {
    if (code === undefined) t.doesNotThrow(() => decode({ ...valid, messages }), says)
    else t.match(refusal({ ...valid, messages }), { status: 400, code }, says)
  }
  const ex = exchange()
  ex.input.values = 30_000
  t.match(
    thrown(() => openAiChat.decode({ ...valid, messages: called(many) }, ex)),
    { code: 'too_many_elements' },
  )
})

t.test('the head of a data URL is bounded, wherever it stands', async t => {
  const head = (characters: number) => `data:image/png;a=${'x'.repeat(characters - 25)};base64,`
  const data = 'A'.repeat(100)
  const holders: [string, (url: string) => Json][] = [
    ['image_url.url', url => ({ type: 'image_url', image_url: { url } })],
    ['file.file_data', file_data => ({ type: 'file', file: { filename: 'a', file_data } })],
    ['input_audio.data', data => ({ type: 'input_audio', input_audio: { data, format: 'wav' } })],
  ]
  for (const [where, part] of holders) {
    const of = (url: string) => ({ ...valid, messages: [{ role: 'user', content: [part(url)] }] })
    const param = `messages[0].content[0].${where}`
    t.doesNotThrow(() => decode(of(head(256) + data)), where)
    for (const url of [head(257) + data, `data:${';a'.repeat(5_000_000)},${data}`, `data:${'a'.repeat(300)}`]) {
      const error = refusal(of(url))
      t.strictSame(facts(error), { status: 400, code: 'invalid_parameters', param })
      t.match(error.message, /a data URL may have at most 256 characters before its comma/)
    }
  }
})

/** Whether `run` took less CPU time than so many milliseconds once. */
function within(ms: number, run: () => unknown): boolean {
  const [took = ms] = leastOf([() => cpuMs(run)], took => took < ms)
  return took < ms
}

/** Of what is in a body, for each character of it. */
const MAX_LOOKS = 20

/** A body that counts how often something in it is looked at. */
function watched(body: unknown): { body: unknown; looks: () => number } {
  let looks = 0
  const known = new WeakMap<object, object>()
  const watch = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value
    let proxy = known.get(value)
    if (!proxy) {
      proxy = new Proxy(value, {
        get: (target, key) => {
          looks++
          return watch(Reflect.get(target, key))
        },
        has: (target, key) => {
          looks++
          return Reflect.has(target, key)
        },
        ownKeys: target => {
          const keys = Reflect.ownKeys(target)
          looks += keys.length
          return keys
        },
      })
      known.set(value, proxy)
    }
    return proxy
  }
  return { body: watch(body), looks: () => looks }
}

t.test('MF-16 any JSON is decoded or refused with 400, in linear time', async t => {
  openAiChat.prepare()
  const outcome = (body: unknown) => {
    try {
      return typeof decode(body) === 'object'
    } catch (error) {
      return error instanceof GatewayError && error.status === 400
    }
  }
  const legal = rows.flatMap(([wrong, , right]) => [wrong, right]).map(fields => clean(merged(fields)) as Json)
  const keys = [...new Set(legal.flatMap(Object.keys))]
  const seeded = fc.record({
    base: fc.constantFrom(...legal),
    fields: fc.dictionary(fc.constantFrom(...keys), fc.jsonValue()),
  })
  const body = fc.oneof(
    fc.jsonValue(),
    seeded.map(({ base, fields }) => ({ ...base, ...fields })),
  )
  const looksAt = (body: unknown): number => {
    const seen = watched(body)
    return outcome(seen.body) ? seen.looks() : Number.POSITIVE_INFINITY
  }
  const holds = fc.property(body, body => {
    const length = (JSON.stringify(body) ?? '').length
    return outcome(body) && looksAt(body) <= MAX_LOOKS * (length + 10)
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: runs(2000) }))

  const late = { type: 'function', function: { name: 'f' }, defer_loading: true }
  const many = <T>(length: number, of: T): T[] => Array<T>(length).fill(of)
  const said = (content: Json[]): Json => ({ messages: [{ role: 'user', content }] })
  const large: [says: string, most: number, of: (length: number) => Json][] = [
    [
      'tools',
      39_000,
      n => ({ tools: [...many(n, late), { type: 'tool_search', tool_search_type: 'tool_search_tool' }] }),
    ],
    ['messages', 60_000, n => ({ messages: many(n, valid.messages[0]) })],
    ['parts', 60_000, n => said(many(n, { type: 'text', text: '' }))],
    ['parts that are wrong', 60_000, n => said(many(n, { type: 'x' }))],
  ]
  for (const [says, most, of] of large) {
    const body = { ...valid, ...of(most) }
    t.ok(
      within(500, () => outcome(body)),
      says,
    )
    const [half, whole] = [most / 2, most].map(n => looksAt({ ...valid, ...of(n) })) as [number, number]
    t.ok(whole <= 2 * half + 1000, `${says}: ${half} looks at a half, ${whole} at all of it`)
  }
  const letters = 'A'.repeat(20_000_000)
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${letters}` } }
  const texts = { 'one text': { messages: [{ role: 'user', content: letters }] }, 'one address': said([image]) }
  for (const [says, fields] of Object.entries(texts)) {
    t.ok(
      within(500, () => outcome({ ...valid, ...fields })),
      says,
    )
  }
})
