/** What a request needs of a mapping, as a table: the documented 400s of interface section 7 are its rows. */
import type { Mapping } from '../core/catalog.ts'
import { errors, type GatewayError } from '../core/error.ts'
import { operationOf } from '../core/operation.ts'
import type { ChatRequest, ContentPart, EmbeddingRequest, Op, Ops } from '../core/ops.ts'
import { estimateTokens } from '../core/usage.ts'

interface Requirement<R> {
  readonly param: string
  /**
   * Who does not meet it is left out only while somebody else does: what we estimate, and what a wire may drop or
   * pass on, is no reason to refuse.
   */
  readonly soft?: boolean
  /** Completes «No provider of "m" supports …». */
  readonly what: string
  readonly code?: string
  /** What a mapping takes in its place, at most or by name; for the refusal. */
  readonly offers?: (mapping: Mapping) => number | readonly string[] | undefined
  needed(request: R): boolean
  met(mapping: Mapping, request: R, promptTokens: () => number): boolean
}

const holds = (type: ContentPart['type']) => (request: ChatRequest) =>
  request.messages.some(({ content }) => Array.isArray(content) && content.some(part => part.type === type))

const effortOf = (request: ChatRequest) => request.reasoning?.effort ?? request.reasoning_effort

/** Parameters of a mapping that lists none are all of its wire. */
const takes = ({ parameters }: Mapping, name: string) => !parameters || parameters.has(name)

const chat: readonly Requirement<ChatRequest>[] = [
  {
    param: 'messages',
    what: 'image input',
    needed: holds('image_url'),
    met: mapping => mapping.supports.has('vision'),
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
    needed: request => (effortOf(request) ?? 'none') !== 'none' || request.reasoning?.max_tokens != null,
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
    needed: request => request.verbosity != null,
    met: mapping => mapping.supports.has('verbosity'),
  },
  {
    param: 'service_tier',
    what: 'this service tier',
    code: 'unsupported_service_tier',
    needed: request => request.service_tier === 'flex' || request.service_tier === 'priority',
    offers: ({ serviceTiers }) => serviceTiers,
    met: (mapping, request) => mapping.serviceTiers.includes(request.service_tier!),
  },
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

/** Tokens of the longest input that is given as such; texts are counted by the provider. */
function longest({ input }: EmbeddingRequest): number {
  if (!Array.isArray(input)) return 0
  const [first] = input
  if (typeof first === 'number') return input.length
  return typeof first === 'string' ? 0 : Math.max(...(input as number[][]).map(tokens => tokens.length))
}

const inputsIn = ({ input }: EmbeddingRequest): number =>
  typeof input === 'string' || typeof input[0] === 'number' ? 1 : input.length

const embeddings: readonly Requirement<EmbeddingRequest>[] = [
  {
    param: 'dimensions',
    what: 'dimensions',
    needed: request => request.dimensions != null,
    met: mapping => takes(mapping, 'dimensions'),
  },
  {
    param: 'input',
    what: 'so many tokens in one input',
    code: 'context_length_exceeded',
    needed: request => longest(request) > 0,
    offers: ({ contextLength }) => contextLength,
    met: ({ contextLength = Infinity }, request) => longest(request) <= contextLength,
  },
  {
    param: 'input',
    what: 'so many inputs in one request',
    needed: request => inputsIn(request) > 1,
    offers: ({ wires }) => wires.get('embeddings')?.maxInputs,
    met: ({ wires }, request) => inputsIn(request) <= (wires.get('embeddings')?.maxInputs ?? Infinity),
  },
]

const requirements: { readonly [O in Op]: readonly Requirement<Ops[O]>[] } = { chat, embeddings }

interface Circumstances {
  promptTokens?(): number
  /** Whether a mapping can be asked at all: who leaves others out by a soft row must be able to take their place. */
  reachable?(mapping: Mapping): boolean
}

/** The mappings that can serve the request, or the 400 that says which need no mapping meets. */
export function capable(
  mappings: readonly Mapping[],
  op: Op,
  request: Ops[Op],
  {
    promptTokens = () => estimateTokens(operationOf(op).promptCharacters(request)),
    reachable = () => true,
  }: Circumstances = {},
): { mappings: readonly Mapping[]; unmet?: GatewayError } {
  const rows = requirements[op] as readonly Requirement<Ops[Op]>[]
  let left = mappings
  for (const row of rows) {
    if ((row.soft && left.length < 2) || !row.needed(request)) continue
    const able = left.filter(mapping => row.met(mapping, request, promptTokens))
    if (row.soft ? able.some(reachable) : able.length > 0) left = able
    else if (!row.soft) return { mappings: able, unmet: unmet(mappings, row, rows, request, promptTokens) }
  }
  return { mappings: left }
}

/** What some provider supports, but not beside all else that was asked for, is told with that. */
function unmet(
  mappings: readonly Mapping[],
  row: Requirement<Ops[Op]>,
  rows: readonly Requirement<Ops[Op]>[],
  request: Ops[Op],
  promptTokens: () => number,
): GatewayError {
  const others = mappings.some(mapping => row.met(mapping, request, promptTokens))
    ? rows.slice(0, rows.indexOf(row)).filter(other => !other.soft && other.needed(request))
    : []
  const all = others.length > 0 ? `${[...others, row].map(({ what }) => what).join(' and ')} at once` : row.what
  const message = `No provider of "${request.model}" supports ${all}.${others.length > 0 ? '' : alternative(row, mappings)}`
  return errors.unsupported(message, row.param, row.code)
}

/** ` It takes …`, where that is known. */
function alternative({ offers }: Requirement<never>, mappings: readonly Mapping[]): string {
  const all = mappings.map(mapping => offers?.(mapping))
  const most = Math.max(...all.map(offer => (typeof offer === 'number' ? offer : 0)))
  const names = new Set(all.flatMap(offer => (typeof offer === 'object' ? offer : [])))
  if (most > 0) return ` It takes at most ${most}.`
  return names.size > 0 ? ` It takes ${[...names].join(', ')}.` : ''
}
