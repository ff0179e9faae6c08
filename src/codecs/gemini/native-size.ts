/** Bytes of a generateContent body that its providers read, and a chat request does not hold. */
import type { ChatRequest } from '../../core/chat-request.ts'
import { nativeSettings, sizeBeside } from '../native-size.ts'
import type { GenerateRequest, Part } from './schema.ts'

/** Of the model's parts, beside what it says: seals count elsewhere, and what is sealed alone is not sent. */
const SEALED = ['thought', 'thoughtSignature', 'toolCall', 'toolResponse']
const reads = (name: keyof Part, more: readonly string[] = []): ReadonlySet<string> => new Set([name, ...more])
const SAID = (['functionCall', 'inlineData', 'fileData', 'text'] as const).map(
  name => [name, reads(name, SEALED)] as const,
)
const GIVEN = (['functionResponse', 'inlineData', 'fileData', 'text'] as const).map(
  name => [name, reads(name)] as const,
)
const TEXT = [['text', reads('text')]] as const

/** `body` is in camelCase, and `request` is its chat form. */
export function nativeSize(
  { contents, systemInstruction, tools, generationConfig }: GenerateRequest,
  request: ChatRequest,
) {
  const { responseSchema, responseJsonSchema } = generationConfig ?? {}
  let sum = nativeSettings([tools, responseSchema, responseJsonSchema], request)
  if (typeof systemInstruction === 'object') sum += inParts(systemInstruction?.parts, TEXT)
  for (const { role, parts } of contents) sum += inParts(parts, role === 'model' ? SAID : GIVEN)
  return sum
}

/** A chat request has one member of each part, the first of these. */
function inParts(parts: readonly Part[] | null = [], members: readonly (readonly [keyof Part, ReadonlySet<string>])[]) {
  let sum = 0
  for (const part of parts ?? []) {
    const [, read] = members.find(([name]) => part[name] != null) ?? members.at(-1)!
    sum += sizeBeside(part, read)
  }
  return sum
}
