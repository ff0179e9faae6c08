/** Answers in JSON that no format of a wire tells: any object, and values that are none. */
import { type ChatRequest, type Json, schemaInstruction, textOf } from '../../src/plugin.ts'

/** The instruction for models that no format tells. */
export const ANY_JSON = 'Respond with one JSON object and nothing else.'

/** Whether the instruction is missing on wires that refuse the format without the word (R16). */
export const lacksWord = ({ response_format: format, messages }: Readonly<ChatRequest>): boolean =>
  format?.type === 'json_object' && !messages.some(({ content }) => /json/i.test(textOf(content)))

/** The schema of an answer that is no object, for wires whose formats are objects alone. */
export function otherSchema(request: Readonly<ChatRequest> | undefined): Json | undefined {
  const format = request?.response_format
  if (format?.type !== 'json_schema') return undefined
  const { schema }: { schema: Json } = format.json_schema
  return (schema.type ?? 'object') === 'object' ? undefined : schema
}

/** The instruction for such an answer; undefined for others. */
export function otherInstruction(request: Readonly<ChatRequest>): string | undefined {
  const schema = otherSchema(request)
  return schema && schemaInstruction(schema)
}
