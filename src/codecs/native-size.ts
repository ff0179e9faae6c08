/** Counts the parts of a native body that the canonical request lacks and the provider reads. */
import type { ChatRequest } from '../core/chat-request.ts'
import { textSize, valueSize } from '../core/usage.ts'

/** Bytes of tools and formats, in the words of a wire, beyond those that stand for them in the canonical request. */
export function nativeSettings(settings: readonly unknown[], { tools, response_format: format }: ChatRequest): number {
  const held = valueSize(tools) + (format?.type === 'json_schema' ? valueSize(format.json_schema) : 0)
  return Math.max(0, valueSize(settings) - held)
}

/** Bytes of all members but those of the names in `read`. */
export function sizeBeside(members: Readonly<Record<string, unknown>>, read: ReadonlySet<string>): number {
  let sum = 0
  for (const name in members) if (!read.has(name)) sum += textSize(name) + valueSize(members[name])
  return sum
}
