/** Models and offers of our catalogue, from deployments. */
import { readdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { PACKAGE } from '../../config/locate.ts'
import { chat } from '../../operations/chat/index.ts'
import { OPENAI_WIRES, readPackaged, THINKS, type Upstream } from './providers.ts'
import { listOf, type Section, sectionOf, textOf } from './sections.ts'

/** A deployment as it was understood. */
export interface Deployment {
  readonly upstream: Upstream
  readonly params: Section
  readonly info: Section
  /** Its key, such as `model_list[0]`. */
  readonly at: string
}

/** Operations by `mode`, with modalities. */
const MODES: Readonly<
  Record<string, { operations: readonly string[]; input: readonly string[]; output: readonly string[] }>
> = {
  chat: { operations: ['chat'], input: ['text', 'image'], output: ['text'] },
  embedding: { operations: ['embeddings'], input: ['text'], output: ['embedding'] },
  image_generation: { operations: ['images'], input: ['text'], output: ['image'] },
  image_edit: { operations: ['image_edits'], input: ['text', 'image'], output: ['image'] },
  audio_transcription: { operations: ['transcriptions'], input: ['audio'], output: ['text'] },
  audio_speech: { operations: ['speech'], input: ['text'], output: ['audio'] },
  rerank: { operations: ['rerank'], input: ['text'], output: ['rerank'] },
  moderation: { operations: ['moderations'], input: ['text'], output: ['moderation'] },
  video_generation: { operations: ['videos'], input: ['text'], output: ['video'] },
  realtime: { operations: ['realtime'], input: ['text', 'audio'], output: ['text', 'audio'] },
  ocr: { operations: ['ocr'], input: ['file', 'image'], output: ['text'] },
}

/** Modes by what names of models hold, for deployments without a mode. The first that fits counts. */
const LOOKS: readonly (readonly [RegExp, string])[] = [
  [/rerank/i, 'rerank'],
  [/embed|(?:^|[/-])(?:bge|e5|gte|minilm)-|voyage-\d/i, 'embedding'],
  [/whisper|transcribe|(?:^|\/)(?:nova-[23]|scribe)/i, 'audio_transcription'],
  [/(?:^|[/-])tts(?:-|$)|aura-|speech|eleven_/i, 'audio_speech'],
  [/dall-e|gpt-image|imagen|stable-diffusion|sdxl|flux|stable-image|-image-generator/i, 'image_generation'],
  [/moderation/i, 'moderation'],
  [/realtime/i, 'realtime'],
  [/(?:^|\/)(?:sora|veo)-/i, 'video_generation'],
]

export const modeOf = ({ upstream, info }: Pick<Deployment, 'upstream' | 'info'>): string => {
  const written = textOf(info.mode)
  if (written !== undefined) return Object.hasOwn(MODES, written) ? written : 'chat'
  const base = textOf(info.base_model) ?? upstream.base ?? upstream.model
  return LOOKS.find(([look]) => look.test(base))?.[1] ?? 'chat'
}

const CAPABILITIES: Readonly<Record<string, readonly string[]>> = {
  supports_function_calling: ['tools'],
  supports_parallel_function_calling: ['parallel_tool_calls'],
  supports_vision: ['vision'],
  supports_reasoning: ['reasoning'],
  supports_response_schema: ['json_output', 'structured_outputs'],
  supports_prompt_caching: ['prompt_cache'],
  supports_audio_input: ['audio_input'],
  supports_pdf_input: ['file_input'],
  supports_web_search: ['web_search'],
}
/** Keys of `model_info` that say what a model can. */
export const isCapability = (key: string): boolean => Object.hasOwn(CAPABILITIES, key)

/** Fields of chat requests that an offer takes unless it lists others. */
const TUNING = [...new Set(Object.values(chat.tuning))]

/** The offer of a deployment, without its model. */
export function mappingOf(deployment: Deployment): Section {
  const { upstream, params, info } = deployment
  const packaged = packagedMapping(deployment)
  const supports = new Set((packaged?.supports as string[] | undefined) ?? supportsOf(deployment))
  for (const [key, names] of Object.entries(CAPABILITIES)) {
    for (const name of names) {
      if (info[key] === true) supports.add(name)
      else if (info[key] === false) supports.delete(name)
    }
  }
  const { deactivated_at, pricing, ...offer } = packaged ?? unknownMapping(deployment)
  const isPriced = pricing !== undefined && !(upstream.base ?? upstream.model).startsWith('global.')
  const price = isPriced ? { pricing } : { unpriced: 'allow' }
  const wires = takesResponses(deployment) && { wires: { ...sectionOf(offer.wires), chat: 'openai.responses' } }
  const asked = modeOf(deployment) === 'chat' ? listOf(params.additional_drop_params) : []
  const dropped = TUNING.filter(one => asked.includes(one))
  // A request with this field is taken where the model can reason, or where the field is left out.
  if (dropped.includes('reasoning_effort')) supports.add('reasoning')
  const taken = ((offer.parameters ?? TUNING) as string[]).filter(one => !dropped.includes(one))
  const marks = listOf(params.cache_control_injection_points).length > 0 && { cache: 'auto' }
  const own = {
    ...wires,
    ...(dropped.length > 0 && { parameters: taken }),
    supports: [...supports],
    id: upstream.model,
  }
  return { ...offer, ...price, ...own, ...marks, ...priceOf(deployment) }
}

/** Whether LiteLLM asks a deployment for chats by the Responses API. */
const takesResponses = ({ upstream, params, info }: Deployment): boolean =>
  /^(?:azure|openai)$/.test(upstream.provider) &&
  (info.mode === 'responses' ||
    /^\w+\/responses\//.test(String(params.model)) ||
    /codex|deep-research|^(?:o\d|gpt-[\d.]+)-pro/.test(baseOf({ upstream, info })))

/** Returns the note about a model whose price is not known, or about a pattern of such models. */
export function unpricedNote(deployment: Deployment): string | undefined {
  if (!mappingOf(deployment).unpriced) return undefined
  return deployment.upstream.model.includes('*')
    ? 'models that the manifest does not list have no price; write pricing below open'
    : 'no price is known, so no limit on money counts it; write pricing of the offer in the manifest'
}

/** The model of a deployment, without its id. */
export async function modelOf(deployment: Deployment): Promise<Section> {
  const packaged = packagedMapping(deployment)
  const known = packaged && (await packagedModel(String(packaged.model)))
  const { operations, input, output } = MODES[modeOf(deployment)]!
  return { ...(known ?? { family: 'imported', operations, input, output }), ...sizeOf(deployment.info) }
}

/** Beginnings of the ids of profiles at Bedrock, which lead to a model in several regions. */
const AREA = /^(?:us|us-gov|eu|apac|jp|au|ca|global)\.(?=[a-z\d]+\.)/

/** The model as catalogues name it, where a deployment or a profile has a name of its own. */
const baseOf = ({ upstream, info }: Pick<Deployment, 'upstream' | 'info'>): string =>
  (textOf(info.base_model)?.replace(/^.*\//, '') ?? upstream.base ?? upstream.model).replace(AREA, '')

function packagedMapping(deployment: Deployment): Section | undefined {
  const { manifest, model } = deployment.upstream
  if (!Array.isArray(manifest.models)) return undefined
  const isCalled = (name: string | undefined) => (one: Section) => (one.id ?? one.model) === name
  const models = manifest.models as readonly Section[]
  return models.find(isCalled(model)) ?? models.find(isCalled(baseOf(deployment)))
}

const supportsOf = (deployment: Deployment): readonly string[] => {
  const mode = modeOf(deployment)
  const { manifest, provider } = deployment.upstream
  const open = sectionOf(manifest.open).supports as readonly string[] | undefined
  const reasons = provider === 'openrouter' ? ['reasoning'] : []
  if (mode === 'chat') return open ?? ['streaming', 'tools', 'vision', ...reasons, 'json_output', 'structured_outputs']
  if (mode === 'realtime') return ['realtime']
  return mode.startsWith('audio_') ? ['streaming'] : []
}

/** Wires of models at Vertex AI that have methods of their own, by what their names hold. */
const VERTEX_WIRES: readonly (readonly [RegExp, operation: string, wire: string])[] = [
  [/imagen/, 'images', 'vertex.imagen'],
  [/gemini-embedding-[2-9]/, 'embeddings', 'gemini.vertex-embed-content'],
  [/embed/, 'embeddings', 'gemini.vertex-embeddings'],
]

function unknownMapping(deployment: Deployment): Section {
  const { upstream } = deployment
  const { open, wires } = upstream.manifest
  const { supports, ...rest } = sectionOf(open)
  const wiresOf = sectionOf(wires)
  const isOpenai = String(wiresOf.chat).startsWith('openai.')
  const [operation = 'chat'] = MODES[modeOf(deployment)]!.operations
  const own: Record<string, string> = {}
  const base = baseOf(deployment)
  if (operation === 'chat' && wiresOf.chat === 'openai.responses' && !THINKS.test(base)) own.chat = 'openai.chat'
  if (operation !== 'chat' && isOpenai && wiresOf[operation] === undefined) own[operation] = OPENAI_WIRES[operation]!
  const ofVertex = upstream.provider === 'google-vertex' ? VERTEX_WIRES.find(([look]) => look.test(base)) : undefined
  if (ofVertex?.[1] === operation) own[operation] = ofVertex[2]
  return { ...(modeOf(deployment) === 'chat' && rest), ...(Object.keys(own).length > 0 && { wires: own }) }
}

/** Whether the wires of its provider serve a deployment. */
export function isServed(deployment: Deployment): boolean {
  const wires = sectionOf(deployment.upstream.manifest.wires)
  const { provider, model } = deployment.upstream
  if (provider === 'google-ai-studio' && model.startsWith('imagen')) return false
  const mapping = mappingOf(deployment)
  const all = { ...wires, ...sectionOf(mapping.wires) }
  return MODES[modeOf(deployment)]!.operations.some(operation => all[operation] !== undefined)
}

function sizeOf({ max_input_tokens, max_tokens, max_output_tokens = max_tokens }: Section): Section {
  const isSize = (value: unknown) => Number.isSafeInteger(value) && Number(value) > 0
  return {
    ...(isSize(max_input_tokens) && { context_length: max_input_tokens }),
    ...(isSize(max_output_tokens) && { max_output: max_output_tokens }),
  }
}

/** Our prices by costs of LiteLLM, with the factor between both. */
export const PRICES: Readonly<Record<string, readonly [price: string, factor: number]>> = {
  input_cost_per_token: ['prompt', 1e6],
  output_cost_per_token: ['completion', 1e6],
  cache_read_input_token_cost: ['input_cache_read', 1e6],
  cache_creation_input_token_cost: ['input_cache_write', 1e6],
  cache_creation_input_token_cost_above_1hr: ['input_cache_write_1h', 1e6],
  input_cost_per_audio_token: ['input_audio', 1e6],
  output_cost_per_audio_token: ['output_audio', 1e6],
  output_cost_per_reasoning_token: ['internal_reasoning', 1e6],
  output_cost_per_image: ['per_image', 1],
  ocr_cost_per_page: ['ocr_page', 1],
  input_cost_per_query: ['request', 1],
  input_cost_per_second: ['input_audio_hour', 3600],
}

/** Prices that a mode needs; another mode has none. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  chat: ['prompt', 'completion'],
  embedding: ['prompt'],
  image_generation: ['per_image'],
  image_edit: ['per_image'],
  audio_transcription: ['input_audio_hour'],
  rerank: ['request'],
  ocr: ['ocr_page'],
}

/** The prices of an offer; nothing where one that its mode needs is not given. */
export function priceOf(deployment: Pick<Deployment, 'upstream' | 'params' | 'info'>): Section {
  const { params, info } = deployment
  const pricing: Record<string, unknown> = {}
  const needed = NEEDED[modeOf(deployment)] ?? []
  for (const [key, [price, factor]] of Object.entries(PRICES)) {
    const cost = params[key] ?? info[key]
    if (isCost(cost) && (needed.length > 1 || needed.includes(price))) {
      const amount = priceIn(cost, factor)
      pricing[price] = price === 'per_image' ? { default: amount } : amount
    }
  }
  const isWhole = needed.length > 0 && needed.every(price => price in pricing)
  return isWhole ? { unpriced: undefined, pricing_tiers: undefined, pricing } : {}
}

const isCost = (value: unknown): value is number | string =>
  (typeof value === 'number' || typeof value === 'string') && value !== '' && Number(value) >= 0 && Number(value) < 100

const priceIn = (cost: number | string, factor: number): string => String(Number((Number(cost) * factor).toFixed(9)))

/** A packaged model without its id, name, aliases and end: its provider says what has ended. */
export async function packagedModel(wanted: string): Promise<Section | undefined> {
  for (const file of await readdir(resolve(PACKAGE, 'config/models.d'))) {
    const { models } = (await readPackaged(`config/models.d/${file}`)) ?? {}
    const found = Array.isArray(models) && (models as readonly Section[]).find(model => model.id === wanted)
    if (found) {
      const { aliases, id, name, deactivated_at, ...model } = found
      return model
    }
  }
  return undefined
}
