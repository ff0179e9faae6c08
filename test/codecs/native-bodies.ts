/** Messages bodies as they go to providers of the same wire, and what of them no other wire can carry. */
import type { Json } from './bodies.ts'

const form = { type: 'json_schema', schema: { type: 'object' } }
const said = (message: Json): Json => ({ messages: [{ role: 'user', content: 'Hi', ...message }] })
const block = (fields: Json): Json => said({ content: [fields] })
const result = (more: Json) => block({ type: 'tool_result', tool_use_id: 'a', ...more })
const at = 'messages[0].content[0]'
const tool = { name: 'f', input_schema: {} }
const atClient = ['bash', 'text_editor', 'memory', 'computer'].map(name => ({ type: `${name}_20250124`, name }))
const searches = [
  { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
  { type: 'web_search_20260209', name: 'web_search' },
]

/** Bodies in an older form, and what a provider of the same wire gets in their place; null for what is left out. */
export const renewed: (readonly [says: string, fields: Json, sent: Json])[] = [
  ['the form of the answer', { output_format: form }, { output_format: null, output_config: { format: form } }],
  [
    'the form of the answer beside an effort',
    { output_format: form, output_config: { effort: 'low' } },
    { output_format: null, output_config: { effort: 'low', format: form } },
  ],
  ['no form of the answer', { output_format: null }, { output_format: null }],
  ['no thread', { thread: null, came_later: 1 }, { thread: null }],
]

/** What only providers of the same wire can carry, by its path; and what any wire can, which has none. */
export const onlyNative: (readonly [fields: Json, path: string | undefined])[] = [
  [{}, undefined],
  [{ compaction: { type: 'summarize' } }, 'compaction'],
  [{ container: 'c1' }, 'container'],
  [{ container: { skills: [] } }, 'container'],
  [{ inference_geo: 'eu' }, 'inference_geo'],
  [{ billing_policy: { type: 'billing_policy', bill_to: 'user_profile' } }, 'billing_policy'],
  [{ mcp_servers: [{ type: 'url', url: 'https://a.example', name: 'a' }] }, 'mcp_servers'],
  [{ mcp_servers: [], container: null, compaction: null, inference_geo: null }, undefined],
  [{ context_management: { edits: [{ type: 'compact_20260112' }] }, diagnostics: {}, speed: 'fast' }, undefined],
  [{ cache_control: { type: 'ephemeral' }, fallback_credit_token: 't', came_later: 1 }, undefined],
  [{ tools: [tool, ...searches, { ...tool, type: 'custom' }, { ...tool, type: null }] }, undefined],
  ...atClient.map(own => [{ tools: [tool, own] }, 'tools[1].type'] as const),
  [{ tools: [tool, { type: 'code_execution_20250825', name: 'code_execution' }] }, 'tools[1].type'],
  [{ tools: [{ type: 'mcp_toolset', mcp_server_name: 'a' }] }, 'tools[0].type'],
  [block({ type: 'container_upload', file_id: 'f' }), `${at}.type`],
  [result({ content: [{ type: 'text', text: 'a' }, { type: 'came_later' }] }), `${at}.content[1].type`],
  [result({ content: [{ type: 'tool_reference', tool_name: 'f' }] }), undefined],
  [block({ type: 'tool_removal', name: 'f' }), undefined],
  [said({ role: 'assistant', content: [{ type: 'mcp_tool_use', id: 'm', name: 'x', input: {} }] }), undefined],
  [said({ role: 'assistant', content: [{ type: 'compaction', content: 'Ada asked.' }] }), undefined],
  [said({ role: 'assistant', content: [{ type: 'compaction', content: null, encrypted_content: 'e' }] }), `${at}.type`],
]
