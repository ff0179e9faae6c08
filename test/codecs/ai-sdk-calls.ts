/** Calls of the AI SDK's protocol, and what the chat requests hold that become of them. */
import type { Json } from '../../src/json/json.ts'

export const text = (text: string) => ({ type: 'text', text })
export const user = (...content: object[]) => ({ role: 'user', content })
export const hi = [user(text('Hi'))]
/** Members of a call, and what they become beside the message. */
export const options: [given: Json, becomes: Json][] = [
  [
    { maxOutputTokens: 9, temperature: 0, topP: 0.5 },
    { max_tokens: 9, temperature: 0, top_p: 0.5 },
  ],
  [
    { presencePenalty: 1, frequencyPenalty: -1 },
    { presence_penalty: 1, frequency_penalty: -1 },
  ],
  [{ maxOutputTokens: null, temperature: null, tools: null, toolChoice: null, providerOptions: null }, {}],
  [{ stopSequences: ['x'], seed: 7, topK: 40, headers: { authorization: 'x' }, unknown: 1 }, {}],
  [{ responseFormat: { type: 'text' } }, {}],
  [{ responseFormat: { type: 'json' } }, { response_format: { type: 'json_object' } }],
  [
    { responseFormat: { type: 'json', schema: { type: 'object' }, description: 'a' } },
    {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'response', schema: { type: 'object' }, description: 'a' },
      },
    },
  ],
  [{ reasoning: 'high' }, { reasoning_effort: 'high' }],
  [{ reasoning: 'provider-default' }, {}],
  [
    { reasoning: 'high', providerOptions: { gateway: { reasoning: { max_tokens: 99 } } } },
    { reasoning: { max_tokens: 99 } },
  ],
  [{ reasoning: 'high', providerOptions: { gateway: { reasoning_effort: 'low' } } }, { reasoning_effort: 'low' }],
  [
    { maxOutputTokens: 9, providerOptions: { gateway: { max_tokens: 8, model: 'x', messages: [], stream: true } } },
    { max_tokens: 8 },
  ],
  [
    { providerOptions: { gateway: { order: ['a'], only: ['b'], byok: { a: [{}] }, tags: ['c'], user: 'u' } } },
    { user: 'u' },
  ],
  [
    { providerOptions: { gateway: {}, openai: { store: true }, anthropic: 'x' } },
    { provider_options: { openai: { store: true } } },
  ],
  [{ tools: [], toolChoice: { type: 'auto' } }, {}],
]

const call = (name: string) => ({ type: 'function', name, inputSchema: { type: 'object' } })
const search = { type: 'provider', id: 'openai.web_search', name: 'search', args: {} }
const foreign = { type: 'provider-defined', id: 'openai.file_search', name: 'files', args: {} }
export const choices: [tools: object[], choice: Json, sent: (string | undefined)[], becomes: unknown][] = [
  [[call('a')], { type: 'auto' }, ['a'], 'auto'],
  [[call('a')], { type: 'none' }, ['a'], 'none'],
  [[call('a')], { type: 'tool', toolName: 'a' }, ['a'], { type: 'function', function: { name: 'a' } }],
  [[call('a'), search], { type: 'required' }, ['a', 'web_search'], 'required'],
  [[search], { type: 'required' }, ['web_search'], { type: 'web_search' }],
  [[call('a'), search], { type: 'tool', toolName: 'search' }, ['a', 'web_search'], { type: 'web_search' }],
  [[call('a'), search], { type: 'none' }, ['a'], 'none'],
  [[foreign], { type: 'tool', toolName: 'files' }, [], undefined],
  [[foreign, call('a')], { type: 'tool', toolName: 'files' }, ['a'], undefined],
]

