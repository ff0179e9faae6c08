/** A chat history for the wire: alternating turns, all calls of a turn answered together in the next one. */
import {
  append,
  errors,
  functionCalls,
  isObject,
  type Json,
  jsonIn,
  MAX_PARSED_RESULTS,
  type Message,
  objectArguments,
  objectIn,
  PendingToolCalls,
  resultText,
  type Target,
  turnOf,
  unseal,
} from '../../src/plugin.ts'
import { contentParts, imageOf, type Part } from './parts.ts'
import { markUnsigned, signedParts } from './signatures.ts'
import { takesLevels } from './thinking.ts'
import { toWireName } from './tool-name.ts'

/** An entry of `contents`. */
export interface GeminiTurn {
  role: 'user' | 'model'
  parts: Part[]
}

/** Place for the result of a call; `response` is unset until a tool message fills it. */
interface Slot {
  readonly id: string
  readonly name: string
  response: Json | undefined
  /** Media of a result: inside it, or after all results when the model does not accept that. */
  media: Part[]
}

interface Draft extends GeminiTurn {
  readonly slots: Slot[]
}

/**
 * Leading system messages become `system`; a later one stays in place as a reminder, since moving it would change the
 * cached prefix. Throws 400 for a tool result without a call and for arguments that are not a JSON object.
 */
export function historyOf(
  messages: readonly Message[],
  target: Target,
  callIds: boolean,
): { system: Part[]; contents: GeminiTurn[] } {
  const system: Part[] = []
  const drafts: Draft[] = []
  const slots = new PendingToolCalls<Slot>(({ response }) => response !== undefined)
  const draft = (role: GeminiTurn['role']): Draft => turnOf(drafts, role, () => ({ role, parts: [], slots: [] }))

  let parsed = 0
  messages.forEach((message, i) => {
    const at = `messages[${i}]`
    switch (message.role) {
      case 'system':
      case 'developer': {
        const parts = systemParts(message, at, target)
        if (drafts.length === 0) append(system, parts)
        else if (parts.length > 0) append(draft('user').parts, parts.map(reminder))
        break
      }
      case 'user': {
        const parts = contentParts(message.content, at, target)
        if (parts.length > 0) append(draft('user').parts, parts)
        break
      }
      case 'assistant': {
        const parts = signedParts(contentOf(message, at, target), message, target)
        if (parts.length === 0 && !message.tool_calls?.length) break
        const turn = draft('model')
        append(turn.parts, parts)
        for (const call of functionCalls(message, at)) {
          const { name, arguments: text } = call.function
          const slot: Slot = { id: call.id, name: toWireName(name), response: undefined, media: [] }
          turn.slots.push(slot)
          slots.add(call.id, slot, turn)
          const args = objectArguments(text)
          const signature = unseal(target, call.extra_content?.vendor?.thought_signature)
          turn.parts.push({
            functionCall: { ...(callIds && { id: slot.id }), name: slot.name, args },
            ...(signature !== undefined && { thoughtSignature: signature }),
          })
        }
        break
      }
      case 'tool':
      case 'function':
        parsed = fill(slots.answeredBy(message, at), message, at, target, parsed)
        draft('user')
        break
    }
  })
  for (const { parts } of drafts) markUnsigned(parts, target)
  const contents = alternate(drafts, target, callIds)
  if (!isGemma(target)) return { system, contents }
  const instructions = system.map(part => part.text).join('\n\n')
  if (instructions !== '') contents[0]!.parts.unshift({ text: `${instructions}\n\n` })
  return { system: [], contents }
}

/** Gemma models have no system instruction: it precedes the first user message instead. */
export const isGemma = ({ mapping }: Target): boolean => mapping.externalId.toLowerCase().startsWith('gemma-')

function systemParts(message: Message, at: string, target: Target): Part[] {
  const parts = contentParts(message.content, at, target)
  if (parts.some(part => part.text === undefined)) {
    throw errors.unsupported(`A ${message.role} message may hold text only.`, `${at}.content`)
  }
  return parts
}

/** A later instruction: moving it would change the cached prefix. */
export const reminder = ({ text }: Part): Part => ({ text: `<system-reminder>${text}</system-reminder>` })

/** Assistant content before its calls. Images of the gateway's answers may come back in the field `images`. */
function contentOf(message: Message & { images?: unknown }, at: string, target: Target): Part[] {
  const content = contentParts(message.content, at, target)
  const parts = content.length > 0 ? content : contentParts(message.refusal, at, target)
  const { model, supports } = target.mapping
  const sees = supports.has('vision') || model.output.includes('image')
  for (const image of sees && Array.isArray(message.images) ? message.images : []) {
    const url = objectIn(objectIn(image).image_url).url
    const part = typeof url === 'string' ? imageOf(url) : undefined
    if (part) parts.push(part)
  }
  return parts
}

/** `parsed`: characters of earlier results already parsed; returns the new sum. */
function fill(slot: Slot, message: Message, at: string, target: Target, parsed: number): number {
  const { content, is_error: failed } = message
  const text = resultText(content)
  const all = parsed + text.length
  slot.response =
    failed === true
      ? { error: text || 'The tool failed.' }
      : all > MAX_PARSED_RESULTS
        ? { output: text }
        : responseOf(text)
  slot.media = contentParts(content, at, target).filter(part => part.text === undefined)
  return all > MAX_PARSED_RESULTS ? parsed : all
}

/** Numbers with more digits than a JSON number keeps. */
const LONG_NUMBER = /[:[,]\s*-?\d{16}/

/** A result must be an object; text that is not, or that parsing would change, is sent as text. */
function responseOf(text: string): Json {
  if (!text.trimStart().startsWith('{') || LONG_NUMBER.test(text)) return { output: text }
  const parsed = jsonIn(text)
  return isObject(parsed) ? parsed : { output: text }
}

/** Moves all results directly after their calls and merges adjacent turns of one role. */
function alternate(drafts: readonly Draft[], target: Target, callIds: boolean): GeminiTurn[] {
  const turns: GeminiTurn[] = []
  const add = (role: GeminiTurn['role'], parts: Part[]) => {
    if (parts.length > 0) append(turnOf(turns, role, () => ({ role, parts: [] })).parts, parts)
  }
  for (const { role, parts, slots } of drafts) {
    add(role, parts)
    add('user', resultParts(slots, takesLevels(target.mapping), callIds))
  }
  if (turns[0]?.role !== 'user') turns.unshift({ role: 'user', parts: [{ text: '.' }] })
  if (turns.at(-1)!.role !== 'user') turns.push({ role: 'user', parts: [{ text: 'Continue.' }] })
  return turns
}

const isData = ({ inlineData }: Part): boolean => inlineData !== undefined

/** One result per call, in order; a call without a result counts as failed. */
function resultParts(slots: readonly Slot[], multimodal: boolean, callIds: boolean): Part[] {
  const behind: Part[] = []
  const results = slots.map(({ id, name, response, media }): Part => {
    const within = multimodal ? media.filter(isData) : []
    append(behind, multimodal ? media.filter(part => !isData(part)) : media)
    return {
      functionResponse: {
        ...(callIds && { id }),
        name,
        response: response ?? { error: 'No result' },
        ...(within.length > 0 && { parts: within }),
      },
    }
  })
  append(results, behind)
  return results
}
