/** A chat request as a generateContent request (docs/contributing/wire-sources.md#gemini). */
import {
  type ChatRequest,
  errors,
  type Json,
  type Mapping,
  pathSegment,
  type Target,
  type WireRequest,
  wellFormed,
} from '../../src/plugin.ts'
import { formatInstruction } from '../shared/any-json.ts'
import type { Surface } from './surface.ts'
import { takesLevels, thinkingOf } from './thinking.ts'
import { toolsOf } from './tools.ts'
import { historyOf, isGemma } from './turns.ts'

/** Stop sequences of one request. */
export const MAX_STOPS = 5
/** Maximum number of candidates of any model. */
const MAX_CANDIDATES = 8

/** Safety filters are the caller's choice, not the gateway's. */
export const SAFETY_OFF: readonly Json[] = Object.freeze(
  ['HARASSMENT', 'HATE_SPEECH', 'SEXUALLY_EXPLICIT', 'DANGEROUS_CONTENT'].map(name =>
    Object.freeze({ category: `HARM_CATEGORY_${name}`, threshold: 'OFF' }),
  ),
)

/**
 * Equal requests give equal bytes, and parts that the provider caches (system, tools, contents) come first, so that a
 * longer conversation begins with the bytes of the shorter one. Throws 400 for more candidates than the wire supports,
 * in total or streamed.
 */
export function encode(request: Readonly<ChatRequest>, target: Target, stream: boolean, surface: Surface): WireRequest {
  const { system, contents } = historyOf(request.messages, target, surface.callIds)
  const { tools, toolConfig } = toolsOf(request, target.mapping, surface)
  const { path, headers, generationConfig, extras, instruction } = settingsOf(request, target, stream, surface)
  if (instruction && isGemma(target)) contents[0]!.parts.unshift({ text: `${instruction}\n\n` })
  else if (instruction) system.push({ text: instruction })
  const body: Json = {
    ...(system.length > 0 && { systemInstruction: { parts: system } }),
    ...(tools && { tools }),
    contents,
    ...(toolConfig && { toolConfig }),
    safetySettings: SAFETY_OFF,
    ...(Object.keys(generationConfig).length > 0 && { generationConfig }),
    ...extras,
  }
  return { path, body: wellFormed(body) as Json, ...(headers && { headers }) }
}

/** All of a request but its prompt and its tools. */
interface Settings {
  readonly path: string
  readonly headers: Record<string, string> | undefined
  readonly generationConfig: Json
  /** Fields of the surface's own. */
  readonly extras: Json | undefined
  /** Stands for an answer format that the model does not take. */
  readonly instruction: string | undefined
}

/** Throws the same as `encode`, for the settings alone. */
export function settingsOf(
  request: Readonly<ChatRequest>,
  { mapping }: Target,
  stream: boolean,
  surface: Surface,
): Settings {
  // Models before the third generation accept no answer format beside tools: an instruction replaces it.
  const isFormatless = !takesLevels(mapping) && toolsOf(request, mapping, surface).tools !== undefined
  const instruction = isFormatless ? formatInstruction(request) : undefined
  const generationConfig = { ...samplingOf(request, stream), ...outputOf(request, mapping, instruction === undefined) }
  const { body: extras, headers } = surface.extras(request)
  const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
  const path = `${surface.models}/${pathSegment(mapping.externalId)}:${method}`
  return { path, headers, generationConfig, extras, instruction }
}

function samplingOf(request: Readonly<ChatRequest>, stream: boolean): Json {
  const { stop, seed, top_k: topK } = request
  const { temperature, top_p: topP, presence_penalty: presence, frequency_penalty: frequency } = request
  const maxTokens = request.max_completion_tokens ?? request.max_tokens
  const candidates = candidatesOf(request.n ?? 1, stream)
  return {
    ...(temperature != null && { temperature }),
    ...(topP != null && { topP }),
    ...(topK !== undefined && { topK }),
    ...(stop && { stopSequences: stop.slice(0, MAX_STOPS) }),
    ...(seed !== undefined && { seed }),
    ...(maxTokens != null && { maxOutputTokens: maxTokens }),
    ...(candidates > 1 && { candidateCount: candidates }),
    ...(presence != null && { presencePenalty: presence }),
    ...(frequency != null && { frequencyPenalty: frequency }),
  }
}

function candidatesOf(n: number, stream: boolean): number {
  if (n > MAX_CANDIDATES) {
    throw errors.unsupported(`This provider returns at most ${MAX_CANDIDATES} choices per request, got ${n}.`, 'n')
  }
  if (n > 1 && stream) {
    throw errors.combination('This provider streams one choice only; leave out n, or stream.', 'n')
  }
  return n
}

/** The answer format, and the thinking before it. */
function outputOf(request: Readonly<ChatRequest>, mapping: Mapping, formats: boolean): Json {
  const { response_format: format, image_config: image } = request
  const { output } = mapping.model
  const draws = output.includes('image')
  const thinkingConfig = thinkingOf(request, mapping)
  const imageConfig = {
    ...(image?.aspect_ratio && { aspectRatio: image.aspect_ratio }),
    ...(image?.image_size && { imageSize: image.image_size }),
  }
  return {
    ...(formats && format && format.type !== 'text' && { responseMimeType: 'application/json' }),
    ...(formats && format?.type === 'json_schema' && { responseJsonSchema: format.json_schema.schema }),
    ...(draws && { responseModalities: output.includes('text') ? ['TEXT', 'IMAGE'] : ['IMAGE'] }),
    ...(draws && Object.keys(imageConfig).length > 0 && { imageConfig }),
    ...(thinkingConfig && { thinkingConfig }),
  }
}
