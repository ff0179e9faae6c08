/** Stop sequences of wires that take only some of them, or do not say which one ended an answer. */
import type { ChatRequest, WireFields } from '../../src/plugin.ts'

/** Makes `Translator.takesStop` of a wire that takes so many sequences. */
export const first =
  (most: number) =>
  (_sequence: string, index: number): boolean =>
    index < most

/** Returns how Messages clients read that a stop sequence of `request` has ended an answer; undefined without any. */
export function stopEnding(request: Readonly<ChatRequest> | undefined): WireFields | undefined {
  const [only, ...others] = request?.stop ?? []
  if (only === undefined) return undefined
  const stop_sequence = others.length === 0 ? only : null
  return { wire: 'anthropic.messages', fields: { stop_reason: 'stop_sequence', stop_sequence } }
}
