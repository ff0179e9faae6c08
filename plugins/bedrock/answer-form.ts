/** How a model is made to answer in JSON: by a schema, by a tool whose input is the answer, or by an instruction. */
import { type ChatRequest, type Json, type Mapping, schemaInstruction, wellFormed } from '../../src/plugin.ts'
import { ANY_JSON } from '../shared/any-json.ts'
import { fitsStructuredOutputs, strictSchema } from '../shared/claude/schema.ts'
import { familyOf } from './family.ts'

interface AnswerForm {
  /** `outputConfig`. */
  readonly outputConfig?: Json
  /** `output_config.format` among Claude's own fields. */
  readonly format?: Json
  /** Input of the tool that gives the answer. */
  readonly toolSchema?: Json
  /** The last block of `system`. */
  readonly instruction?: string
}

/**
 * Chooses a form that the model has. `forcible`: whether the model can be forced to call a tool in this request.
 */
export function answerFormOf(request: Readonly<ChatRequest>, mapping: Mapping, forcible: boolean): AnswerForm {
  const format = request.response_format
  if (format?.type === 'json_object') return { instruction: ANY_JSON }
  if (format?.type !== 'json_schema') return {}
  const { name, description, strict } = format.json_schema
  const schema: Json = wellFormed(format.json_schema.schema)
  const { maker, takesSchemas } = familyOf(mapping)
  const isHeld = maker !== 'anthropic' || fitsStructuredOutputs(schema, strict === true)
  if (isHeld && takesSchemas && mapping.supports.has('structured_outputs')) {
    if (maker === 'anthropic') return { format: { type: 'json_schema', schema: strictSchema(schema) } }
    const jsonSchema = {
      schema: JSON.stringify(schema),
      name: name.slice(0, 64).replace(/[^a-zA-Z0-9_-]/g, '_'),
      ...(description && { description }),
    }
    return { outputConfig: { textFormat: { type: 'json_schema', structure: { jsonSchema } } } }
  }
  const { type = 'object' } = schema
  const hasTools = mapping.supports.has('tools') && mapping.parameters?.has('tool_choice') !== false
  if (forcible && hasTools && type === 'object') return { toolSchema: { type, ...schema } }
  return { instruction: schemaInstruction(schema) }
}
