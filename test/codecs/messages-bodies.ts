/** Messages bodies: wrong ones beside their nearest neighbours, those of the other format, and what becomes of some. */
import type { Json } from './bodies.ts'

export const valid = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 9 }

const said = (message: Json): Json => ({ messages: [{ role: 'user', content: 'Hi', ...message }] })
const block = (fields: Json): Json => said({ content: [fields] })
const tool = (fields: Json): Json => ({ tools: [{ name: 'f', input_schema: {}, ...fields }] })
const at = 'messages[0].content[0]'
const text = (more: Json = {}) => block({ type: 'text', text: 'a', ...more })
const use = (more: Json) => block({ type: 'tool_use', id: 'a', name: 'f', input: {}, ...more })
const result = (more: Json) => block({ type: 'tool_result', tool_use_id: 'a', ...more })
const image = (source: unknown) => block({ type: 'image', source })
const png = { type: 'base64', media_type: 'image/png', data: 'AA==' }

/** What is wrong, the field that is named, and what would have been right. */
export const rows: (readonly [wrong: Json, param: string, right: Json])[] = [
  [{ model: undefined }, 'model', {}],
  [{ model: '' }, 'model', { model: 'x' }],
  [{ messages: undefined }, 'messages', {}],
  [{ messages: [] }, 'messages', {}],
  [{ messages: ['Hi'] }, 'messages[0]', {}],
  [{ max_tokens: undefined }, 'max_tokens', {}],
  [{ max_tokens: 0 }, 'max_tokens', { max_tokens: 1 }],
  [{ max_tokens: 1.5 }, 'max_tokens', { max_tokens: 2 }],
  [{ system: [{ type: 'text' }] }, 'system[0].text', { system: [{ type: 'text', text: 'a' }] }],
  [{ temperature: 1.1 }, 'temperature', { temperature: 1 }],
  [{ top_p: -1 }, 'top_p', { top_p: 0 }],
  [{ top_k: 'a' }, 'top_k', { top_k: 4 }],
  [{ stop_sequences: 'a' }, 'stop_sequences', { stop_sequences: ['a'] }],
  [{ stream: 'yes' }, 'stream', { stream: null }],
  [{ metadata: { user_id: 7 } }, 'metadata.user_id', { metadata: { user_id: null } }],
  [{ thinking: {} }, 'thinking.type', { thinking: { type: 'between_tools' } }],
  [
    { thinking: { type: 'enabled', budget_tokens: 0 } },
    'thinking.budget_tokens',
    { thinking: { type: 'enabled', budget_tokens: 1024 } },
  ],
  [{ output_config: { effort: 'huge' } }, 'output_config.effort', { output_config: { effort: 'max' } }],
  [
    { output_config: { format: { type: 'json_schema' } } },
    'output_config.format.schema',
    { output_config: { format: { type: 'json_schema', schema: {} } } },
  ],
  [
    { output_format: { type: 'json_object', schema: {} } },
    'output_format.type',
    { output_format: { type: 'json_schema', schema: {} } },
  ],
  [{ tool_choice: { type: 'required' } }, 'tool_choice.type', { tool_choice: { type: 'any' } }],
  [{ tool_choice: { type: 'tool' } }, 'tool_choice.name', { tool_choice: { type: 'tool', name: 'f' } }],
  [said({ role: 'robot' }), 'messages[0].role', said({ role: 'developer' })],
  [said({ content: 7 }), 'messages[0].content', said({ content: [] })],
  [said({ content: ['a'] }), at, said({ content: '' })],
  [said({ role: 'system', content: undefined }), 'messages[0].content', said({ role: 'system' })],
  [
    said({ content: undefined, output_config: {} }),
    'messages[0].content',
    said({ role: 'system', content: undefined, output_config: {} }),
  ],
  [block({}), `${at}.type`, block({ type: 'came_later', x: 1 })],
  [text({ text: 7 }), `${at}.text`, text()],
  [text({ cache_control: { type: 'x' } }), `${at}.cache_control.type`, text({ cache_control: null })],
  [
    text({ cache_control: { type: 'ephemeral', ttl: '2h' } }),
    `${at}.cache_control.ttl`,
    text({ cache_control: { type: 'ephemeral', ttl: '1h' } }),
  ],
  [image({ type: 'path' }), `${at}.source.type`, image(png)],
  [image({ ...png, data: 7 }), `${at}.source.data`, image({ type: 'file', file_id: 'f' })],
  [image({ type: 'text', data: 'a' }), `${at}.source.type`, image({ type: 'url', url: 'https://a.example/b.png' })],
  [use({ id: undefined }), `${at}.id`, use({})],
  [use({ input: '{}' }), `${at}.input`, use({ input: { a: 1 } })],
  [result({ tool_use_id: '' }), `${at}.tool_use_id`, result({ content: null })],
  [result({ is_error: 1 }), `${at}.is_error`, result({ is_error: true })],
  [
    result({ content: [{ type: 'text' }] }),
    `${at}.content[0].text`,
    result({ content: [{ type: 'text', text: 'a' }] }),
  ],
  [block({ type: 'thinking' }), `${at}.thinking`, block({ type: 'thinking', thinking: '' })],
  [block({ type: 'redacted_thinking' }), `${at}.data`, block({ type: 'redacted_thinking', data: '' })],
  [
    block({ type: 'document', source: { type: 'content', content: [{ type: 'text' }] } }),
    `${at}.source.content[0].text`,
    block({ type: 'document', source: { type: 'content', content: 'a' } }),
  ],
  [tool({ name: undefined }), 'tools[0].name', tool({})],
  [tool({ input_schema: undefined }), 'tools[0].input_schema', { tools: [{ type: 'bash_20250124', name: 'bash' }] }],
  [tool({ type: 'web_search_20250305', max_uses: 0 }), 'tools[0].max_uses', tool({ max_uses: 1 })],
]

