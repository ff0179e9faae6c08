/** Refused chat bodies, each beside its nearest neighbour that passes (docs/contract.md#chat-requests). */
import type { Json } from '../../src/json/json.ts'

export type { Json } from '../../src/json/json.ts'

/** What is wrong, the field that is named, and what would have been right. */
type Row = readonly [wrong: Json, param: string | null, right: Json, code?: string]

export const valid = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }

const said = (message: Json): Json => ({ messages: [{ role: 'user', content: 'Hi', ...message }] })
const part = (type: string, fields: Json = {}): Json => said({ content: [{ type, ...fields }] })
const image = (fields: Json): Json => part('image_url', { image_url: { url: 'https://acme.example/a.png', ...fields } })
const audio = (fields: Json): Json => part('input_audio', { input_audio: { data: 'AA==', format: 'wav', ...fields } })
const cached = (fields: Json): Json => part('text', { text: 'a', cache_control: { type: 'ephemeral', ...fields } })
const call = (fields: Json, of: Json = {}): Json =>
  said({ tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}', ...of }, ...fields }] })
const tool = (fields: Json): Json => ({ tools: [{ type: 'function', function: { name: 'f', ...fields } }] })
const search = (fields: Json): Json => ({ tools: [{ type: 'web_search', ...fields }] })
const schema = (fields: Json): Json => ({
  response_format: { type: 'json_schema', json_schema: { name: 'a', schema: {}, ...fields } },
})
const content = 'messages[0].content[0]'
const without = (body: Json, key: string): Json => ({ ...body, [key]: undefined })

const messages: Row[] = [
  [without({}, 'model'), 'model', {}],
  [{ model: 7 }, 'model', { model: '7' }],
  [{ model: '' }, 'model', { model: 'x' }],
  [{ model: 'x'.repeat(257) }, 'model', { model: 'x'.repeat(256) }],
  [without({}, 'messages'), 'messages', {}],
  [{ messages: [] }, 'messages', {}],
  [{ messages: {} }, 'messages', {}],
  [{ messages: null }, 'messages', {}],
  [{ messages: ['Hi'] }, 'messages[0]', {}],
  [said({ role: 'robot' }), 'messages[0].role', said({ role: 'developer' })],
  [said({ role: undefined }), 'messages[0].role', said({ role: 'function' })],
  [said({ content: 7 }), 'messages[0].content', said({ content: null })],
  [said({ content: ['a'] }), content, said({ content: [] })],
  [said({ name: 7 }), 'messages[0].name', said({ name: '7' })],
  [said({ role: 'tool' }), 'messages[0].tool_call_id', said({ role: 'tool', tool_call_id: 'c' })],
  [said({ tool_call_id: 7 }), 'messages[0].tool_call_id', said({ tool_call_id: '7' })],
  [call({ id: undefined }), 'messages[0].tool_calls[0].id', call({})],
  [call({ type: 'x' }), 'messages[0].tool_calls[0].type', call({})],
  [
    said({ tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'f' } }] }),
    'messages[0].tool_calls[0].custom.input',
    said({ tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'f', input: '' } }] }),
  ],
  [call({ function: undefined }), 'messages[0].tool_calls[0].function', call({})],
  [call({}, { name: '' }), 'messages[0].tool_calls[0].function.name', call({}, { name: 'g' })],
  [call({}, { arguments: {} }), 'messages[0].tool_calls[0].function.arguments', call({}, { arguments: '' })],
  [said({ reasoning: 7 }), 'messages[0].reasoning', said({ reasoning: null })],
  [said({ reasoning_content: [] }), 'messages[0].reasoning_content', said({ reasoning_content: '' })],
  [said({ phase: 'end' }), 'messages[0].phase', said({ phase: 'final_answer' })],
  [said({ phase: '' }), 'messages[0].phase', said({ phase: 'commentaryfinal_answer' })],
  [said({ phase: 'commentary'.repeat(65) }), 'messages[0].phase', said({ phase: 'commentary'.repeat(64) })],
  [
    said({ content_before_tool_calls: 1 }),
    'messages[0].content_before_tool_calls',
    said({ content_before_tool_calls: true }),
  ],
  [said({ message_items: [{}] }), 'messages[0].message_items[0].text', said({ message_items: [{ text: '' }] })],
  [
    said({ message_items: [{ text: '', preceding_tool_calls: -1 }] }),
    'messages[0].message_items[0].preceding_tool_calls',
    said({ message_items: [{ text: '', preceding_tool_calls: 0 }] }),
  ],
  [
    said({ message_items: [{ text: '', phase: '' }] }),
    'messages[0].message_items[0].phase',
    said({ message_items: [] }),
  ],
  [
    said({ provider_native_blocks: [{}] }),
    'messages[0].provider_native_blocks[0].type',
    said({ provider_native_blocks: [{ type: 'x', y: 1 }] }),
  ],
  [
    said({ tool_result_cache_control: {} }),
    'messages[0].tool_result_cache_control.type',
    said({ tool_result_cache_control: { type: 'ephemeral', ttl: '1h' } }),
  ],
]

