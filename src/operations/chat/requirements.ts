/** Requirements of a chat request on a mapping (docs/contract.md#errors). */

import type { ChatRequest, ContentPart } from '../../core/chat-request.ts'
import { type Requirement, takes } from '../../core/operation.ts'
import { serviceTier, supports } from '../requirements.ts'

const holds = (type: ContentPart['type']) => (request: ChatRequest) =>
  request.messages.some(({ content }) => Array.isArray(content) && content.some(part => part.type === type))

const holdsTools = ({ tools }: ChatRequest) =>
  tools?.some(({ type }) => type === 'function' || type === 'custom') === true
const holdsCustomTools = ({ tools }: ChatRequest) => tools?.some(({ type }) => type === 'custom') === true
const asksSearch = ({ web_search, tools }: ChatRequest) =>
  web_search === true || tools?.some(({ type }) => type === 'web_search') === true
const asksSchema = ({ response_format: format }: ChatRequest) => format?.type === 'json_schema'
const asksParallelCalls = ({ parallel_tool_calls: calls }: ChatRequest) => calls === true

const effortOf = (request: ChatRequest) => request.reasoning?.effort ?? request.reasoning_effort

const asksReasoning = (request: ChatRequest) =>
  (effortOf(request) ?? 'none') !== 'none' || request.reasoning?.max_tokens != null

const isLenient = (request: ChatRequest) => request.lenient_reasoning === true

const SOFT = { soft: true } as const

/** Each is checked in this order; the first that no mapping meets names the error's `param`. */
export const requirements: readonly Requirement<ChatRequest>[] = [
  {
    param: 'messages',
    what: 'image input',
    needed: holds('image_url'),
    met: ({ supports, wires }) => supports.has('vision') || wires.get('chat')?.bridged === true,
  },
  supports('messages', 'audio input', 'audio_input', holds('input_audio')),
  supports('messages', 'file input', 'file_input', holds('file')),
  supports('tools', 'tools', 'tools', holdsTools),
  {
    param: 'tools',
    what: 'tools of type "custom"',
    offers: () => ['tools of type "function"'],
    needed: holdsCustomTools,
    met: ({ wires, provider }) => wires.get('chat')?.customTools === true && !provider.quirks.drop.has('tools.custom'),
  },
  supports('tools', 'web search', 'web_search', asksSearch),
  {
    param: 'response_format',
    what: 'JSON output',
    needed: request => request.response_format != null && request.response_format.type !== 'text',
    met: mapping => mapping.supports.has('structured_outputs') || mapping.supports.has('json_output'),
  },
  supports('reasoning_effort', 'reasoning', 'reasoning', one => asksReasoning(one) && !isLenient(one)),
  supports('reasoning_effort', 'reasoning', 'reasoning', one => asksReasoning(one) && isLenient(one), SOFT),
  {
    param: 'reasoning.mode',
    what: 'this reasoning mode',
    needed: request => request.reasoning?.mode !== undefined,
    offers: ({ reasoningModes }) => reasoningModes,
    met: (mapping, request) => mapping.reasoningModes.includes(request.reasoning!.mode!),
  },
  supports('verbosity', 'verbosity', 'verbosity', ({ verbosity }) => verbosity != null, {
    // Some clients send it unasked.
    advice: 'Leave it out, or add "verbosity" to "supports" of the model in the manifest of its provider.',
  }),
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
  supports('stream', 'streaming', 'streaming', ({ stream }) => stream === true, SOFT),
  supports('response_format', 'structured outputs', 'structured_outputs', asksSchema, SOFT),
  {
    param: 'tool_choice',
    what: 'this choice of tools',
    soft: true,
    needed: ({ tool_choice: choice }) => choice != null && choice !== 'auto' && choice !== 'none',
    met: mapping => takes(mapping, 'tool_choice'),
  },
  supports('parallel_tool_calls', 'parallel tool calls', 'parallel_tool_calls', asksParallelCalls, SOFT),
  {
    param: 'reasoning_effort',
    what: 'this reasoning effort',
    soft: true,
    needed: request => (effortOf(request) ?? 'none') !== 'none',
    met: ({ reasoningEfforts }, request) =>
      reasoningEfforts.length === 0 || reasoningEfforts.includes(effortOf(request)!),
  },
  supports('effort', 'effort', 'effort', ({ effort }) => effort != null, SOFT),
]