const place = { type: 'approximate', country: 'NO', city: 'Oslo' }
export const searches: [id: string, args: Json, becomes: Json][] = [
  [
    'openai.web_search',
    { searchContextSize: 'low', userLocation: place },
    { search_context_size: 'low', user_location: { city: 'Oslo', country: 'NO' } },
  ],
  ['openai.web_search_preview', { filters: { allowedDomains: ['a'] } }, { allowed_domains: ['a'] }],
  ['anthropic.web_search_20250305', { maxUses: 3, blockedDomains: ['b'] }, { max_uses: 3, blocked_domains: ['b'] }],
  ['google.google_search', { mode: 'MODE_DYNAMIC', dynamicThreshold: 1 }, {}],
  ['xai.web_search', { excludedDomains: ['b'] }, { blocked_domains: ['b'] }],
  ['groq.browser_search', {}, {}],
  [
    'gateway.perplexity_search',
    { country: 'NO', searchDomainFilter: ['a'] },
    { user_location: { country: 'NO' }, allowed_domains: ['a'] },
  ],
  [
    'gateway.exa_search',
    { includeDomains: ['a'], excludeDomains: ['b'] },
    { allowed_domains: ['a'], blocked_domains: ['b'] },
  ],
  ['gateway.parallel_search', { sourcePolicy: { includeDomains: ['a'] } }, { allowed_domains: ['a'] }],
]

const base64 = 'JVBERi0xLjQ='
const pixel = 'iVBORw0KGgo='
const image = (url: string, more = {}) => ({ type: 'image_url', image_url: { url, ...more } })
const file = (file_data: string, filename?: string) => ({
  type: 'file',
  file: filename === undefined ? { file_data } : { filename, file_data },
})
const audio = (data: string, format: string) => ({ type: 'input_audio', input_audio: { data, format } })
export const files: [says: string, part: Json, becomes: object][] = [
  [
    'data URL',
    { mediaType: 'image/png', data: `data:image/png;base64,${pixel}` },
    image(`data:image/png;base64,${pixel}`),
  ],
  ['bare base64 of any image', { mediaType: 'image/*', data: pixel }, image(`data:image/png;base64,${pixel}`)],
  ['base64 of 4', { mediaType: 'image', data: { type: 'data', data: pixel } }, image(`data:image/png;base64,${pixel}`)],
  ['an address', { mediaType: 'image/*', data: 'https://a.example/b.png' }, image('https://a.example/b.png')],
  [
    'an address of 4',
    { mediaType: 'image', data: { type: 'url', url: 'https://a.example/b' } },
    image('https://a.example/b'),
  ],
  [
    'a detail',
    { mediaType: 'image/png', data: pixel, providerOptions: { openai: { imageDetail: 'low' } } },
    image(`data:image/png;base64,${pixel}`, { detail: 'low' }),
  ],
  [
    'a document',
    { mediaType: 'application/pdf', data: base64, filename: 'a.pdf' },
    file(`data:application/pdf;base64,${base64}`, 'a.pdf'),
  ],
  [
    'a document at an address',
    { mediaType: 'application/pdf', data: 'https://a.example/b.pdf' },
    file('https://a.example/b.pdf'),
  ],
  [
    'a marked document',
    {
      mediaType: 'application/pdf',
      data: base64,
      providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } },
    },
    { ...file(`data:application/pdf;base64,${base64}`), cache_control: { type: 'ephemeral' } },
  ],
  ['text of 4', { mediaType: 'text/plain', data: { type: 'text', text: 'a' } }, text('a')],
  ['text in a URL', { mediaType: 'text/plain', data: 'data:text/plain,a%20b' }, file('data:text/plain;base64,YSBi')],
  [
    'an id',
    { mediaType: 'application/pdf', data: { type: 'reference', reference: { openai: 'file-1' } } },
    { type: 'file', file: { file_id: 'file-1' } },
  ],
  ['audio', { mediaType: 'audio/mpeg', data: 'SUQz' }, audio('SUQz', 'mp3')],
  [
    'any audio',
    { mediaType: 'audio', data: { type: 'data', data: 'UklGRiQAAABXQVZFZm10IA==' } },
    audio('UklGRiQAAABXQVZFZm10IA==', 'wav'),
  ],
  [
    'audio at an address',
    { mediaType: 'audio', data: { type: 'url', url: 'https://a.example/b.wav?c' } },
    audio('https://a.example/b.wav?c', 'wav'),
  ],
]