/** Fields of the chat completions format, with the path that the refusal names. */
export const openAiShaped: (readonly [fields: Json, path: string])[] = [
  ...`audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens modalities n
    parallel_tool_calls prediction presence_penalty prompt response_format seed stop store stream_options top_logprobs
    web_search_options`
    .split(/\s+/)
    .map(name => [{ [name]: null }, name] as const),
  [{ max_tokens: undefined, max_completion_tokens: 5 }, 'max_completion_tokens'],
  [{ tools: [{}, { type: 'function', function: { name: 'f' } }] }, 'tools[1].function'],
  [{ tool_choice: 'auto' }, 'tool_choice'],
  [{ tool_choice: { type: 'function', function: { name: 'f' } } }, 'tool_choice.function'],
  [{ messages: [valid.messages[0], { role: 'assistant', content: null, tool_calls: [] }] }, 'messages[1].content'],
  ...'file image_url input_audio input_image input_text output_text refusal'
    .split(' ')
    .map(type => [said({ content: [{ type: 'text', text: '' }, { type }] }), 'messages[0].content[1].type'] as const),
]

const f = { type: 'function', function: { name: 'f', parameters: {} } }
const search = { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' }
const tools = [{ name: 'f', input_schema: {} }]
const web = { type: 'web_search_20260209', name: 'web_search' }

const form = { type: 'json_schema', schema: { type: 'object' } }
const formatOf = (schema: Json, strict?: true) => ({
  response_format: { type: 'json_schema', json_schema: { name: 'answer', schema, ...(strict && { strict }) } },
})
const { response_format } = formatOf(form.schema)
const closed = (properties: Json, ...required: string[]): Json => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})
const name = { type: 'string' }
/** Answers of a schema: with true, as strict ones. */
const forms: readonly (readonly [says: string, schema: Json, strict?: true])[] = [
  [
    'a closed schema whose members are required is strict',
    closed({ name, all: { type: 'array', items: closed({}) } }, 'name', 'all'),
    true,
  ],
  ['OpenAI takes no optional member as strict', closed({ name, nickname: name }, 'name')],
  ['OpenAI takes no optional member of a member as strict', closed({ a: { anyOf: [closed({ name }), name] } }, 'a')],
  [
    'OpenAI takes no open definition as strict',
    { ...closed({ a: { $ref: '#/$defs/a' } }, 'a'), $defs: { a: { type: ['object', 'null'] } } },
  ],
  ['numbers may have bounds', closed({ n: { type: 'integer', minimum: 1 } }, 'n'), true],
  ['OpenAI takes few keywords as strict', closed({ a: { allOf: [name] } }, 'a')],
]

