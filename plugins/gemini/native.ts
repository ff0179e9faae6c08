/**
 * A client's own generateContent body, for a provider of the same wire: only necessary changes, so that no field is
 * lost (docs/contributing/wire-sources.md#gemini).
 */
import {
  type ChatRequest,
  errors,
  isObject,
  type Json,
  listIn,
  objectIn,
  type Target,
  textIn,
  turnOf,
  typeOfBase64,
  unseal,
  type WireRequest,
  wellFormed,
} from '../../src/plugin.ts'
import { mediaIn } from '../shared/addresses.ts'
import { dropUnpaid, fits, isPresent, paysItself } from '../shared/operator-pays.ts'
import { SAFETY_OFF, settingsOf } from './encode.ts'
import { combineTools, spell } from './native-tools.ts'
import type { Part } from './parts.ts'
import { markUnsigned, NATIVE_FIELDS } from './signatures.ts'
import type { Surface } from './surface.ts'
import { type GeminiTurn, isGemma, reminder } from './turns.ts'

/** Files that the provider holds, and those of its maker's own sites. */
const HELD = /^(?:gs:\/\/|files\/|https:\/\/(?:generativelanguage\.googleapis\.com|(?:www\.)?youtube\.com|youtu\.be)\/)/

const UNKNOWN = 'application/octet-stream'

/** Puts files in place of the addresses of a body (see `mediaIn`). */
export const withMedia = mediaIn({
  roots: ['contents', 'systemInstruction'],
  opaque: new Set(['args', 'response']),
  inlined(part, media) {
    const { fileData: named, ...rest } = part
    if (!isObject(named)) return undefined
    const file = media.get(textIn(named.fileUri) ?? '')
    if (!file) return undefined
    const { fileUri: _, ...kept } = named
    // Servers may not know the type that the client does.
    const declared = file.type === UNKNOWN ? (textIn(named.mimeType) ?? UNKNOWN) : file.type
    return { ...rest, inlineData: { ...kept, mimeType: typeOfBase64(file.base64, declared), data: file.base64 } }
  },
  isHeld: address => HELD.test(address),
})

/** Fields allowed on the operator's credentials: they cost tokens at most. */
const FIELDS: ReadonlySet<string> = new Set([
  'contents',
  'generationConfig',
  'labels',
  'safetySettings',
  'serviceTier',
  'systemInstruction',
  'toolConfig',
  'tools',
])
/** Fields of `generationConfig` that are passed on. Others would choose a model or change the price. */
const CONFIG: ReadonlySet<string> = new Set([
  'audioTimestamp',
  'candidateCount',
  'enableEnhancedCivicAnswers',
  'frequencyPenalty',
  'imageConfig',
  'logprobs',
  'maxOutputTokens',
  'mediaResolution',
  'presencePenalty',
  'responseJsonSchema',
  '_responseJsonSchema',
  'responseLogprobs',
  'responseMimeType',
  'responseModalities',
  'responseSchema',
  'seed',
  'stopSequences',
  'temperature',
  'thinkingConfig',
  'topK',
  'topP',
])
/** Fields of a part that are passed on. */
const PART: ReadonlySet<string> = new Set([
  ...['functionCall', 'functionResponse', 'fileData', 'inlineData', 'text', 'thought', 'thoughtSignature'],
  ...['mediaResolution', 'partMetadata', 'provider', 'type', 'videoMetadata'],
  ...NATIVE_FIELDS,
])
/** Images of a film in a second, for which money is held. */
const HELD_FPS = 1
/** Provider tools paid in tokens or searches; a manifest may allow more. */
const TOOLS = ['functionDeclarations', 'googleSearch', 'googleSearchRetrieval', 'codeExecution', 'urlContext']

/** Tuning fields by their canonical request field, which is absent when the mapping does not accept it. */
const TUNING = {
  temperature: 'temperature',
  topP: 'top_p',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
} as const