const parts: Row[] = [
  [part('video'), `${content}.type`, part('refusal', { refusal: 'no' })],
  [said({ content: [{ text: 'a' }] }), `${content}.type`, part('text', { text: 'a' })],
  [part('text'), `${content}.text`, part('text', { text: '' })],
  [cached({ type: 'x' }), `${content}.cache_control.type`, cached({})],
  [cached({ ttl: '10m' }), `${content}.cache_control.ttl`, cached({ ttl: '5m' })],
  [
    part('text', { text: '', prompt_cache_breakpoint: { mode: 'x' } }),
    `${content}.prompt_cache_breakpoint.mode`,
    part('text', { text: '', prompt_cache_breakpoint: { mode: 'explicit' } }),
  ],
  [
    part('text', { text: '', extra_content: { vendor: { thought_signature: 1 } } }),
    `${content}.extra_content.vendor.thought_signature`,
    part('text', { text: '', extra_content: { vendor: { thought_signature: 's' } } }),
  ],
  [part('image_url'), `${content}.image_url`, image({})],
  [part('image_url', { image_url: 'https://acme.example/a.png' }), `${content}.image_url`, image({})],
  [image({ url: undefined }), `${content}.image_url.url`, image({})],
  [image({ url: '' }), `${content}.image_url.url`, image({})],
  [image({ detail: 'ultra' }), `${content}.image_url.detail`, image({ detail: 'auto' })],
  [audio({ format: 'wma' }), `${content}.input_audio.format`, audio({ format: 'webm' })],
  [audio({ format: undefined }), `${content}.input_audio.format`, audio({ format: 'pcm' })],
  [audio({ data: undefined }), `${content}.input_audio.data`, audio({})],
  [part('file', { file: { file_data: 1 } }), `${content}.file.file_data`, part('file', { file: { file_id: 'f' } })],
  [part('file'), `${content}.file`, part('file', { file: {} })],
]

