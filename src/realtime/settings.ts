/** Settings of a session, and the changes that a client may make. */
import type { Catalog } from '../core/catalog.ts'
import { namesOf } from '../core/offer.ts'
import type { Mapping, Provider, Target } from '../core/translator.ts'
import { estimateTokens, textSize } from '../core/usage.ts'
import type { RealtimeForm } from '../core/wire.ts'
import { isObject, type Json, listIn, objectIn } from '../json/json.ts'
import { bytesPerSecond } from './conversation.ts'
import { EventError } from './events.ts'

/** Settings of one session that the gateway reads. Replaced as a whole, so that a refused change can be undone. */
export interface Settings {
  /** Committed speech is answered without a `response.create` of the client. */
  readonly createsResponses: boolean
  /** Tokens of a response; undefined for any number. */
  readonly maxOutput: number | undefined
  readonly hasAudio: boolean
  readonly inputRate: number
  readonly outputRate: number
  /** The model that transcribes the audio of the client. */
  readonly transcription: Mapping | undefined
  /** The model that has transcribed last, also where that is off now: it stays the one of the session. */
  readonly transcriber: Mapping | undefined
  /** Tokens of the text that it reads with each item. */
  readonly transcriptionPrompt: number
}

/** Facts that the settings of a session are checked against. */
export interface SettingsContext {
  readonly target: Target
  readonly catalog: Catalog
  /** The model of the session, as its client names it. */
  readonly requested: string
  /** Names that a model beside the session's stands for. Throws an EventError for one that rules deny. */
  readonly meant: (name: string) => readonly string[]
  readonly form: RealtimeForm
  readonly transcribes: boolean
  /** A client secret has set them. */
  readonly hasInstructions: boolean
  /** Whether rules, the credential and the day allow a model beside the session's. */
  readonly isAllowed: (mapping: Mapping) => boolean
}

/** The mapping by which a provider transcribes, by any name of the first model that it has. */
export const transcriptionAt = (catalog: Catalog, names: readonly string[], provider: Provider): Mapping | undefined =>
  names.flatMap(name => transcriptionOffer(catalog, name, provider) ?? [])[0]

function transcriptionOffer(catalog: Catalog, name: string, provider: Provider): Mapping | undefined {
  const model = catalog.models.get(name) ?? catalog.aliases.get(name)
  const bare = name.startsWith(`${provider.id}/`) ? name.slice(provider.id.length + 1) : undefined
  const own = model ?? (bare === undefined ? undefined : catalog.models.get(bare))
  return own?.mappings.find(
    mapping => mapping.provider === provider && (mapping.wires.has('transcriptions') || mapping.wires.has('realtime')),
  )
}

/** True where all tools are functions, which clients run themselves. */
export const isFunctions = (tools: unknown): boolean =>
  listIn(tools).every(tool => isObject(tool) && tool.type === 'function')

/** Reads the settings from the provider's first event of a session. */
function settingsOf(session: Readonly<Json>): Settings {
  const { input, output } = audioOf(session)
  const detection = input.turn_detection
  return {
    createsResponses: detection !== null && !(isObject(detection) && detection.create_response === false),
    maxOutput: tokensOf(session.max_output_tokens),
    hasAudio: hasAudioOf(session) ?? true,
    inputRate: bytesPerSecond(input.format),
    outputRate: bytesPerSecond(output.format),
    transcription: undefined,
    transcriber: undefined,
    transcriptionPrompt: 0,
  }
}

/** The gateway's own first change: what a client secret has set, and no answers but those that are asked for. */
export function firstUpdate(
  created: Readonly<Json>,
  fixed: Readonly<Json> | undefined,
  context: SettingsContext,
): { session: Json; settings: Settings } {
  const wanted = fixed ? structuredClone(fixed) : {}
  const before = settingsOf(created)
  const { session, change } = changed({ ...wanted, type: context.transcribes ? 'transcription' : 'realtime' }, before, {
    ...context,
    hasInstructions: false,
  })
  delete session.model
  const { input } = audioOf(session)
  if (input.turn_detection === undefined) {
    const given = audioOf(created).input.turn_detection
    const detection = given === null ? null : withoutAnswers(isObject(given) ? given : { type: 'server_vad' }, context)
    session.audio = {
      ...objectIn(session.audio),
      input: { ...input, turn_detection: detection },
    }
  }
  return { session, settings: { ...before, ...change } }
}

/** Transcription sessions have no answers to turn off. */
const withoutAnswers = (detection: Readonly<Json>, { transcribes }: SettingsContext): Json =>
  transcribes ? { ...detection } : { ...detection, create_response: false }

/** The change as its provider gets it, and what of the settings it changes. Throws an EventError. */
export function changed(
  wanted: Readonly<Json>,
  before: Settings,
  context: SettingsContext,
): { session: Json; change: Partial<Settings> } {
  checkSettings(wanted, context, 'session')
  const session: Json = { ...wanted }
  if (wanted.model !== undefined) session.model = context.target.mapping.externalId
  // OpenAI's agents ask for traces by default: they get none, as `session.updated` says.
  if (wanted.tracing != null) session.tracing = null
  const change: Change = {}
  const { input, output } = audioOf(wanted)
  const audio = { input: changedInput(input, before, context, change), output: changedOutput(output, context) }
  if (isObject(wanted.audio)) {
    session.audio = {
      ...wanted.audio,
      ...(isObject(wanted.audio.input) && { input: audio.input }),
      ...(isObject(wanted.audio.output) && { output: audio.output }),
    }
  }
  if ('max_output_tokens' in wanted) change.maxOutput = tokensOf(wanted.max_output_tokens)
  const hasAudio = hasAudioOf(wanted)
  if (hasAudio !== undefined) change.hasAudio = hasAudio
  if (input.format !== undefined) change.inputRate = bytesPerSecond(input.format)
  if (output.format !== undefined) change.outputRate = bytesPerSecond(output.format)
  return { session, change }
}