/** `body` has passed the endpoint's schema and is in camelCase. The result shares unchanged parts with it. */
export function native(
  body: Readonly<Json>,
  input: Readonly<ChatRequest>,
  target: Target,
  stream: boolean,
  surface: Surface,
): WireRequest {
  const { path, headers, generationConfig, extras = {} } = settingsOf(input, target, stream, surface)
  const sent: Json = Object.assign({}, body)
  delete sent.model
  // Only the gateway has it, for tags.
  delete sent.metadata
  if (!paysItself(target)) checkPaid(sent, target)
  sent.contents = contentsOf(body.contents, target, surface)
  if (typeof sent.systemInstruction === 'string') sent.systemInstruction = { parts: [{ text: sent.systemInstruction }] }
  if (isGemma(target)) moveSystem(sent)
  combineTools(sent, target, surface)
  spell(sent, input)
  sent.safetySettings = body.safetySettings ?? SAFETY_OFF
  const config = configOf(body.generationConfig, input, generationConfig)
  if (Object.keys(config).length > 0) sent.generationConfig = config
  for (const name of ['serviceTier', 'labels'] as const) {
    if (extras[name] !== undefined) sent[name] = extras[name]
    else if (name === 'serviceTier') delete sent[name]
  }
  const request: WireRequest = { path, body: wellFormed(sent) as Json }
  return headers ? Object.assign(request, { headers }) : request
}

/** Gemma models lack a system instruction: its texts stand before the first turn. Changes `sent`. */
function moveSystem(sent: Json): void {
  const parts = isObject(sent.systemInstruction) ? listIn(sent.systemInstruction.parts) : []
  const text = parts.flatMap(part => (isObject(part) ? (textIn(part.text) ?? []) : [])).join('\n\n')
  delete sent.systemInstruction
  const [first] = sent.contents as GeminiTurn[]
  if (text !== '') first?.parts.unshift({ text: `${text}\n\n` })
}

/**
 * Throws a 400 that names a field not allowed on the operator's credentials; a target with the caller's own key may
 * accept it.
 */
function checkPaid(sent: Json, target: Target): void {
  dropUnpaid(sent, FIELDS, target)
  const { model } = target.mapping
  const { nativeFields = [], nativeTools = [] } = target.provider
  const config = objectIn(sent.generationConfig)
  for (const [name, value] of Object.entries(config)) {
    const at = `generationConfig.${name}`
    if (CONFIG.has(name) || value == null || nativeFields.some(entry => fits(entry, at))) continue
    throw errors.ownKeyOnly(at)
  }
  // A model that is listed without images has no price for them.
  if (!model.output.includes('image') && listIn(config.responseModalities).some(isImage)) {
    throw errors.ownKeyOnly('generationConfig.responseModalities')
  }
  const allowed = [...TOOLS, ...nativeTools]
  for (const [i, tool] of listIn(sent.tools).entries()) {
    const names = isObject(tool) ? Object.keys(tool).filter(name => tool[name] != null) : []
    const denied = names.find(name => !allowed.some(entry => fits(entry, name)))
    if (denied !== undefined) throw errors.ownKeyOnly(`tools[${i}].${denied}`)
  }
  const { systemInstruction: system } = sent
  for (const [i, part] of (isObject(system) ? listIn(system.parts) : []).entries()) {
    // Money is held for their text alone.
    const isDenied = (name: string) =>
      name !== 'text' && !nativeFields.some(entry => fits(entry, `systemInstruction.parts.${name}`))
    const denied = isObject(part) ? Object.keys(part).find(name => isPresent(part[name]) && isDenied(name)) : undefined
    if (denied !== undefined) throw errors.ownKeyOnly(`systemInstruction.parts[${i}].${denied}`)
  }
  for (const [i, content] of listIn(sent.contents).entries()) {
    const parts = isObject(content) ? listIn(content.parts) : []
    for (const [j, part] of parts.entries()) {
      const denied = isObject(part) ? unpaidIn(part, nativeFields) : undefined
      if (denied !== undefined) throw errors.ownKeyOnly(`contents[${i}].parts[${j}].${denied}`)
    }
  }
}

