/** Events of an answer, and the content blocks that they become, streamed and whole. */
import type { Event } from '../../src/core/event.ts'
import { text } from '../core/kit.ts'
import type { Json } from './bodies.ts'

const claude = 'anthropic-claude-v1'
const think = (said: string, more: Json = {}): Event =>
  ({ type: 'reasoning', choice: 0, text: said, format: claude, block: 0, ...more }) as Event
const tool = (index: number, more: Json): Event => ({ type: 'tool', choice: 0, index, ...more }) as Event
const native = (block: Json, provider = 'acme'): Event => ({ type: 'native', choice: 0, provider, block })
const source = (url: string, title?: string): Event => ({ type: 'source', choice: 0, url, ...(title && { title }) })
const use = (id: string, input: Json, name = 'f') => ({ type: 'tool_use', id, name, input })
/** A signature of a thinking block that carries what follows. */
export const seal = (text: string): string => Buffer.from(`mgw|${text}`).toString('base64')
const said = (words: string) => ({ type: 'text', text: words })

const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } }
const found = {
  type: 'web_search_tool_result',
  tool_use_id: 'srvtoolu_1',
  content: [{ type: 'web_search_result', url: 'https://a', title: 'A', encrypted_content: 'e==', page_age: null }],
}
/** What stands for sources that no block shows; its id is that of the answer, here `ID`. */
const searched = (...results: [url: string, title: string][]) => [
  { type: 'server_tool_use', id: 'srvtoolu_ID', name: 'web_search', input: {} },
  {
    type: 'web_search_tool_result',
    tool_use_id: 'srvtoolu_ID',
    content: results.map(([url, title]) => ({
      type: 'web_search_result',
      url,
      title,
      encrypted_content: '',
      page_age: null,
    })),
  },
]

const sealed = (more: Json): Event =>
  ({ type: 'reasoning', choice: 0, text: '', format: 'openai-responses-v1', block: 0, ...more }) as Event

/** The same for a client that did not ask for thinking: it gets none, and seals only beside a call. */
export const unasked: (readonly [says: string, events: Event[], types: string[]])[] = [
  ['plain reasoning', [{ type: 'reasoning', choice: 0, text: 'Hm' }, text('a')], ['text']],
  ['text before and after it', [text('a'), { type: 'reasoning', choice: 0, text: 'Hm' }, text('b')], ['text']],
  ['a seal', [sealed({ text: 'Hm' }), sealed({ data: 'acme:e' }), text('a')], ['text']],
  [
    'a seal that leads to calls',
    [
      sealed({ text: 'Hm' }),
      sealed({ data: 'acme:e' }),
      text('a'),
      tool(0, { id: 'c', name: 'f' }),
      tool(1, { name: 'g' }),
    ],
    ['text', 'sealed acme:e', 'tool_use', 'tool_use'],
  ],
  [
    'a signature without text that leads to a call',
    [think('', { signature: 'acme:s' }), tool(0, { id: 'c', name: 'f' })],
    ['sealed acme:s', 'tool_use'],
  ],
  [
    'a signature of text that is left out',
    [think('Hm'), think('', { signature: 'acme:s' }), tool(0, { id: 'c', name: 'f' })],
    ['tool_use'],
  ],
  [
    'a seal behind the call',
    [tool(0, { id: 'c', name: 'f', args: '{}' }), sealed({ data: 'acme:e', block: 1 })],
    ['tool_use', 'sealed acme:e'],
  ],
]

const passage = (...citations: Json[]): Event => ({ type: 'passage', wire: 'anthropic.messages', citations })