type Change = { -readonly [Name in keyof Settings]?: Settings[Name] }

/** The client's audio as its provider gets it. Adds to `change` what it says of answers and of transcripts. */
function changedInput(wanted: Readonly<Json>, before: Settings, context: SettingsContext, change: Change): Json {
  const input: Json = { ...wanted }
  const { turn_detection: detection, transcription } = wanted
  if (detection === null) change.createsResponses = false
  else if (isObject(detection)) {
    if (detection.idle_timeout_ms != null) {
      const path = 'session.audio.input.turn_detection.idle_timeout_ms'
      throw new EventError('unsupported_parameter', 'Answers to silence are not supported: leave it out.', path)
    }
    change.createsResponses = detection.create_response !== false
    input.turn_detection = withoutAnswers(detection, context)
  }
  if (transcription === null) change.transcription = undefined
  else if (isObject(transcription)) {
    const { prompt } = transcription
    change.transcription = transcriptionOf(transcription, before.transcriber, context)
    change.transcriber = change.transcription
    if (prompt !== undefined)
      change.transcriptionPrompt = typeof prompt === 'string' ? estimateTokens(textSize(prompt)) : 0
    input.transcription = { ...transcription, model: change.transcription.externalId }
  }
  return input
}

/** The audio of answers, with the voice as its provider calls it. */
function changedOutput(wanted: Readonly<Json>, { target }: SettingsContext): Json {
  const { voice } = wanted
  const { voices } = target.mapping
  if (typeof voice !== 'string' || !voices) return wanted
  return { ...wanted, voice: voices[voice] ?? (Object.hasOwn(voices, '*') ? voice : noVoice(voice)) }
}

/** Throws an EventError for settings, of a session or of one response, that a client may not choose. */
export function checkSettings(wanted: Readonly<Json>, context: SettingsContext, at: string): void {
  const { target, form, hasInstructions } = context
  const { mapping, credential } = target
  if (credential?.source !== 'byok') {
    const unknown = Object.keys(wanted).find(name => !form.settings.has(name))
    if (unknown !== undefined) {
      const message = `${at}.${unknown.slice(0, 64)} is not available with the gateway's credentials.`
      throw new EventError('unsupported_parameter', message, `${at}.${unknown.slice(0, 64)}`)
    }
  }
  if (wanted.model !== undefined && wanted.model !== context.requested && !isNameOf(wanted.model, mapping)) {
    const message = `The model of the session is "${mapping.model.id}", and stays that.`
    throw new EventError('model_locked', message, `${at}.model`)
  }
  if (hasInstructions && wanted.instructions !== undefined) {
    const message = 'The client secret has set the instructions: they cannot be changed.'
    throw new EventError('instructions_locked', message, `${at}.instructions`)
  }
  if (wanted.tools != null && !isFunctions(wanted.tools)) {
    throw new EventError('tool_type_not_supported', 'Tools must be of the type "function".', `${at}.tools`)
  }
  if (wanted.prompt != null) {
    throw new EventError('prompt_not_supported', 'Stored prompts are not supported: send instructions.', `${at}.prompt`)
  }
  if (wanted.tracing != null && at === 'response') {
    throw new EventError('unsupported_parameter', 'Traces are not supported: leave it out.', `${at}.tracing`)
  }
}

function transcriptionOf(wanted: Readonly<Json>, before: Mapping | undefined, context: SettingsContext): Mapping {
  const path = 'session.audio.input.transcription.model'
  const { model } = wanted
  if (typeof model !== 'string') {
    throw new EventError('transcription_model_required', 'Name the model that transcribes.', path)
  }
  const { catalog, target, requested, transcribes } = context
  const isOwn = transcribes && model === requested
  const found = isOwn ? target.mapping : transcriptionAt(catalog, context.meant(model), target.provider)
  if (!found) {
    const message = `"${model.slice(0, 100)}" does not transcribe at ${target.provider.id}.`
    throw new EventError('transcription_model_not_supported', message, path)
  }
  if (!context.isAllowed(found)) {
    const message = `"${found.model.id}" may not be used with this key.`
    throw new EventError('transcription_model_not_allowed', message, path)
  }
  if (before && found !== before) {
    const message = `"${before.model.id}" transcribes in this session, and stays that.`
    throw new EventError('transcription_model_locked', message, path)
  }
  return found
}

function noVoice(voice: string): never {
  const message = `The voice "${voice.slice(0, 64)}" is not available.`
  throw new EventError('voice_not_supported', message, 'session.audio.output.voice')
}

const isNameOf = (name: unknown, mapping: Mapping): boolean =>
  typeof name === 'string' && (name === mapping.externalId || namesOf(mapping).includes(name))

/** A limit of output; undefined for none. */
export const tokensOf = (value: unknown): number | undefined =>
  typeof value === 'number' && value > 0 && Number.isFinite(value) ? Math.ceil(value) : undefined

/** Whether a session's or a response's settings ask for audio; undefined where they say nothing. */
export const hasAudioOf = ({ output_modalities: modalities }: Readonly<Json>): boolean | undefined =>
  Array.isArray(modalities) ? modalities.includes('audio') : undefined

/** Returns the audio part of a session's or a response's settings. */
export function audioOf({ audio }: Readonly<Json>): { input: Json; output: Json } {
  const { input, output } = objectIn(audio)
  return { input: objectIn(input), output: objectIn(output) }
}
