/** A generateContent body as a chat request. */

import type { ChatRequest, ReasoningEffort } from '../../core/chat-request.ts'
import type { Json } from '../../json/json.ts'
import { Count } from '../../json/shape.ts'
import { errors } from '../../lib/error.ts'
import { withMediaAside } from '../chat-parts.ts'
import { checkChat } from '../chat-rules.ts'
import { validator } from '../validate.ts'
import { historyOf, systemOf } from './history.ts'
import { jsonSchemaOf } from './json-schema.ts'
import { normalized } from './names.ts'
import { type GenerateRequest, type GenerationConfig, generateRequest } from './schema.ts'
import { toolsOf } from './tools.ts'

/** Checks a body against the schema; throws a 400 that names the field. */
export const validate = validator(generateRequest)

/** The decoded parts of a body. */
interface Decoded {
  readonly request: ChatRequest
  readonly showsThoughts: boolean
  /** The body in camelCase. */
  readonly body: GenerateRequest & Json
}

/** `values`: number of values in the body. Throws a 400 that names the invalid field, in camelCase. */
export function decode(body: unknown, model: string, stream: boolean, values: number): Decoded {
  const given = validate(normalized(body))
  refuseCached(given)
  const config = given.generationConfig ?? {}
  const messages = [...systemOf(given.systemInstruction), ...historyOf(given.contents, new Count(values))]
  if (!messages.some(({ role }) => role !== 'system')) {
    throw errors.invalidField('contents', 'must contain a part that is not empty')
  }
  const request: ChatRequest = { model, messages }
  Object.assign(request, toolsOf(given), samplingOf(config), formatOf(config), reasoningOf(config))
  const { imageConfig: image } = config
  if (image) {
    const { aspectRatio, imageSize } = image
    request.image_config = {
      ...(aspectRatio && { aspect_ratio: aspectRatio }),
      ...(imageSize && { image_size: imageSize }),
    }
  }
  const tier = given.serviceTier?.toLowerCase()
  if (tier === 'flex' || tier === 'priority') request.service_tier = tier
  else if (tier === 'standard') request.service_tier = 'default'
  if (stream) request.stream = true
  checkChat(request)
  request.messages = withMediaAside(request.messages)
  return { request, showsThoughts: config.thinkingConfig?.includeThoughts === true, body: given }
}

/** Content that only its provider has: dropping it would change the question. */
function refuseCached(given: GenerateRequest & { cachedContent?: unknown }): void {
  if (!given.cachedContent) return
  throw errors.unsupported('cachedContent: contents are not stored here; send them in "contents".', 'cachedContent')
}

function samplingOf(config: GenerationConfig): Partial<ChatRequest> {
  const { temperature, topP, topK, presencePenalty, frequencyPenalty, seed, candidateCount, maxOutputTokens } = config
  const stop = config.stopSequences?.filter(word => word !== '') ?? []
  const made: Partial<ChatRequest> = {}
  if (temperature != null) made.temperature = temperature
  if (topP != null) made.top_p = topP
  if (topK != null && topK >= 1) made.top_k = Math.floor(topK)
  if (presencePenalty != null) made.presence_penalty = presencePenalty
  if (frequencyPenalty != null) made.frequency_penalty = frequencyPenalty
  if (seed != null) made.seed = seed
  if (candidateCount != null && candidateCount > 1) made.n = candidateCount
  if (maxOutputTokens != null) made.max_tokens = maxOutputTokens
  if (stop.length > 0) made.stop = stop
  return made
}

/** Throws a 400 for an answer other than text, JSON or an image. */
function formatOf(config: GenerationConfig): Partial<ChatRequest> {
  const { responseMimeType: mime, responseSchema: schema, responseJsonSchema: jsonSchema, responseModalities } = config
  const wanted = responseModalities?.findIndex(name => !/^(?:TEXT|IMAGE|MODALITY_UNSPECIFIED)$/i.test(name)) ?? -1
  if (wanted >= 0) {
    const at = `generationConfig.responseModalities[${wanted}]`
    throw errors.unsupported(`${at}: must be "TEXT" or "IMAGE" here; /v1/audio/speech speaks.`, at)
  }
  if (mime && mime !== 'application/json' && mime !== 'text/plain') {
    const at = 'generationConfig.responseMimeType'
    throw errors.unsupported(`${at}: must be "text/plain" or "application/json"`, at)
  }
  const shape = jsonSchema ?? config._responseJsonSchema ?? (schema ? jsonSchemaOf(schema as Json) : undefined)
  if (shape && mime !== 'text/plain') {
    return { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: shape } } }
  }
  return mime === 'application/json' ? { response_format: { type: 'json_object' } } : {}
}

const EFFORTS: ReadonlySet<string> = new Set(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])

/** A budget of -1 leaves it to the model; 0 requests the minimum. No model is excluded by its thinking. */
function reasoningOf({ thinkingConfig: thinking }: GenerationConfig): Partial<ChatRequest> {
  const { thinkingBudget: budget, thinkingLevel: level } = thinking ?? {}
  const effort = level?.toLowerCase() ?? ''
  if (budget != null && budget > 0) return { reasoning: { max_tokens: budget }, lenient_reasoning: true }
  if (budget === 0) return { reasoning_effort: 'none', lenient_reasoning: true }
  if (!EFFORTS.has(effort)) return {}
  return { reasoning_effort: effort as ReasoningEffort, lenient_reasoning: true }
}
