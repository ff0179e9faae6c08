/** What providers of a client's own wire read of its body, and the canonical request does not hold. */
import type { ChatRequest } from '../core/chat-request.ts'
import { weigh } from '../core/stringify-steps.ts'

/** Of its names and texts. */
export const charactersOf = (value: unknown): number => weigh(value, 0)

/** Characters of tools and formats, in the words of a wire, beyond those that stand for them in the canonical request. */
export function nativeSettings(settings: readonly unknown[], { tools, response_format: format }: ChatRequest): number {
  const held = charactersOf(tools) + (format?.type === 'json_schema' ? charactersOf(format.json_schema) : 0)
  return Math.max(0, charactersOf(settings) - held)
}

/** Characters of all members but those of the names in `read`. */
export function charactersBeside(members: Readonly<Record<string, unknown>>, read: ReadonlySet<string>): number {
  let sum = 0
  for (const name in members) if (!read.has(name)) sum += name.length + charactersOf(members[name])
  return sum
}