/** The field of a part that may cost more than is held for it. A manifest allows it as `parts.NAME`. */
function unpaidIn(part: Json, allowed: readonly string[]): string | undefined {
  const { fps } = objectIn(part.videoMetadata)
  const names = Object.keys(part).filter(name => !PART.has(name) && isPresent(part[name]))
  // Google takes numbers as text, too.
  if (fps != null && !(Number(fps) <= HELD_FPS)) names.push('videoMetadata.fps')
  return names.find(name => !allowed.some(entry => fits(entry, `parts.${name}`)))
}

const isImage = (name: unknown): boolean => textIn(name)?.toUpperCase() === 'IMAGE'

/**
 * The parts as they came, with this provider's signatures, and calls without ids where the surface has none. Joins
 * consecutive turns of one role; turns without a role are the user's.
 */
function contentsOf(contents: unknown, target: Target, surface: Surface): GeminiTurn[] {
  const turns: GeminiTurn[] = []
  for (const content of listIn(contents)) {
    const { role: given, parts } = content as Json
    const role = given === 'model' ? 'model' : 'user'
    for (const part of listIn(parts).filter(isObject)) {
      const plain = surface.callIds ? part : withoutIds(part)
      // The wire has no later instructions.
      const said = given === 'system' && typeof plain.text === 'string' ? reminder(plain) : plain
      const own = role === 'model' ? ownPart(plain, target) : said
      if (own) turnOf<GeminiTurn>(turns, role, () => ({ role, parts: [] })).parts.push(own)
    }
  }
  for (const { role, parts } of turns) if (role === 'model') markUnsigned(parts, target)
  return turns
}

/** A part of the model with its signature unsealed; undefined for a part of another provider's tools. */
function ownPart(part: Json, target: Target): Part | undefined {
  const { thoughtSignature: sealed, provider, type, ...rest } = part
  const isNative = NATIVE_FIELDS.some(field => field in rest)
  // One without a provider was written by the client.
  if (isNative && provider !== undefined && provider !== target.provider.id) return undefined
  const signature = typeof sealed === 'string' ? unseal(target, sealed) : undefined
  if (signature === undefined && rest.thought === true) return undefined
  return signature === undefined ? rest : Object.assign(rest, { thoughtSignature: signature })
}

function withoutIds(part: Json): Json {
  const field = ['functionCall', 'functionResponse'].find(name => isObject(part[name]))
  if (field === undefined) return part
  const { id: _, ...rest } = part[field] as Json
  return Object.assign({}, part, { [field]: rest })
}

/** The generation config: the client's, within the limits of gateway and mapping. */
function configOf(given: unknown, input: Readonly<ChatRequest>, canonical: Readonly<Json>): Json {
  const config: Json = Object.assign({}, given)
  for (const [name, field] of Object.entries(TUNING)) if (input[field as 'temperature'] == null) delete config[name]
  if (canonical.candidateCount === undefined && config.candidateCount !== 1) delete config.candidateCount
  const { maxOutputTokens: limit, thinkingConfig: thinking, responseModalities: modalities } = canonical
  if (limit !== undefined && !(Number(config.maxOutputTokens ?? undefined) <= Number(limit)))
    config.maxOutputTokens = limit
  if (modalities !== undefined) config.responseModalities ??= modalities
  if (isObject(config.thinkingConfig)) setThinking(config, config.thinkingConfig, thinking)
  return config
}

/** Sets the thinking in this model's form; the client decides whether thoughts are shown. */
function setThinking(config: Json, { includeThoughts, thinkingBudget }: Json, canonical: unknown): void {
  if (!isObject(canonical)) delete config.thinkingConfig
  else if (thinkingBudget !== -1) {
    const { includeThoughts: _, ...much } = canonical
    config.thinkingConfig = includeThoughts === undefined ? much : Object.assign(much, { includeThoughts })
  }
}