export const settings: (readonly [says: string, fields: Json, canonical: Json])[] = [
  ['null is absent', { system: null, temperature: null, tools: null, stream: null, thinking: null }, {}],
  ['zero is a value', { temperature: 0, top_p: 0 }, { temperature: 0, top_p: 0 }],
  ['no thinking', { thinking: { type: 'disabled' } }, { reasoning_effort: 'none' }],
  [
    'no thinking, whatever the effort',
    { thinking: { type: 'disabled' }, output_config: { effort: 'high' } },
    { reasoning_effort: 'none' },
  ],
  [
    'a budget stays a budget',
    { thinking: { type: 'enabled', budget_tokens: 2000 } },
    { reasoning: { max_tokens: 2000 } },
  ],
  ['thinking without a budget', { thinking: { type: 'enabled' } }, { reasoning: { effort: 'high' } }],
  ['thinking that adapts', { thinking: { type: 'adaptive' } }, { reasoning: { effort: 'high' } }],
  [
    'thinking of an effort',
    { thinking: { type: 'adaptive' }, output_config: { effort: 'xhigh' } },
    { reasoning: { effort: 'xhigh' } },
  ],
  ['an effort alone', { output_config: { effort: 'none' } }, { reasoning: { effort: 'none' } }],
  ['thinking of another kind', { thinking: { type: 'between_tools' } }, {}],
  ['the form of the answer', { output_config: { format: form } }, { response_format }],
  ...forms.map(
    ([says, schema, strict]) =>
      [says, { output_config: { format: { type: 'json_schema', schema } } }, formatOf(schema, strict)] as const,
  ),
  ...forms.map(([says, parameters, strict = false]) => {
    const tools = [{ name: 'f', input_schema: parameters, strict: true }]
    return [says, { tools }, { tools: [{ type: 'function', function: { name: 'f', parameters, strict } }] }] as const
  }),
  ['the form of the answer by its older name', { output_format: form }, { response_format }],
  [
    'the older name beside an effort',
    { output_format: form, output_config: { effort: 'low', format: null } },
    { reasoning: { effort: 'low' }, response_format },
  ],
  ['no form of the answer', { output_format: null }, {}],
  ['tools that only their provider knows', { tools: [{ type: 'bash_20250124', name: 'bash' }] }, {}],
  [
    'a breakpoint at the end of the prompt',
    { cache_control: { type: 'ephemeral', ttl: '1h' } },
    {
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral', ttl: '1h' } }] },
      ],
    },
  ],
  [
    'a breakpoint after a result',
    { ...result({ content: '3' }), cache_control: { type: 'ephemeral' } },
    {
      messages: [{ role: 'tool', tool_call_id: 'a', content: '3', tool_result_cache_control: { type: 'ephemeral' } }],
    },
  ],
  ['R11 a choice without tools', { tool_choice: { type: 'any' } }, {}],
  ['R10 no tools', { tools: [], tool_choice: { type: 'auto' } }, {}],
  ['any tool', { tools, tool_choice: { type: 'any' } }, { tools: [f], tool_choice: 'required' }],
  ['no tool', { tools, tool_choice: { type: 'none' } }, { tools: [f], tool_choice: 'none' }],
  [
    'one tool',
    { tools, tool_choice: { type: 'tool', name: 'f' } },
    { tools: [f], tool_choice: { type: 'function', function: { name: 'f' } } },
  ],
  [
    'a search',
    { tools: [web], tool_choice: { type: 'tool', name: 'web_search' } },
    { tools: [{ type: 'web_search' }], tool_choice: { type: 'web_search' } },
  ],
  [
    'a tool that chat has not',
    { tools: [...tools, { type: 'bash_1', name: 'b' }], tool_choice: { type: 'tool', name: 'b' } },
    { tools: [f] },
  ],
  [
    'deferred tools, searched for by the provider',
    { tools: [{ ...tools[0], defer_loading: true }, search] },
    {
      tools: [
        { ...f, defer_loading: true },
        { type: 'tool_search', tool_search_type: search.type, name: search.name },
      ],
    },
  ],
  ['deferred tools that the client finds', { tools: [{ ...tools[0], defer_loading: true }] }, { tools: [f] }],
  ['a user', { metadata: { user_id: 'u' } }, { user: 'u' }],
  ['a user that only looks like JSON', { metadata: { user_id: '{u' } }, { user: '{u' }],
  ['JSON without a session', { metadata: { user_id: '{"a":1}' } }, { user: '{"a":1}' }],
  ['a tier of other words', { service_tier: 'batch' }, {}],
]