const numbers: Row[] = ['temperature', 'top_p', 'frequency_penalty', 'presence_penalty'].flatMap(name => [
  [{ [name]: '1' }, name, { [name]: 1 }],
  [{ [name]: Infinity }, name, { [name]: null }],
])
const tokens: Row[] = ['max_tokens', 'max_completion_tokens'].flatMap(name =>
  [-1, 0, Infinity, 1.5, '10', 2 ** 53].map((wrong): Row => [{ [name]: wrong }, name, { [name]: 1 }]),
)
/** Each of these words is refused in its place; the last of the others is taken. */
const words: Row[] = [
  ['prompt_cache_retention', 'in_memory', '24h'],
  ['effort', 'low', 'medium', 'high'],
  ['verbosity', 'low', 'medium', 'high'],
  ['service_tier', 'auto', 'default', 'flex', 'priority'],
  ['routing', 'auto', 'price', 'throughput', 'latency'],
  ['reasoning_effort', 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
].flatMap(([name, ...legal]) => legal.map((word): Row => [{ [name!]: `${word}x` }, name!, { [name!]: word }]))
const flags: Row[] = ['stream', 'free_models_only', 'onboarding', 'no_reasoning', 'web_search'].map(name => [
  { [name]: 'true' },
  name,
  { [name]: true },
])

const options: Row[] = [
  [{ n: 0 }, 'n', { n: 1 }],
  [{ n: 129 }, 'n', { n: 128 }],
  [{ n: 1.5 }, 'n', { n: null }],
  [{ user: 7 }, 'user', { user: 'u' }],
  [{ prompt_cache_key: 7 }, 'prompt_cache_key', { prompt_cache_key: 'k' }],
  [
    { prompt_cache_options: { mode: 'x' } },
    'prompt_cache_options.mode',
    { prompt_cache_options: { mode: 'explicit' } },
  ],
  [{ prompt_cache_options: { ttl: '31m' } }, 'prompt_cache_options.ttl', { prompt_cache_options: { ttl: '30m' } }],
  [{ response_format: { type: 'xml' } }, 'response_format.type', { response_format: { type: 'text' } }],
  [{ response_format: {} }, 'response_format.type', { response_format: { type: 'json_object' } }],
  [{ response_format: { type: 'json_schema' } }, 'response_format.json_schema', schema({})],
  [schema({ name: '' }), 'response_format.json_schema.name', schema({ name: 'b' })],
  [schema({ schema: undefined }), 'response_format.json_schema.schema', schema({})],
  [schema({ strict: 'yes' }), 'response_format.json_schema.strict', schema({ strict: null })],
  [{ reasoning: { effort: 'ultra' } }, 'reasoning.effort', { reasoning: { effort: 'none' } }],
  [{ reasoning: { max_tokens: 0 } }, 'reasoning.max_tokens', { reasoning: { max_tokens: 1 } }],
  [{ reasoning: { context: 'x' } }, 'reasoning.context', { reasoning: { context: 'all_turns' } }],
  [{ reasoning: { mode: 'x' } }, 'reasoning.mode', { reasoning: { mode: 'pro' } }],
  [{ sensitive_word_check: {} }, 'sensitive_word_check.status', { sensitive_word_check: { status: 'ENABLE' } }],
  [
    { sensitive_word_check: { status: 'x' } },
    'sensitive_word_check.status',
    { sensitive_word_check: { status: 'DISABLE' } },
  ],
  [
    { image_config: { image_quality: 'x' } },
    'image_config.image_quality',
    { image_config: { image_quality: 'xhigh' } },
  ],
  [{ image_config: { moderation: 'x' } }, 'image_config.moderation', { image_config: { moderation: 'low' } }],
  [{ image_config: { aspect_ratio: 1 } }, 'image_config.aspect_ratio', { image_config: { aspect_ratio: '1:1' } }],
  [{ image_config: { seed: 'x' } }, 'image_config.seed', { image_config: { seed: 1, n: 2 } }],
  [{ image_config: { n: 0 } }, 'image_config.n', { image_config: { n: 1 } }],
  [{ image_config: { n: 1e18 } }, 'image_config.n', { image_config: { n: 128 } }],
  [{ plugins: [{ id: 'x' }] }, 'plugins[0].id', { plugins: [{ id: 'response-healing' }] }],
]

const allowed = (...tools: Json[]): Json => ({
  tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools } },
})
const tools: Row[] = [
  [{ tools: {} }, 'tools', { tools: [] }],
  [{ tools: [{ type: 'x' }] }, 'tools[0].type', search({})],
  [{ tools: [{ type: 'function' }] }, 'tools[0].function', tool({})],
  [
    { tools: [{ type: 'custom', custom: {} }] },
    'tools[0].custom.name',
    { tools: [{ type: 'custom', custom: { name: 'f', format: { type: 'grammar', grammar: {} } } }] },
  ],
  [tool({ name: '' }), 'tools[0].function.name', tool({ name: 'g' })],
  [tool({ parameters: 'x' }), 'tools[0].function.parameters', tool({ parameters: {} })],
  [
    { tools: [{ type: 'tool_search', tool_search_type: 'x' }] },
    'tools[0].tool_search_type',
    { tools: [{ type: 'tool_search', tool_search_type: 'tool_search_tool_bm25' }] },
  ],
  [search({ user_location: { city: 1 } }), 'tools[0].user_location.city', search({ user_location: { city: 'Rome' } })],
  [search({ search_context_size: 'x' }), 'tools[0].search_context_size', search({ search_context_size: 'high' })],
  [search({ max_uses: '1' }), 'tools[0].max_uses', search({ max_uses: 1 })],
  [search({ allowed_domains: [1] }), 'tools[0].allowed_domains[0]', search({ allowed_domains: ['a.example'] })],
  [search({ blocked_domains: 'x' }), 'tools[0].blocked_domains', search({ blocked_domains: [] })],
  [{ ...tool({}), tool_choice: 'maybe' }, 'tool_choice', { ...tool({}), tool_choice: 'required' }],
  [{ ...tool({}), tool_choice: { type: 'x' } }, 'tool_choice.type', { ...tool({}), tool_choice: 'none' }],
  [
    { ...tool({}), tool_choice: { type: 'function', function: {} } },
    'tool_choice.function.name',
    { ...tool({}), tool_choice: { type: 'function', function: { name: 'f' } } },
  ],
  [
    { ...tool({}), ...allowed({ type: 'function', function: { name: 'g' } }) },
    'tool_choice.allowed_tools.tools[0]',
    { ...tool({}), ...allowed({ type: 'function', function: { name: 'f' } }) },
  ],
  [
    { ...tool({}), ...allowed({ type: 'function', name: 'f' }, { type: 'web_search' }) },
    'tool_choice.allowed_tools.tools[1]',
    { ...search({}), ...allowed({ type: 'web_search' }) },
  ],
  [{ ...tool({}), ...allowed({ type: 'custom', custom: { name: 'f' } }) }, 'tool_choice.allowed_tools.tools[0]', {}],
  [allowed({ type: 'function', function: { name: 'f' } }), 'tool_choice.allowed_tools.tools[0]', {}],
  [{ ...tool({}), ...allowed() }, 'tool_choice.allowed_tools.tools', {}],
  [
    { ...tool({}), tool_choice: { type: 'allowed_tools', allowed_tools: { tools: [{ type: 'function' }] } } },
    'tool_choice.allowed_tools.mode',
    {},
  ],
  [
    { ...tool({}), tool_choice: { type: 'web_search' } },
    'tool_choice',
    { ...search({}), tool_choice: { type: 'web_search' } },
  ],
  [
    { tools: [{ ...(tool({}).tools as Json[])[0], defer_loading: true }] },
    'tools[0].defer_loading',
    {
      tools: [
        { ...(tool({}).tools as Json[])[0], defer_loading: true },
        { type: 'tool_search', tool_search_type: 'tool_search_tool' },
      ],
    },
  ],
]

