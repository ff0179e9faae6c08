/** What a request needs of a mapping, as a table: the documented 400s of interface section 7 are its rows. */
import type { Mapping } from '../core/catalog.ts'
import { errors, type GatewayError } from '../core/error.ts'
import type { ChatRequest, ContentPart, EmbeddingRequest, Op, Ops } from '../core/ops.ts'

interface Requirement<R> {
  readonly param: string
  /** Completes «No provider of "m" supports …». */
  readonly what: string
  readonly code?: string
  needed(request: R): boolean
  met(mapping: Mapping, request: R): boolean
}

const holds = (type: ContentPart['type']) => (request: ChatRequest) =>
  request.messages.some(({ content }) => Array.isArray(content) && content.some(part => part.type === type))

const effortOf = (request: ChatRequest) => request.reasoning?.effort ?? request.reasoning_effort

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
    needed: request => request.tools?.some(tool => tool.type === 'function') === true,
    met: mapping => mapping.supports.has('tools'),
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
    met: (mapping, request) => mapping.serviceTiers.includes(request.service_tier!),
  },
  {
    param: 'n',
    what: 'so many choices in one request',
    needed: request => (request.n ?? 1) > 1,
    met: (mapping, request) => mapping.maxN >= request.n!,
  },
]

/** Tokens of the longest input that is given as such; texts are counted by the provider. */
function longest({ input }: EmbeddingRequest): number {
  if (!Array.isArray(input)) return 0
  const [first] = input
  if (typeof first === 'number') return input.length
  return typeof first === 'string' ? 0 : Math.max(...(input as number[][]).map(tokens => tokens.length))
}

const embeddings: readonly Requirement<EmbeddingRequest>[] = [
  {
    param: 'dimensions',
    what: 'dimensions',
    needed: request => request.dimensions != null,
    met: ({ parameters }) => !parameters || parameters.has('dimensions'),
  },
  {
    param: 'input',
    what: 'so many tokens in one input',
    code: 'context_length_exceeded',
    needed: request => longest(request) > 0,
    met: ({ contextLength = Infinity }, request) => longest(request) <= contextLength,
  },
]

const requirements: { readonly [O in Op]: readonly Requirement<Ops[O]>[] } = { chat, embeddings }

/** The mappings that can serve the request, or the 400 that says which need no mapping meets. */
export function capable(
  mappings: readonly Mapping[],
  op: Op,
  request: Ops[Op],
): { mappings: readonly Mapping[]; unmet?: GatewayError } {
  let left = mappings
  for (const requirement of requirements[op] as readonly Requirement<Ops[Op]>[]) {
    if (!requirement.needed(request)) continue
    const able = left.filter(mapping => requirement.met(mapping, request))
    if (able.length === 0) {
      const message = `No provider of "${request.model}" supports ${requirement.what}.`
      return { mappings: able, unmet: errors.unsupported(message, requirement.param, requirement.code) }
    }
    left = able
  }
  return { mappings: left }
}
