/** Events of an answer, the deltas that a stream makes of them, and the message that a whole answer is. */
import type { Event } from '../../src/core/event.ts'
import { text } from '../core/kit.ts'
import type { Json } from './bodies.ts'

const signed: Event = { type: 'reasoning', choice: 0, text: 'hm', format: 'f-v1', block: 0 }
const hidden: Event = { type: 'reasoning', choice: 0, text: '', format: 'f-v1', block: 1, data: 'acme:d' }
const encrypted = { type: 'reasoning.encrypted', data: 'acme:d', format: 'f-v1', block_index: 1 }
const piece = { type: 'reasoning.text', format: 'f-v1', block_index: 0, index: 0 }
const cited = (url_citation: Json) => ({ type: 'url_citation', url_citation })
const annotations = [
  cited({ url: 'https://a', title: 'A', start_index: 0, end_index: 1 }),
  cited({ url: 'https://a', title: 'A', start_index: 2, end_index: 3 }),
  cited({ url: 'https://b', title: '', start_index: 0, end_index: 3 }),
]
const items = [
  { text: 'ab', phase: 'commentary', preceding_tool_calls: 0 },
  { text: 'c', phase: 'final_answer', preceding_tool_calls: 1 },
]

export const answers: readonly (readonly [
  says: string,
  events: Event[],
  deltas: [index: number, delta: Json][],
  message: Json,
])[] = [
  [
    'text',
    [text('a'), text('b')],
    [
      [0, { role: 'assistant', content: 'a' }],
      [0, { content: 'b' }],
    ],
    { content: 'ab' },
  ],
  [
    'two choices',
    [text('a', 0), text('b', 1), text('c', 0)],
    [
      [0, { role: 'assistant', content: 'a' }],
      [1, { role: 'assistant', content: 'b' }],
      [0, { content: 'c' }],
    ],
    { content: 'ac' },
  ],
  [
    'a refusal',
    [{ type: 'refusal', choice: 0, text: 'no' }],
    [[0, { role: 'assistant', content: null, refusal: 'no' }]],
    { content: '', refusal: 'no' },
  ],
  [
    'plain reasoning',
    [{ type: 'reasoning', choice: 0, text: 'hm' }, text('a')],
    [
      [0, { role: 'assistant', content: null, reasoning: 'hm', reasoning_content: 'hm' }],
      [0, { content: 'a' }],
    ],
    { content: 'a', reasoning: 'hm', reasoning_content: 'hm' },
  ],
  [
    'signed reasoning, whose details sum up to it, with the signature alone at the end',
    [signed, { ...signed, text: 'm' }, { ...signed, text: '', signature: 'acme:s' } as Event],
    [
      [
        0,
        {
          role: 'assistant',
          content: null,
          reasoning: 'hm',
          reasoning_content: 'hm',
          reasoning_details: [{ ...piece, text: 'hm' }],
        },
      ],
      [0, { reasoning: 'm', reasoning_content: 'm', reasoning_details: [{ ...piece, text: 'm' }] }],
      [0, { reasoning_details: [{ ...piece, signature: 'acme:s' }] }],
    ],
    {
      content: '',
      reasoning: 'hmm',
      reasoning_content: 'hmm',
      reasoning_details: [{ type: 'reasoning.text', text: 'hmm', signature: 'acme:s', format: 'f-v1', block_index: 0 }],
    },
  ],
  [
    'signed reasoning in pieces that are alike, beside hidden reasoning',
    [
      { ...signed, text: 'ha' } as Event,
      { ...signed, text: 'ha' } as Event,
      { ...signed, text: '', signature: 'acme:s' } as Event,
      hidden,
    ],
    [
      [
        0,
        {
          role: 'assistant',
          content: null,
          reasoning: 'ha',
          reasoning_content: 'ha',
          reasoning_details: [{ ...piece, text: 'ha' }],
        },
      ],
      [0, { reasoning: 'ha', reasoning_content: 'ha', reasoning_details: [{ ...piece, text: 'ha' }] }],
      [
        0,
        {
          reasoning_details: [
            { ...piece, signature: 'acme:s' },
            { ...encrypted, index: 1 },
          ],
        },
      ],
    ],
    {
      content: '',
      reasoning: 'haha',
      reasoning_content: 'haha',
      reasoning_details: [
        { type: 'reasoning.text', text: 'haha', signature: 'acme:s', format: 'f-v1', block_index: 0 },
        encrypted,
      ],
    },
  ],
  [
    'hidden reasoning in two pieces, which no one can join',
    [hidden, { ...hidden, data: 'acme:e' } as Event],
    [
      [0, { role: 'assistant', content: null }],
      [0, { reasoning_details: [encrypted, { ...encrypted, data: 'acme:e' }] }],
    ],
    { content: '', reasoning_details: [encrypted, { ...encrypted, data: 'acme:e' }] },
  ],
  [
    'a tool call',
    [
      { type: 'tool', choice: 0, index: 0, id: 'c', name: 'f' },
      { type: 'tool', choice: 0, index: 0, args: '{"k"' },
      { type: 'tool', choice: 0, index: 0, args: ':1}' },
    ],
    [
      [
        0,
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '' } }],
        },
      ],
      [0, { tool_calls: [{ index: 0, function: { arguments: '{"k"' } }] }],
      [0, { tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }],
    ],
    { content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{"k":1}' } }] },
  ],
  [
    'a call of a custom tool, whose input is any text, and one of another without any',
    [
      { type: 'tool', choice: 0, index: 0, custom: true, id: 'c', name: 'f' },
      { type: 'tool', choice: 0, index: 0, custom: true, args: 'a"' },
      { type: 'tool', choice: 0, index: 1, custom: true, id: 'd', name: 'g' },
    ],
    [
      [
        0,
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ index: 0, id: 'c', type: 'custom', custom: { name: 'f', input: '' } }],
        },
      ],
      [0, { tool_calls: [{ index: 0, custom: { input: 'a"' } }] }],
      [0, { tool_calls: [{ index: 1, id: 'd', type: 'custom', custom: { name: 'g', input: '' } }] }],
    ],
    {
      content: null,
      tool_calls: [
        { id: 'c', type: 'custom', custom: { name: 'f', input: 'a"' } },
        { id: 'd', type: 'custom', custom: { name: 'g', input: '' } },
      ],
    },
  ],
  [
    'text, and a signed call of a tool that takes nothing',
    [text('a'), { type: 'tool', choice: 0, index: 0, id: 'c', name: 'f', signature: 'acme:s' }],
    [
      [0, { role: 'assistant', content: 'a' }],
      [
        0,
        {
          tool_calls: [
            {
              index: 0,
              id: 'c',
              type: 'function',
              function: { name: 'f', arguments: '' },
              extra_content: { vendor: { thought_signature: 'acme:s' } },
            },
          ],
        },
      ],
      [0, { content_before_tool_calls: true }],
    ],
    {
      content: 'a',
      tool_calls: [
        {
          id: 'c',
          type: 'function',
          function: { name: 'f', arguments: '{}' },
          extra_content: { vendor: { thought_signature: 'acme:s' } },
        },
      ],
      content_before_tool_calls: true,
    },
  ],
  [
    'an image',
    [{ type: 'image', choice: 0, url: 'data:x' }],
    [[0, { role: 'assistant', content: null, images: [{ type: 'image_url', image_url: { url: 'data:x' } }] }]],
    { content: '', images: [{ type: 'image_url', image_url: { url: 'data:x' } }] },
  ],
  [
    'sources, each with its place, or else that of all the text, all at once',
    [
      text('ab'),
      { type: 'source', choice: 0, url: 'https://a', title: 'A', start: 0, end: 1 },
      text('c'),
      { type: 'source', choice: 0, url: 'https://a', title: 'A', start: 2, end: 3 },
      { type: 'source', choice: 0, url: 'https://b' },
    ],
    [
      [0, { role: 'assistant', content: 'ab' }],
      [0, { content: 'c' }],
      [0, { annotations }],
    ],
    { content: 'abc', annotations },
  ],
  [
    'a source before anything was said',
    [{ type: 'source', choice: 0, url: 'https://b' }, text('a'), text('bc')],
    [
      [0, { role: 'assistant', content: null }],
      [0, { content: 'a' }],
      [0, { content: 'bc' }],
      [0, { annotations: [cited({ url: 'https://b', title: '', start_index: 0, end_index: 3 })] }],
    ],
    { content: 'abc', annotations: [cited({ url: 'https://b', title: '', start_index: 0, end_index: 3 })] },
  ],
  [
    'a source of an answer without text, which has no indexes',
    [{ type: 'source', choice: 0, url: 'https://b' }],
    [
      [0, { role: 'assistant', content: null }],
      [0, { annotations: [cited({ url: 'https://b', title: '' })] }],
    ],
    { content: '', annotations: [cited({ url: 'https://b', title: '' })] },
  ],
  [
    'two phases around a call',
    [
      { type: 'phase', choice: 0, phase: 'commentary' },
      text('a'),
      text('b'),
      { type: 'tool', choice: 0, index: 0, id: 'c', name: 'f', args: '{}' },
      { type: 'phase', choice: 0, phase: 'final_answer' },
      text('c'),
    ],
    [
      [0, { role: 'assistant', content: null, phase: 'commentary' }],
      [0, { content: 'a' }],
      [0, { content: 'b' }],
      [0, { tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] }],
      [0, { phase: 'final_answer' }],
      [0, { content: 'c' }],
      [0, { content_before_tool_calls: true, message_items: items }],
    ],
    {
      content: 'abc',
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
      content_before_tool_calls: true,
      phase: 'final_answer',
      message_items: items,
    },
  ],
  [
    'a native block',
    [{ type: 'native', choice: 0, provider: 'acme', block: { type: 'b', x: 1 } }],
    [
      [0, { role: 'assistant', content: null }],
      [0, { provider_native_blocks: [{ type: 'b', x: 1, provider: 'acme' }] }],
    ],
    { content: '', provider_native_blocks: [{ type: 'b', x: 1, provider: 'acme' }] },
  ],
]
