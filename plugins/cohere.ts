/** Cohere's wires `cohere.chat`, `cohere.embeddings` and `cohere.rerank` (docs/contributing/wire-sources.md#cohere). */
import {
  countIn,
  type Decoder,
  type EmbeddingRequest,
  type GatewayError,
  isObject,
  objectIn,
  type Plugin,
  parseErrorBody,
  type RerankRequest,
  readProviderError,
  type Target,
  type Translator,
  upstreamError,
  upstreamErrorFrom,
  type WireRequest,
} from '../src/plugin.ts'
import { CohereDecoder } from './cohere/decode.ts'
import { encode, MAX_STOPS } from './cohere/encode.ts'
import { errorIn, parsed, WholeDecoder } from './shared/answer.ts'
import { boundsOf, embeddingsOf, promptTokens, textsOf, vectorsWanted } from './shared/embeddings/openai-form.ts'
import { type Ranking, rerankWire } from './shared/rerank.ts'
import { first } from './shared/stops.ts'

function encodeRerank(
  { query, documents, top_n, max_tokens_per_doc }: Readonly<RerankRequest>,
  { mapping }: Target,
): WireRequest {
  return {
    path: '/rerank',
    body: {
      model: mapping.externalId,
      query,
      documents,
      ...(top_n !== undefined && { top_n: Math.min(top_n, documents.length) }),
      ...(max_tokens_per_doc !== undefined && { max_tokens_per_doc }),
    },
  }
}

function readRanking(answer: unknown, estimated: number): Ranking {
  const { results, meta } = objectIn(answer)
  const { billed_units } = objectIn(meta)
  const { search_units: units, input_tokens: tokens } = objectIn(billed_units)
  const request = countIn(units) || estimated
  const prompt = countIn(tokens)
  return { list: results, usage: prompt === undefined ? { request } : { request, prompt } }
}

/** Cohere's Rerank API, `POST /rerank`. */
const rerank = rerankWire('cohere.rerank', encodeRerank, readRanking)

const INVALID_TOKEN = 498

/** An error answer as a GatewayError. */
function error(status: number, body: string, target: Target): GatewayError {
  if (status === INVALID_TOKEN) return upstreamErrorFrom(401, body, target).with({ upstreamStatus: status })
  if (status !== 429) return upstreamErrorFrom(status, body, target)
  // E6: waiting does not restore a trial key's monthly calls.
  const reported = parsedProviderError(body)
  if (!reported || !/month/i.test(reported.message)) return upstreamErrorFrom(status, body, target)
  return upstreamError(status, { ...reported, code: 'quota_exceeded' }, target)
}

function parsedProviderError(body: string) {
  try {
    return readProviderError(parseErrorBody(body))
  } catch {
    return undefined
  }
}

/**
 * `input_type` is required and unknown to clients of this endpoint: documents for search. Texts that are too long are
 * rejected, as at other providers, not truncated.
 */
function encodeEmbeddings(request: Readonly<EmbeddingRequest>, { mapping }: Target): WireRequest {
  const { encoding_format, dimensions } = request
  return {
    path: '/embed',
    body: {
      model: mapping.externalId,
      input_type: 'search_document',
      texts: textsOf(request),
      embedding_types: [encoding_format ?? 'float'],
      ...(dimensions != null && { output_dimension: dimensions }),
      truncate: 'NONE',
    },
  }
}

/** Reads an answer of the Embed API; throws a GatewayError where `input` has another number of texts than vectors. */
const embeddingsDecoder = (target: Target, input?: Readonly<EmbeddingRequest>): Decoder =>
  new WholeDecoder(frame => {
    const answer = parsed(frame, boundsOf(input))
    const lists = objectIn(answer).embeddings
    if (!isObject(answer) || !isObject(lists)) throw errorIn(answer, 'vectors', target)
    const vectors = lists.float ?? lists.base64
    const { billed_units: billed } = objectIn(answer.meta)
    const value = embeddingsOf(Array.isArray(vectors) ? vectors : [], vectorsWanted(input))
    return [...promptTokens(isObject(billed) && billed.input_tokens), { type: 'result', value }]
  })

const chat: Translator<'chat'> = {
  op: 'chat',
  wire: 'cohere.chat',
  takesStop: first(MAX_STOPS),
  encode,
  decoder: (mode, target, input) => new CohereDecoder(mode, target, input),
  error,
}

const embeddings: Translator<'embeddings'> = {
  op: 'embeddings',
  wire: 'cohere.embeddings',
  maxInputs: 96,
  encode: encodeEmbeddings,
  decoder: (_mode, target, input) => embeddingsDecoder(target, input),
  error,
}

/** Cohere's API, version 2: Chat, Embed and Rerank. */
export const plugin = { wires: [chat, embeddings, rerank] as const } satisfies Plugin