export const answers: (readonly [says: string, events: Event[], content: Json[]])[] = [
  ['nothing', [], []],
  ['text', [text('a'), text(''), text('b')], [said('ab')]],
  [
    'text of two phases',
    [text('a'), { type: 'phase', choice: 0, phase: 'final_answer' }, text('b')],
    [said('a'), said('b')],
  ],
  [
    'passages of this wire, with what they cite',
    [text('It is '), passage(), text('r'), text('ain'), passage({ x: 1 }, { x: 2 }), passage({ x: 3 }), text('.')],
    [said('It is '), { ...said('rain'), citations: [{ x: 1 }, { x: 2 }] }, said('.')],
  ],
  [
    'passages of another wire',
    [text('a'), { type: 'passage', wire: 'other', citations: [{ x: 1 }] }, text('b')],
    [said('ab')],
  ],
  ['only the first choice', [text('a'), text('x', 1), tool(0, { choice: 1, id: 'x', name: 'x' })], [said('a')]],
  ['an image, which no block holds', [{ type: 'image', choice: 0, url: 'data:x' }, text('a')], [said('a')]],
  [
    'signed thinking, text, and a call',
    [
      think('Hm'),
      think('m'),
      think('', { signature: 'acme:Eq+/==' }),
      text('I look.'),
      tool(0, { id: 'c', name: 'f' }),
      tool(0, { args: '{"k"' }),
      tool(0, { args: ':1}' }),
    ],
    [{ type: 'thinking', thinking: 'Hmm', signature: 'acme:Eq+/==' }, said('I look.'), use('c', { k: 1 })],
  ],
  [
    'thinking blocks apart, hidden and omitted ones too',
    [
      think('a', { signature: 'acme:1' }),
      think('', { block: 1, data: 'acme:d' }),
      think('', { block: 2, signature: 'acme:2' }),
      think('b', { block: 3 }),
      think('', { block: 3, signature: 'acme:3' }),
      think('again', { block: 3 }),
    ],
    [
      { type: 'thinking', thinking: 'a', signature: 'acme:1' },
      { type: 'redacted_thinking', data: 'acme:d' },
      { type: 'thinking', thinking: '', signature: 'acme:2' },
      { type: 'thinking', thinking: 'b', signature: 'acme:3' },
      { type: 'thinking', thinking: 'again', signature: '' },
    ],
  ],
  [
    'reasoning that nobody signed',
    [
      think('a', { format: undefined, block: undefined }),
      think('b', { format: undefined, block: undefined }),
      text('c'),
    ],
    [{ type: 'thinking', thinking: 'ab', signature: seal('text|||') }, said('c')],
  ],
  [
    'reasoning that nobody signed, and a seal behind it',
    [
      think('a', { format: undefined, block: undefined }),
      think('', { format: 'x-v1', block: 1, signature: 'acme:s' }),
      think('b', { format: undefined, block: undefined }),
      think('', { format: 'x-v1', block: 3, data: 'acme:d' }),
      think('', { format: 'x-v1', block: 4, data: 'acme:e' }),
    ],
    [
      { type: 'thinking', thinking: 'a', signature: seal('signature|x-v1|1|acme:s') },
      { type: 'thinking', thinking: 'b', signature: seal('data|x-v1|3|acme:d') },
      { type: 'thinking', thinking: '', signature: seal('data|x-v1|4|acme:e') },
    ],
  ],
  [
    'reasoning of another dialect, which its block carries',
    [
      think('a', { format: 'x-v1', block: 4 }),
      think('', { format: 'x-v1', block: 4, data: 'acme:d' }),
      think('b', { format: 'x|y', block: 5 }),
      think('', { format: 'x|y', block: 5, signature: 'acme:s' }),
      think('', { format: undefined, block: undefined, signature: 'acme:t' }),
    ],
    [
      { type: 'thinking', thinking: 'a', signature: seal('data|x-v1|4|acme:d') },
      { type: 'thinking', thinking: 'b', signature: seal('text|x%7Cy|5|acme:s') },
      { type: 'thinking', thinking: '', signature: seal('text|||acme:t') },
    ],
  ],
  [
    'reasoning of another dialect whose seal did not come, or came late',
    [
      think('a', { format: 'x-v1', block: 4 }),
      text('b'),
      think('', { format: 'x-v1', block: 4, data: 'acme:d' }),
      think('c', { format: 'x-v1', block: 5, signature: 'acme:é🙂' }),
    ],
    [
      { type: 'thinking', thinking: 'a', signature: seal('text|x-v1|4|') },
      said('b'),
      { type: 'thinking', thinking: '', signature: seal('data|x-v1|4|acme:d') },
      { type: 'thinking', thinking: 'c', signature: seal('text|x-v1|5|acme:é🙂') },
    ],
  ],
  [
    'a seal behind the last text, which would be the block that clients print',
    [text('a'), think('', { format: 'x-v1', block: 1, signature: 'acme:s' })],
    [said('a')],
  ],
  [
    'seals of names that are half a character',
    [
      think('a', { format: 'x\ud800', block: 1, signature: 'acme:s' }),
      tool(0, { id: 'c\ud800', name: 'f', args: '{}', signature: 'acme:t' }),
    ],
    [
      { type: 'thinking', thinking: 'a', signature: seal('text|x%EF%BF%BD|1|acme:s') },
      { type: 'thinking', thinking: '', signature: seal('call||c%EF%BF%BD|acme:t') },
      { ...use('c\ud800', {}), extra_content: { vendor: { thought_signature: 'acme:t' } } },
    ],
  ],
  [
    'C18 calls without arguments',
    [tool(0, { id: 'a', name: 'f' }), tool(1, { id: 'b', name: 'g', args: '' })],
    [use('a', {}), use('b', {}, 'g')],
  ],
  [
    'C20 calls that come whole, one of them signed',
    [
      tool(0, { id: 'a', name: 'f', args: '{"x":1}', signature: 'acme:s' }),
      tool(1, { id: 'b', name: 'f', args: '{}' }),
    ],
    [
      { type: 'thinking', thinking: '', signature: seal('call||a|acme:s') },
      { ...use('a', { x: 1 }), extra_content: { vendor: { thought_signature: 'acme:s' } } },
      use('b', {}),
    ],
  ],
  [
    'a signed call behind a thought that nobody signed, and another one behind text',
    [
      think('Hm', { format: undefined, block: undefined }),
      tool(0, { id: 'a|1', name: 'f', args: '{}', signature: 'acme:s' }),
      text('b'),
      tool(1, { id: 'b', name: 'f', args: '{}', signature: 'acme:t' }),
    ],
    [
      { type: 'thinking', thinking: 'Hm', signature: seal('call||a%7C1|acme:s') },
      { ...use('a|1', {}), extra_content: { vendor: { thought_signature: 'acme:s' } } },
      said('b'),
      { type: 'thinking', thinking: '', signature: seal('call||b|acme:t') },
      { ...use('b', {}), extra_content: { vendor: { thought_signature: 'acme:t' } } },
    ],
  ],
  [
    'C22 calls that interleave',
    [
      tool(0, { id: 'a', name: 'f' }),
      tool(1, { id: 'b', name: 'f' }),
      tool(0, { args: '{"x":' }),
      tool(1, { args: '{"y":{}' }),
      tool(2, { id: 'c', name: 'g' }),
      tool(0, { args: '1}' }),
      tool(1, { args: '}' }),
      text('done'),
    ],
    [use('a', { x: 1 }), use('b', { y: {} }), use('c', {}, 'g'), said('done')],
  ],
  [
    'C22 text and thinking between the pieces of calls',
    [
      tool(0, { id: 'a', name: 'f', args: '' }),
      text('I '),
      tool(0, { args: '{"x":"}\\"' }),
      think('Hm'),
      tool(1, { id: 'b', name: 'g', args: '{"y":[{}' }),
      text('look'),
      text('.'),
      tool(0, { args: '{","z":{}}' }),
      tool(1, { args: ']}' }),
      text(' Done'),
    ],
    [
      use('a', { x: '}"{', z: {} }),
      said('I '),
      { type: 'thinking', thinking: 'Hm', signature: '' },
      use('b', { y: [{}] }, 'g'),
      said('look. Done'),
    ],
  ],
  [
    'C22 text behind a call without arguments, in its place',
    [tool(0, { id: 'a', name: 'f' }), text('x'), tool(1, { id: 'b', name: 'g', args: '{}' }), text('y')],
    [use('a', {}), said('x'), use('b', {}, 'g'), said('y')],
  ],
  ['a call without an id', [tool(0, { name: 'f', args: '{}' })], [use('toolu_ID_0', {})]],
  [
    'server tools as they are',
    [native(search), native(found), text('a'), source('https://a', 'A')],
    [search, found, said('a')],
  ],
  ['a block of another wire', [native({ type: 'x_call', y: 1 })], [{ type: 'x_call', y: 1, provider: 'acme' }]],
  [
    'sources, each once, behind all else',
    [text('a'), source('https://a', 'A'), source('https://b'), source('https://a', 'A'), text('b')],
    [said('ab'), ...searched(['https://a', 'A'], ['https://b', ''])],
  ],
  [
    'pages of an earlier turn that this wire cites, without a search that never ran',
    [text('a'), source('https://b', 'B'), passage({ url: 'https://b' })],
    [{ ...said('a'), citations: [{ url: 'https://b' }] }],
  ],
  [
    'a result of an earlier turn, whose pages and others this wire cites',
    [native(found), text('a'), source('https://b', 'B'), passage({ url: 'https://b' }), text('b')],
    [found, { ...said('a'), citations: [{ url: 'https://b' }] }, said('b')],
  ],
  ['a refusal', [{ type: 'refusal', choice: 0, text: 'No.' }], [said('No.')]],
]

/** Why an answer ended, by its events and the reason that the provider gave. */
export const endings: (readonly [events: Event[], reason: string, stop: Json])[] = [
  [[text('a')], 'stop', { stop_reason: 'end_turn' }],
  [[text('a')], 'length', { stop_reason: 'max_tokens' }],
  [[tool(0, { id: 'a', name: 'f' })], 'tool_calls', { stop_reason: 'tool_use' }],
  [[], 'content_filter', { stop_reason: 'refusal' }],
  [
    [{ type: 'refusal', choice: 0, text: 'No.' }],
    'content_filter',
    { stop_reason: 'refusal', stop_details: { type: 'refusal', category: null, explanation: 'No.' } },
  ],
  [
    [{ type: 'refusal', choice: 0, text: 'No.' }],
    'stop',
    { stop_reason: 'refusal', stop_details: { type: 'refusal', category: null, explanation: 'No.' } },
  ],
  [[native(search)], 'stop', { stop_reason: 'pause_turn' }],
  [[native(search), native(found)], 'stop', { stop_reason: 'end_turn' }],
  [[native(search), tool(0, { id: 'a', name: 'f' })], 'tool_calls', { stop_reason: 'tool_use' }],
]
