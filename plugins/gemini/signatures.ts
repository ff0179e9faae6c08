/**
 * Thought signatures: the provider signs parts of its answers and requires each signature back on its part. Clients
 * hold them sealed; only the provider that signed gets them back.
 */
import { isObject, type Json, type Message, type Target, unseal } from '../../src/plugin.ts'
import type { Part } from './parts.ts'
import { takesLevels } from './thinking.ts'

/** Marks reasoning details whose signature only this wire can read. */
export const FORMAT = 'google-gemini-v1'

/** Placeholder for the signature of a call that this provider did not make. */
const UNSIGNED = 'skip_thought_signature_validator'

/** Parts without a chat form, by the field of their data; they travel as native blocks. */
export const NATIVE_FIELDS = ['executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse'] as const

/**
 * Assistant content before its calls, with the signatures of `message.reasoning_details` in place. Clients join text,
 * so a signature belongs to the text that it closes: the last one to the last text, and so on backwards. Signatures of
 * images come as `data`, those of thoughts beside the thought.
 */
export function signedParts(spoken: readonly Part[], message: Message, target: Target): Part[] {
  const thoughts: Part[] = []
  const texts: string[] = []
  const images: string[] = []
  for (const { format, text, signature, data } of message.reasoning_details ?? []) {
    if (format !== FORMAT) continue
    const value = unseal(target, signature)
    const imageValue = unseal(target, data)
    if (imageValue !== undefined) images.push(imageValue)
    else if (value !== undefined && text) thoughts.push({ text, thought: true, thoughtSignature: value })
    else if (value !== undefined) texts.push(value)
  }
  const lastText = texts.at(-1)
  const hasText = spoken.some(part => part.text !== undefined)
  const parts = attach(attach(spoken, texts, isText), images, isImage)
  if (lastText !== undefined && !hasText) parts.push({ text: '', thoughtSignature: lastText })
  return [...thoughts, ...nativeParts(message, target), ...parts]
}

const isText = (part: Part): boolean => part.text !== undefined
const isImage = (part: Part): boolean => part.inlineData !== undefined

/** A part with its own signature keeps it. */
function attach(parts: readonly Part[], signatures: string[], fits: (part: Part) => boolean): Part[] {
  const signed = [...parts]
  for (let i = signed.length - 1; i >= 0 && signatures.length > 0; i--) {
    const part = signed[i]!
    if (!fits(part)) continue
    const thoughtSignature = signatures.pop()!
    if (part.thoughtSignature === undefined) signed[i] = { ...part, thoughtSignature }
  }
  return signed
}

function nativeParts(message: Message, target: Target): Part[] {
  const parts: Part[] = []
  for (const block of message.provider_native_blocks ?? []) {
    const { provider, type, thoughtSignature: sealed, ...part }: Json = block
    if (provider !== target.provider.id || !NATIVE_FIELDS.some(field => field === type && isObject(part[field])))
      continue
    const signature = typeof sealed === 'string' ? unseal(target, sealed) : undefined
    parts.push(signature === undefined ? part : { ...part, thoughtSignature: signature })
  }
  return parts
}

/**
 * Marks an unsigned first call of a model's turn as foreign: third generation models reject a turn whose first call is
 * unsigned; later calls are never signed. Changes `parts`.
 */
export function markUnsigned(parts: Part[], { mapping }: Target): void {
  if (!takesLevels(mapping) || !mapping.supports.has('reasoning')) return
  const first = parts.find(part => part.functionCall !== undefined)
  if (first) first.thoughtSignature ??= UNSIGNED
}