const part = (said: string) => ({ type: 'text', text: said })
const pdf = { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' }

/** The content of a user's turn, and of the message that it becomes. */
export const blocks: (readonly [says: string, given: unknown, content: unknown])[] = [
  ['plain text', [part('a')], 'a'],
  ['nothing', [], ''],
  [
    'an image at an address',
    [{ type: 'image', source: { type: 'url', url: 'https://a.example/b' } }],
    [{ type: 'image_url', image_url: { url: 'https://a.example/b' } }],
  ],
  [
    'an image by id',
    [{ type: 'image', source: { type: 'file', file_id: 'f1' } }],
    [{ type: 'file', file: { file_id: 'f1' } }],
  ],
  [
    'a PDF',
    [{ type: 'document', source: pdf, title: 'a.pdf' }],
    [{ type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } }],
  ],
  [
    'a PDF at an address',
    [{ type: 'document', source: { type: 'url', url: 'https://a.example/b' } }],
    [{ type: 'file', file: { filename: 'document.pdf', file_data: 'https://a.example/b' } }],
  ],
  [
    'a document by id',
    [{ type: 'document', source: { type: 'file', file_id: 'f1' } }],
    [{ type: 'file', file: { file_id: 'f1' } }],
  ],
  [
    'an image and a document, each before a breakpoint',
    [
      { type: 'image', source: { type: 'url', url: 'https://a.example/b' }, cache_control: { type: 'ephemeral' } },
      {
        type: 'document',
        context: 'C',
        source: { type: 'content', content: [part('a'), part('b')] },
        cache_control: { type: 'ephemeral', ttl: '1h' },
      },
    ],
    [
      { type: 'image_url', image_url: { url: 'https://a.example/b' }, cache_control: { type: 'ephemeral' } },
      part('C'),
      part('a'),
      { ...part('b'), cache_control: { type: 'ephemeral', ttl: '1h' } },
    ],
  ],
  [
    'a text',
    [{ type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'b' }, title: 'T' }],
    [part('T'), part('b')],
  ],
  [
    'a document of blocks',
    [{ type: 'document', context: 'C', source: { type: 'content', content: [part('a'), part('b')] } }],
    [part('C'), part('a'), part('b')],
  ],
  [
    'a search result',
    [{ type: 'search_result', source: 'https://a', title: 'T', content: [part('found')] }],
    [part('T\nhttps://a'), part('found')],
  ],
  ['a tool that came', [{ type: 'tool_addition', tool: { name: 'f' } }], '[tool added: f]'],
  ['a tool that went', [{ type: 'tool_removal', name: 'f' }], '[tool removed: f]'],
  ['a block that came later', [{ type: 'container_upload', file_id: 'f' }, part('a')], 'a'],
]

