/** Answers of the demo provider: derived from the request and labelled as simulated. */
import { SimulatedError, type Simulation } from '../../core/operation.ts'
import type { Json } from '../../json/json.ts'

const MAX_DEPTH = 8
const MAX_PROPERTIES = 100
/** Per sample: a recursive schema has no end. */
const MAX_VALUES = 500

/** Strings become `seed`, numbers their minimum or 1, arrays one element. */
export function sample(
  schema: unknown,
  seed: string,
  root: unknown = schema,
  depth = 0,
  budget = { left: MAX_VALUES },
): unknown {
  if (typeof schema !== 'object' || schema === null || depth > MAX_DEPTH || budget.left-- <= 0) return null
  const node = schema as Json
  if (typeof node.$ref === 'string') return sample(resolve(root, node.$ref), seed, root, depth + 1, budget)
  if ('const' in node) return node.const
  if (Array.isArray(node.enum)) return node.enum[0]
  for (const union of [node.anyOf, node.oneOf, node.allOf]) {
    if (Array.isArray(union)) return sample(union[0], seed, root, depth + 1, budget)
  }
  const type = Array.isArray(node.type) ? node.type[0] : node.type
  switch (type) {
    case 'string':
      return seed
    case 'integer':
    case 'number':
      return typeof node.minimum === 'number' ? node.minimum : 1
    case 'boolean':
      return true
    case 'array':
      return [sample(node.items ?? { type: 'string' }, seed, root, depth + 1, budget)]
    case 'null':
      return null
    default:
      return object(node, seed, root, depth, budget)
  }
}

function object(node: Json, seed: string, root: unknown, depth: number, budget: { left: number }): Json {
  const properties = Object.entries((node.properties ?? {}) as Json).slice(0, MAX_PROPERTIES)
  return Object.fromEntries(properties.map(([key, property]) => [key, sample(property, seed, root, depth + 1, budget)]))
}

/** `#/$defs/name` within the same schema; anything else stays unresolved. */
function resolve(root: unknown, reference: string): unknown {
  if (!reference.startsWith('#/')) return null
  let at: unknown = root
  for (const key of reference.slice(2).split('/')) {
    at = typeof at === 'object' && at !== null && Object.hasOwn(at, key) ? (at as Json)[key] : undefined
  }
  return at
}

interface Message {
  role: string
  content?: string | { type: string; text?: string }[] | null
}
interface Tool {
  type: string
  function?: { name: string; parameters?: unknown }
  /** Instead of a function, for a tool that takes free text. */
  custom?: { name: string }
}
/** Fields of an OpenAI chat request that the demo reads. */
export interface DemoRequest {
  messages: Message[]
  tools?: Tool[]
  tool_choice?: string | { function?: { name: string }; custom?: { name: string } }
  response_format?: { type: string; json_schema?: { schema: unknown } }
  reasoning_effort?: string
  web_search_options?: object
  stream?: boolean
  max_tokens?: number
}

/** Answer of the demo provider, before it has the form of a wire. */
export interface DemoAnswer {
  text: string
  reasoning: string
  /** `input` instead of `arguments` is for a custom tool. */
  tool: { name: string; arguments: string } | { name: string; input: string } | undefined
  source: { url: string; title: string } | undefined
  finish: 'stop' | 'tool_calls' | 'length'
  usage: { prompt: number; completion: number; reasoning: number }
}

/** As `config/models.d/demo.yaml` says. */
const MAX_PROMPT_TOKENS = 32_768
const MAX_OUTPUT_TOKENS = 4096

const tokens = (text: string) => Math.ceil(text.length / 4)

/** Equal for equal requests; `tool` is set where the request allows one of its tools and holds no result of one yet. */
export function answer(request: DemoRequest): DemoAnswer {
  const size = promptTokens(request.messages)
  if (size > MAX_PROMPT_TOKENS) {
    const message = `messages: at most ${MAX_PROMPT_TOKENS} tokens, got ${size}`
    throw new SimulatedError(message, 'messages', 'context_length_exceeded')
  }
  const prompt = lastText(request.messages, 'user')
  const reasoning = thinks(request) ? `The user wrote ${prompt.length} characters; a simulated answer follows.` : ''
  const tool = toolCall(request, prompt)
  const input = tool && ('input' in tool ? tool.input : tool.arguments)
  const full = tool ? '' : textOf(request, prompt)
  const text = full.slice(0, Math.min(request.max_tokens ?? MAX_OUTPUT_TOKENS, MAX_OUTPUT_TOKENS) * 4)
  return {
    text,
    reasoning,
    tool,
    source:
      request.web_search_options && !tool ? { url: 'https://example.com/demo', title: 'Simulated source' } : undefined,
    finish: tool ? 'tool_calls' : text.length < full.length ? 'length' : 'stop',
    usage: {
      prompt: size,
      completion: tokens(text + reasoning + (input ?? '')),
      reasoning: tokens(reasoning),
    },
  }
}