export const results: [output: Json, content: unknown, error?: true][] = [
  [{ type: 'text', value: 'a' }, 'a'],
  [{ type: 'json', value: { a: [1] } }, '{"a":[1]}'],
  [{ type: 'json', value: null }, 'null'],
  [{ type: 'error-text', value: 'a' }, 'a', true],
  [{ type: 'error-json', value: { a: 1 } }, '{"a":1}', true],
  [{ type: 'execution-denied', reason: 'no' }, 'no'],
  [{ type: 'execution-denied' }, 'Tool execution was denied.'],
  [{ type: 'content', value: [text('a')] }, 'a'],
  [
    { type: 'content', value: [text('a'), { type: 'media', data: pixel, mediaType: 'image/png' }] },
    [text('a'), image(`data:image/png;base64,${pixel}`)],
  ],
  [
    { type: 'content', value: [text('a'), { type: 'image-data', data: pixel, mediaType: 'image/png' }] },
    [text('a'), image(`data:image/png;base64,${pixel}`)],
  ],
  [
    { type: 'content', value: [text('a'), { type: 'image-url', url: 'https://a.example/b' }] },
    [text('a'), image('https://a.example/b')],
  ],
  [
    { type: 'content', value: [text('a'), { type: 'file-url', url: 'https://a.example/b.png' }] },
    [text('a'), image('https://a.example/b.png')],
  ],
  [
    {
      type: 'content',
      value: [text('a'), { type: 'file-data', data: base64, mediaType: 'application/pdf', filename: 'b' }],
    },
    [text('a'), file(`data:application/pdf;base64,${base64}`, 'b')],
  ],
  [
    {
      type: 'content',
      value: [text('a'), { type: 'file', data: { type: 'data', data: base64 }, mediaType: 'application/pdf' }],
    },
    [text('a'), file(`data:application/pdf;base64,${base64}`)],
  ],
  [
    { type: 'content', value: [text('a'), { type: 'file-id', fileId: { openai: 'f' } }] },
    [text('a'), { type: 'file', file: { file_id: 'f' } }],
  ],
  [{ type: 'content', value: [{ type: 'custom' }] }, ''],
]

export const wrong: [says: string, body: unknown, param: string | null][] = [
  ['no object', [], null],
  ['no prompt', {}, 'prompt'],
  ['no message', { prompt: ['a'] }, 'prompt[0]'],
  ['an unknown role', { prompt: [...hi, { role: 'x', content: [] }] }, 'prompt[1].role'],
  ['a system message in parts', { prompt: [{ role: 'system', content: [text('a')] }] }, 'prompt[0].content'],
  ['a text that is none', { prompt: [user({ type: 'text', text: 1 })] }, 'prompt[0].content[0].text'],
  ['a part without a type', { prompt: [user({})] }, 'prompt[0].content[0]'],
  [
    'a call without an id',
    { prompt: [...hi, { role: 'assistant', content: [{ type: 'tool-call', toolName: 'f' }] }] },
    'prompt[1].content[0].toolCallId',
  ],
  [
    'an output of no kind',
    { prompt: [...hi, { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', output: { type: 'x' } }] }] },
    'prompt[1].content[0].output.type',
  ],
  ['nothing to say', { prompt: [] }, 'prompt'],
  ['too hot', { prompt: hi, temperature: 'x' }, 'temperature'],
  ['no length', { prompt: hi, maxOutputTokens: 0 }, 'maxOutputTokens'],
  ['no such effort', { prompt: hi, reasoning: 'x' }, 'reasoning'],
  [
    'a bad option of the gateway',
    { prompt: hi, providerOptions: { gateway: { n: 'x' } } },
    'providerOptions.gateway.n',
  ],
  [
    'a bad tool behind one that is left out',
    { prompt: hi, tools: [foreign, { type: 'function', name: '' }] },
    'tools[1].function.name',
  ],
  [
    'a private address',
    {
      prompt: [
        { role: 'assistant', content: [] },
        user({ type: 'file', mediaType: 'application/pdf', data: 'http://10.0.0.1/a' }),
      ],
    },
    'prompt[1].content[0].data',
  ],
]