const call = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} })
const chatCall = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })
const answer = (id: string, content?: unknown, more: Json = {}) => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
  ...more,
})
const calling = { role: 'assistant', content: [call('a'), call('b')] }
const called = { role: 'assistant', content: null, tool_calls: [chatCall('a'), chatCall('b')] }
const user = (content: unknown) => ({ role: 'user', content })
const tools2 = (a: unknown, b: string) => [
  { role: 'tool', tool_call_id: 'a', content: a },
  { role: 'tool', tool_call_id: 'b', content: b },
]

export const histories: (readonly [says: string, messages: Json[], canonical: Json[]])[] = [
  [
    'results of every form',
    [calling, user([answer('a'), answer('b', [{ type: 'tool_reference', tool_name: 'g' }])])],
    [called, ...tools2('', '[tool found: g]')],
  ],
  [
    'failures are marked',
    [calling, user([answer('a', 'x', { is_error: true }), answer('b', '', { is_error: true })])],
    [called, ...tools2('x', '').map(result => ({ ...result, is_error: true }))],
  ],
  [
    'a result that is only an image',
    [calling, user([answer('a', [{ type: 'image', source: png }]), answer('b', 'x')])],
    [called, ...tools2([{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }], 'x')],
  ],
  [
    'R3 a system message waits for all results of the turn',
    [calling, { role: 'system', content: 's' }, user([answer('a', '1')]), user([answer('b', '2'), part('go')])],
    [called, ...tools2('1', '2'), { role: 'system', content: 's' }, user('go')],
  ],
  [
    'what the user adds waits for all results of the turn, too',
    [calling, user([answer('a', '1'), part('go')]), user([answer('b', '2')]), user('on')],
    [called, ...tools2('1', '2'), user('go'), user('on')],
  ],
  [
    'a system message at the end of results',
    [calling, user([answer('a', '1'), answer('b', '2')]), { role: 'developer', content: 's' }],
    [called, ...tools2('1', '2'), { role: 'developer', content: 's' }],
  ],
  [
    'messages of role tool',
    [
      calling,
      { role: 'tool', tool_call_id: 'a', content: '1' },
      { role: 'function', tool_call_id: 'b', content: [part('2')] },
    ],
    [called, ...tools2('1', '2')],
  ],
  [
    'a system message that is cleared by the next user message, before and after it came',
    [
      { role: 'system', content: 'one', clear_at: 'next_user_message' },
      { role: 'system', content: 'two', clear_at: 'never' },
      user('a'),
      { role: 'assistant', content: 'b' },
      { role: 'system', content: 'three', clear_at: 'next_user_message' },
    ],
    [
      { role: 'system', content: 'two' },
      user('a'),
      { role: 'assistant', content: 'b' },
      { role: 'system', content: 'three' },
    ],
  ],
  [
    'a system message that only sets an effort',
    [user('a'), { role: 'system', output_config: { effort: 'low' } }],
    [user('a')],
  ],
  [
    'a summary in the place of what it sums up',
    [{ role: 'assistant', content: [{ type: 'compaction', content: 'Ada asked.', signature: 's' }] }, user('b')],
    [{ role: 'assistant', content: 'Summary of the conversation so far:\nAda asked.' }, user('b')],
  ],
  ['a tool message without an id', [{ role: 'tool', content: 'x' }], [user('x')]],
  ['a text', [user('a'), { role: 'assistant', content: 'b' }], [user('a'), { role: 'assistant', content: 'b' }]],
  [
    'a turn of which nothing is left',
    [
      user('a'),
      { role: 'assistant', content: [{ type: 'server_tool_use', id: 's', name: 'x', input: {} }] },
      user('b'),
    ],
    [user('a'), user('b')],
  ],
  [
    'what other wires put into blocks comes back to them',
    [
      {
        role: 'assistant',
        content: [
          { type: 'x_call', provider: 'acme', y: 1 },
          { ...call('a'), extra_content: { vendor: { thought_signature: 'acme:s' } } },
        ],
      },
    ],
    [
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ ...chatCall('a'), extra_content: { vendor: { thought_signature: 'acme:s' } } }],
        provider_native_blocks: [{ type: 'x_call', provider: 'acme', y: 1 }],
      },
    ],
  ],
]