/** Counts all texts, with a few tokens per message; images and files count as little. */
function promptTokens(messages: readonly Message[]): number {
  let sum = 0
  for (const { content } of messages) {
    const parts = typeof content === 'string' ? [{ text: content }] : (content ?? [])
    sum += 8
    for (const { text = '' } of parts) sum += tokens(text)
  }
  return sum
}

const thinks = ({ reasoning_effort: effort }: DemoRequest) => effort !== undefined && effort !== 'none'

/** The forced tool, or the first one; none when a result is present. */
function toolCall({ tools, tool_choice: choice, messages }: DemoRequest, prompt: string): DemoAnswer['tool'] {
  if (!tools?.length || choice === 'none' || hasResult(messages)) return undefined
  const named = typeof choice === 'object' ? (choice.function ?? choice.custom)?.name : undefined
  const { function: called, custom } = tools.find(tool => (tool.function ?? tool.custom)?.name === named) ?? tools[0]!
  const text = prompt.slice(0, 40)
  if (!called) return custom && { name: custom.name, input: text }
  return { name: called.name, arguments: JSON.stringify(sample(called.parameters ?? {}, text)) }
}

function textOf({ response_format: format, messages }: DemoRequest, prompt: string): string {
  if (format?.type === 'json_schema') return JSON.stringify(sample(format.json_schema?.schema, prompt.slice(0, 40)))
  if (format?.type === 'json_object') return JSON.stringify({ simulated: true, prompt })
  const result = hasResult(messages) ? ` The tool said: ${lastText(messages, 'tool')}` : ''
  return `This is a simulated answer from the demo provider. You said: ${prompt}${result}`
}

/** Whether a tool has answered; clients may add reminders as user messages after a result. */
const hasResult = (messages: Message[]) => messages.some(({ role }) => role === 'tool')

function lastText(messages: Message[], role: string): string {
  const content = messages.findLast(message => message.role === role)?.content
  if (typeof content === 'string') return content
  return (content ?? []).map(part => part.text ?? `[${part.type}]`).join('')
}

/** The path of OpenAI's chat completions API. */
export const demo: Readonly<Record<string, Simulation>> = {
  '/chat/completions'({ json }) {
    const request = json as DemoRequest & { model: string }
    const reply = answer(request)
    if (!request.stream) return { json: whole(request.model, reply) }
    return { contentType: 'text/event-stream', chunks: stream(request.model, reply) }
  },
}

const usageOf = ({ usage }: DemoAnswer) => ({
  prompt_tokens: usage.prompt,
  completion_tokens: usage.completion,
  total_tokens: usage.prompt + usage.completion,
  completion_tokens_details: { reasoning_tokens: usage.reasoning },
})
const toolCalls = ({ tool }: DemoAnswer) => {
  const call = { index: 0, id: 'call_demo_1' }
  if (!tool) return undefined
  return ['input' in tool ? { ...call, type: 'custom', custom: tool } : { ...call, type: 'function', function: tool }]
}
const annotations = ({ source }: DemoAnswer) => source && [{ type: 'url_citation', url_citation: source }]

function whole(model: string, reply: DemoAnswer): object {
  const message = {
    role: 'assistant',
    content: reply.tool ? null : reply.text,
    ...(reply.reasoning === '' ? {} : { reasoning: reply.reasoning }),
    tool_calls: toolCalls(reply),
    annotations: annotations(reply),
  }
  return {
    id: 'demo',
    object: 'chat.completion',
    created: 0,
    model,
    choices: [{ index: 0, message, finish_reason: reply.finish }],
    usage: usageOf(reply),
  }
}

function* stream(model: string, reply: DemoAnswer): Generator<string> {
  const write = (choices: object[], more: object = {}) =>
    `data: ${JSON.stringify({ id: 'demo', object: 'chat.completion.chunk', created: 0, model, choices, ...more })}\n\n`
  const delta = (piece: object, finish: string | null = null) =>
    write([{ index: 0, delta: piece, finish_reason: finish }])
  yield delta({ role: 'assistant', content: reply.tool ? null : '' })
  if (reply.reasoning) yield delta({ reasoning: reply.reasoning })
  for (const [word] of reply.text.matchAll(/\S+\s*/g)) yield delta({ content: word })
  if (reply.source) yield delta({ annotations: annotations(reply) })
  if (reply.tool) yield delta({ tool_calls: toolCalls(reply) })
  yield delta({}, reply.finish)
  yield write([], { usage: usageOf(reply) })
  yield 'data: [DONE]\n\n'
}
