/** The schema of a generateContent body (docs/contributing/wire-sources.md#gemini). Unknown fields pass. */
import { type Infer, type Schema, s } from '../../core/schema.ts'

const maybe = <S extends Schema<unknown>>(schema: S) => s.optional(s.nullable(schema))
const number = maybe(s.number())
const object = s.open({})

const blob = s.open({ mimeType: s.string({ minLength: 1 }), data: s.string() })
const file = s.open({ mimeType: maybe(s.string()), fileUri: s.string({ minLength: 1 }) })

const part = s.open({
  text: maybe(s.string()),
  thought: maybe(s.boolean()),
  thoughtSignature: maybe(s.string()),
  inlineData: maybe(blob),
  fileData: maybe(file),
  functionCall: maybe(s.open({ id: maybe(s.string()), name: s.string({ minLength: 1 }), args: maybe(object) })),
  functionResponse: maybe(
    s.open({
      id: maybe(s.string()),
      name: maybe(s.string()),
      response: maybe(object),
      parts: maybe(s.array(s.open({ inlineData: maybe(blob), fileData: maybe(file) }))),
    }),
  ),
})

const content = s.open({
  role: maybe(s.enum('user', 'model', 'function', 'tool', 'system', '')),
  parts: maybe(s.array(part)),
})

const declaration = s.open({
  name: s.string({ minLength: 1 }),
  description: maybe(s.string()),
  parameters: maybe(object),
  parametersJsonSchema: maybe(object),
})

const mode = s.enum('MODE_UNSPECIFIED', 'AUTO', 'ANY', 'NONE', 'VALIDATED')
const tokens = maybe(s.integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }))

const generationConfig = s.open({
  temperature: number,
  topP: number,
  topK: number,
  presencePenalty: number,
  frequencyPenalty: number,
  seed: maybe(s.integer()),
  candidateCount: maybe(s.integer({ minimum: 1, maximum: 128 })),
  maxOutputTokens: tokens,
  stopSequences: maybe(s.array(s.string())),
  responseMimeType: maybe(s.string()),
  responseSchema: maybe(object),
  responseJsonSchema: maybe(object),
  /** The field `responseJsonSchema` as older clients write it. */
  _responseJsonSchema: maybe(object),
  responseModalities: maybe(s.array(s.string())),
  thinkingConfig: maybe(
    s.open({
      includeThoughts: maybe(s.boolean()),
      thinkingBudget: maybe(s.integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER })),
      thinkingLevel: maybe(s.string()),
    }),
  ),
  imageConfig: maybe(s.open({ aspectRatio: maybe(s.string()), imageSize: maybe(s.string()) })),
})

/** Schema of the body; unknown fields pass. */
export const generateRequest = s.open({
  contents: s.array(content, { minItems: 1 }),
  systemInstruction: maybe(s.either(s.string(), content)),
  tools: maybe(s.array(s.open({ functionDeclarations: maybe(s.array(declaration)) }))),
  toolConfig: maybe(
    s.open({
      functionCallingConfig: maybe(s.open({ mode: maybe(mode), allowedFunctionNames: maybe(s.array(s.string())) })),
    }),
  ),
  generationConfig: maybe(generationConfig),
  serviceTier: maybe(s.string()),
})

/** A body that matches the schema. */
export type GenerateRequest = Infer<typeof generateRequest>
/** A turn of a conversation. */
export type Content = GenerateRequest['contents'][number]
/** A part of a turn: text, data, a call or its result. */
export type Part = NonNullable<Content['parts']>[number]
/** Settings of the answer. */
export type GenerationConfig = NonNullable<GenerateRequest['generationConfig']>
