/**
 * A client's own generateContent body, for a provider of the same wire: only what must change is changed, so that nothing
 * of it is lost (docs/wire-sources.md#gemini).
 */
import {
  type ChatRequest,
  errors,
  isObject,
  type Json,
  listIn,
  type Target,
  textIn,
  turnOf,
  unseal,
  type WireRequest,
  wellFormed,
} from '../../src/plugin.ts'
import { fits, paysItself, saysAnything } from '../shared/operator-pays.ts'
import { encode } from './encode.ts'
import type { Part } from './parts.ts'
import { markUnsigned, NATIVE_FIELDS } from './signatures.ts'
import type { Surface } from './surface.ts'
import { toWireName } from './tool-name.ts'
import { type GeminiTurn, isGemma } from './turns.ts'

/** Fields of the body that cost nothing but tokens, on the operator's credentials. */
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
/** Tools that run at the provider for tokens, or for searches; a manifest may allow more. */
const TOOLS = ['functionDeclarations', 'googleSearch', 'googleSearchRetrieval', 'codeExecution', 'urlContext']

/** What only tunes an answer, by the field of the canonical request: that one is left out where a mapping does not take it. */
const TUNING = {
  temperature: 'temperature',
  topP: 'top_p',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
} as const

/** `body` has passed the endpoint's schema, and is in camelCase. Shares with it what does not change. */
export function native(
  body: Readonly<Json>,
  input: Readonly<ChatRequest>,
  target: Target,
  stream: boolean,
  surface: Surface,
): WireRequest {
  const bridged = encode(input, target, stream, surface)
  // Those models lack a system instruction; names that the wire cannot spell are read back from their spelling.
  if (isGemma(target) || !isSpelt(input)) return bridged
  const sent: Json = Object.assign({}, body)
  delete sent.model
  if (!paysItself(target)) checkPaid(sent, target)
  sent.contents = isPlain(body.contents, surface) ? contentsOf(body.contents, target, surface) : bridged.body.contents
  // Beside functions a search needs a setting, or is left out, by the generation of the model.
  if (isObject(bridged.body.toolConfig) && searches(body)) {
    sent.tools = bridged.body.tools
    sent.toolConfig = bridged.body.toolConfig
  }
  if (typeof body.systemInstruction === 'string') sent.systemInstruction = bridged.body.systemInstruction
  sent.safetySettings = body.safetySettings ?? bridged.body.safetySettings
  const config = configOf(body.generationConfig, input, bridged.body.generationConfig)
  if (Object.keys(config).length > 0) sent.generationConfig = config
  for (const name of ['serviceTier', 'labels'] as const) {
    if (bridged.body[name] !== undefined) sent[name] = bridged.body[name]
    else if (name === 'serviceTier') delete sent[name]
  }
  return Object.assign({}, bridged, { body: wellFormed(sent) as Json })
}

const isSpelt = ({ tools, messages }: Readonly<ChatRequest>): boolean =>
  (tools ?? []).every(tool => tool.type !== 'function' || toWireName(tool.function.name) === tool.function.name) &&
  messages.every(({ tool_calls: calls }) =>
    (calls ?? []).every(call => call.type !== 'function' || toWireName(call.function.name) === call.function.name),
  )

const searches = ({ tools }: Readonly<Json>): boolean =>
  listIn(tools).some(tool => isObject(tool) && (isObject(tool.googleSearch) || isObject(tool.googleSearchRetrieval)))

/** Throws a 400 that names what the operator's credentials do not pay for; a target with the caller's own key may. */
function checkPaid(sent: Json, { provider: { nativeFields = [], nativeTools = [] } }: Target): void {
  for (const [name, value] of Object.entries(sent)) {
    if (FIELDS.has(name) || nativeFields.some(entry => fits(entry, name))) continue
    if (saysAnything(value)) throw errors.ownKeyOnly(name)
    delete sent[name]
  }
  const allowed = [...TOOLS, ...nativeTools]
  for (const [i, tool] of listIn(sent.tools).entries()) {
    const names = isObject(tool) ? Object.keys(tool).filter(name => tool[name] != null) : []
    const denied = names.find(name => !allowed.some(entry => fits(entry, name)))
    if (denied !== undefined) throw errors.ownKeyOnly(`tools[${i}].${denied}`)
  }
}

/** Whether the turns can go as they came: files at any address were fetched for the canonical request alone. */
function isPlain(contents: unknown, surface: Surface): boolean {
  const isHeld = (part: unknown) => {
    const uri = isObject(part) && isObject(part.fileData) ? textIn(part.fileData.fileUri) : undefined
    return uri === undefined || !surface.callIds || !/^https?:/i.test(uri) || HELD.test(uri)
  }
  return listIn(contents).every(
    content => isObject(content) && content.role !== 'system' && listIn(content.parts).every(isHeld),
  )
}
const HELD = /^https:\/\/(?:generativelanguage\.googleapis\.com\/|(?:www\.)?youtu)/i

/**
 * The parts as they came, with the signatures that are this provider's, and calls without ids where it has none. Turns
 * of one role are one, and those without a role the user's.
 */
function contentsOf(contents: unknown, target: Target, surface: Surface): GeminiTurn[] {
  const turns: GeminiTurn[] = []
  for (const content of listIn(contents)) {
    const { role: given, parts } = content as Json
    const role = given === 'model' ? 'model' : 'user'
    for (const part of listIn(parts).filter(isObject)) {
      const plain = surface.callIds ? part : withoutIds(part)
      const own = role === 'model' ? ownPart(plain, target) : plain
      if (own) turnOf<GeminiTurn>(turns, role, () => ({ role, parts: [] })).parts.push(own)
    }
  }
  for (const { role, parts } of turns) if (role === 'model') markUnsigned(parts, target)
  return turns
}

/** A part of the model's with its signature opened; undefined for what another provider made. */
function ownPart(part: Json, target: Target): Part | undefined {
  const { thoughtSignature: sealed, provider, type, ...rest } = part
  const isNative = NATIVE_FIELDS.some(field => field in rest)
  if (isNative && provider !== target.provider.id) return undefined
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

/** How the answer is made: as the client says, within what the gateway and the mapping allow. */
function configOf(given: unknown, input: Readonly<ChatRequest>, bridged: unknown): Json {
  const config: Json = Object.assign({}, given)
  const canonical = (isObject(bridged) ? bridged : {}) as Json
  for (const [name, field] of Object.entries(TUNING)) if (input[field as 'temperature'] == null) delete config[name]
  if (canonical.candidateCount === undefined) delete config.candidateCount
  const { maxOutputTokens: limit, thinkingConfig: thinking, responseModalities: modalities } = canonical
  if (limit !== undefined && !(Number(config.maxOutputTokens) <= Number(limit))) config.maxOutputTokens = limit
  if (modalities !== undefined) config.responseModalities ??= modalities
  if (isObject(config.thinkingConfig)) setThinking(config, config.thinkingConfig, thinking)
  return config
}

/** How much to think as this model can be told it; whether thoughts are shown, as the client says. */
function setThinking(config: Json, { includeThoughts, thinkingBudget }: Json, canonical: unknown): void {
  if (!isObject(canonical)) delete config.thinkingConfig
  else if (thinkingBudget !== -1) {
    const { includeThoughts: _, ...much } = canonical
    config.thinkingConfig = includeThoughts === undefined ? much : Object.assign(much, { includeThoughts })
  }
}
