/** Requirements of a chat request on a mapping (docs/contract.md#errors). */

import type { ChatRequest, ContentPart } from '../../core/chat-request.ts'
import { type Requirement, takes } from '../../core/operation.ts'
import { serviceTier } from '../service-tier.ts'

const holds = (type: ContentPart['type']) => (request: ChatRequest) =>
  request.messages.some(({ content }) => Array.isArray(content) && content.some(part => part.type === type))

const effortOf = (request: ChatRequest) => request.reasoning?.effort ?? request.reasoning_effort

const asksReasoning = (request: ChatRequest) =>
  (effortOf(request) ?? 'none') !== 'none' || request.reasoning?.max_tokens != null

/** Each is checked in this order; the first that no mapping meets names the error's `param`. */
export const requirements: readonly Requirement<ChatRequest>[] = [
  {
    param: 'messages',
    what: 'image input',
    needed: holds('image_url'),
    met: ({ supports, wires }) => supports.has('vision') || wires.get('chat')?.bridged === true,
  },
  {
    param: 'messages',
    what: 'audio input',
    needed: holds('input_audio'),
    met: mapping => mapping.supports.has('audio_input'),
  },
  {
    param: 'messages',
    what: 'file input',
    needed: holds('file'),
    met: mapping => mapping.supports.has('file_input'),
  },
  {
    param: 'tools',
    what: 'tools',
    needed: request => request.tools?.some(({ type }) => type === 'function' || type === 'custom') === true,
    met: mapping => mapping.supports.has('tools'),
  },
  {
    param: 'tools',
    what: 'tools of type "custom"',
    offers: () => ['tools of type "function"'],
    needed: request => request.tools?.some(({ type }) => type === 'custom') === true,
    met: mapping => mapping.wires.get('chat')?.customTools === true,
  },
  {
    param: 'tools',
    what: 'web search',
    needed: request => request.web_search === true || request.tools?.some(tool => tool.type === 'web_search') === true,
    met: mapping => mapping.supports.has('web_search'),
  },
  {
    param: 'response_format',
    what: 'JSON output',
    needed: request => request.response_format != null && request.response_format.type !== 'text',
    met: mapping => mapping.supports.has('structured_outputs') || mapping.supports.has('json_output'),
  },
  {
    param: 'reasoning_effort',
    what: 'reasoning',
    needed: request => !request.lenient_reasoning && asksReasoning(request),
    met: mapping => mapping.supports.has('reasoning'),
  },
  {
    param: 'reasoning_effort',
    what: 'reasoning',
    soft: true,
    needed: request => request.lenient_reasoning === true && asksReasoning(request),
    met: mapping => mapping.supports.has('reasoning'),
  },
  {
    param: 'reasoning.mode',
    what: 'this reasoning mode',
    needed: request => request.reasoning?.mode !== undefined,
    offers: ({ reasoningModes }) => reasoningModes,
    met: (mapping, request) => mapping.reasoningModes.includes(request.reasoning!.mode!),
  },
  {
    param: 'verbosity',
    what: 'verbosity',
    // Some clients send it unasked.
    advice: 'Leave it out, or add "verbosity" to "supports" of the model in the manifest of its provider.',
    needed: request => request.verbosity != null,
    met: mapping => mapping.supports.has('verbosity'),
  },
  serviceTier,
  {
    param: 'n',
    what: 'so many choices in one request',
    needed: request => (request.n ?? 1) > 1,
    offers: ({ maxN }) => maxN,
    met: (mapping, request) => mapping.maxN >= request.n!,
  },
  {
    param: 'messages',
    what: 'so long a prompt',
    soft: true,
    needed: () => true,
    met: ({ contextLength }, _, promptTokens) => contextLength === undefined || promptTokens() <= contextLength,
  },
  {
    param: 'max_tokens',
    what: 'so long an answer',
    soft: true,
    needed: request => request.max_tokens != null,
    met: ({ maxOutput = Infinity }, request) => request.max_tokens! <= maxOutput,
  },
  {
    param: 'stream',
    what: 'streaming',
    soft: true,
    needed: request => request.stream === true,
    met: mapping => mapping.supports.has('streaming'),
  },
  {
    param: 'response_format',
    what: 'structured outputs',
    soft: true,
    needed: request => request.response_format?.type === 'json_schema',
    met: mapping => mapping.supports.has('structured_outputs'),
  },
  {
    param: 'tool_choice',
    what: 'this choice of tools',
    soft: true,
    needed: ({ tool_choice: choice }) => choice != null && choice !== 'auto' && choice !== 'none',
    met: mapping => takes(mapping, 'tool_choice'),
  },
  {
    param: 'parallel_tool_calls',
    what: 'parallel tool calls',
    soft: true,
    needed: request => request.parallel_tool_calls === true,
    met: mapping => mapping.supports.has('parallel_tool_calls'),
  },
  {
    param: 'reasoning_effort',
    what: 'this reasoning effort',
    soft: true,
    needed: request => (effortOf(request) ?? 'none') !== 'none',
    met: ({ reasoningEfforts }, request) =>
      reasoningEfforts.length === 0 || reasoningEfforts.includes(effortOf(request)!),
  },
  {
    param: 'effort',
    what: 'effort',
    soft: true,
    needed: request => request.effort != null,
    met: mapping => mapping.supports.has('effort'),
  },
]