const COMBINATION = 'unsupported_parameter_combination'
const relations: Row[] = [
  [
    { reasoning: { effort: 'low' }, reasoning_effort: 'low' },
    'reasoning_effort',
    { reasoning_effort: 'low' },
    COMBINATION,
  ],
  [{ n: 2, stream: true, ...tool({}) }, 'n', { n: 2, stream: true, ...search({}) }, COMBINATION],
  [{ n: 2, stream: true, ...tool({}) }, 'n', { n: 2, stream: false, ...tool({}) }, COMBINATION],
  [{ n: 2, stream: true, ...tool({}) }, 'n', { n: 1, stream: true, ...tool({}) }, COMBINATION],
]

export const rows: readonly Row[] = [
  ...[messages, parts, numbers, tokens, words, flags, options, tools, relations].flat(),
]

/** Every one of these is the machine that reads it: 15 spellings of loopback, and what else is not public. */
export const localUrls: readonly string[] = [
  'http://127.0.0.1/',
  'http://127.1/',
  'http://2130706433/',
  'http://0x7f.1/',
  'http://0x7f000001/',
  'http://017700000001/',
  'http://127.000.000.001/',
  'http://１２７.０.０.１/',
  'http://127。0。0。1/',
  'http://0.0.0.0/',
  'http://[::1]/',
  'http://[::]/',
  'http://[::ffff:127.0.0.1]/',
  'http://localhost/',
  'http://LOCALHOST./',
  'http://a.localhost/',
  'http://[::ffff:7f00:1]:8080/',
  'http://[::127.0.0.1]/',
  'http://[64:ff9b::7f00:1]/',
  'http://[2002:7f00:1::]/',
  'http://[fe80::1%25eth0]/',
  'http://[fe80::1]/',
  'http://[fd00:ec2::254]/',
  'http://10.0.0.1/',
  'http://100.64.0.1/',
  'http://169.254.169.254/latest/meta-data',
  'http://172.16.0.1/',
  'http://192.168.0.1/',
  'http://224.0.0.1/',
  'http://255.255.255.255/',
  'http://metadata.google.internal/',
  'http://127.0.0.1.nip.io/',
  'http://printer.local/',
  'http://router.home.arpa/',
  'http://intranet/',
  'https://user@acme.example/a.png',
  'https://user:secret@acme.example/a.png',
  'ftp://acme.example/a.png',
  'file:///etc/passwd',
  'gopher://acme.example/',
  ' data:text/html,x',
  'javascript:alert(1)',
  '//acme.example/a.png',
  'a.png',
  `https://acme.example/${'a'.repeat(8192)}`,
]
export const publicUrls: readonly string[] = [
  'https://acme.example/a.png',
  'http://acme.example:8080/a.png?b=c#d',
  'HTTPS://ACME.EXAMPLE./A.PNG',
  'https://8.8.8.8/a.png',
  'https://[2606:4700::1111]/a.png',
  'https://bücher.example/ü.png',
  'data:image/png;base64,iVBO',
  'DATA:IMAGE/JPEG;charset=utf-8;base64,/9j/',
  'data:application/octet-stream;base64,iVBO',
  'data:image/png;base64,iVB',
  `data:image/png;base64,iVBO${'A'.repeat(100)}`,
  'data:image/png;base64,iVBO\nRw0K\n',
  'data:;base64,iVBO',
  'data:image/png;name=my%20cat.png;charset="utf-8";base64,iVBO',
]
export const wrongData: readonly string[] = [
  'data:image/svg+xml;base64,PHN2Zz4=',
  'data:IMAGE/SVG+XML,<svg onload=alert(1)>',
  'data:text/html;base64,PGI+',
  'data:application/pdf;base64,JVBE',
  'data:image/png',
  'data:image/png,%89PNG',
  'data:image/png;base64,',
  'data:image/png;base64,=',
  'data:image/png;base64,%69VBO',
  'data:image/png;base64,iVBOR<script>',
  'data:image/png;base64,!not base64!',
  'data:image/ svg+xml,x',
]
