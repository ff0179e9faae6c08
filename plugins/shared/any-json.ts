/** Instructions for answers in JSON that a wire has no format for. */
import { type ChatRequest, type Json, schemaInstruction, textOf } from '../../src/plugin.ts'

/** The instruction for models that no format tells. */
export const ANY_JSON = 'Respond with one JSON object and nothing else.'

/** The instruction in place of an answer format; undefined for text. */
export function formatInstruction({ response_format: format }: Readonly<ChatRequest>): string | undefined {
  if (format?.type === 'json_schema') return schemaInstruction(format.json_schema.schema)
  return format?.type === 'json_object' ? ANY_JSON : undefined
}

/** Whether the instruction is missing on wires that refuse the format without the word (R16). */
export const lacksWord = ({ response_format: format, messages }: Readonly<ChatRequest>): boolean =>
  format?.type === 'json_object' && !messages.some(({ content }) => /json/i.test(textOf(content)))

/** The schema of an answer that is a list or another value than an object; undefined for others. */
export function nonObjectSchema(request: Readonly<ChatRequest> | undefined): Json | undefined {
  const format = request?.response_format
  if (format?.type !== 'json_schema') return undefined
  const { schema }: { schema: Json } = format.json_schema
  return (schema.type ?? 'object') === 'object' ? undefined : schema
}

/** The instruction for such an answer, for wires whose formats are objects alone. */
export function nonObjectInstruction(request: Readonly<ChatRequest>): string | undefined {
  const schema = nonObjectSchema(request)
  return schema && schemaInstruction(schema)
}
