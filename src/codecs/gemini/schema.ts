/** The schema of a generateContent body (docs/contributing/wire-sources.md#gemini). Unknown fields pass. */
import { type Infer, s } from '../../core/schema.ts'

const number = s.maybe(s.number())
const object = s.open({})

const blob = s.open({ mimeType: s.string({ minLength: 1 }), data: s.string() })
const file = s.open({ mimeType: s.maybe(s.string()), fileUri: s.string({ minLength: 1 }) })

const part = s.open({
  text: s.maybe(s.string()),
  thought: s.maybe(s.boolean()),
  thoughtSignature: s.maybe(s.string()),
  inlineData: s.maybe(blob),
  fileData: s.maybe(file),
  functionCall: s.maybe(s.open({ id: s.maybe(s.string()), name: s.string({ minLength: 1 }), args: s.maybe(object) })),
  functionResponse: s.maybe(
    s.open({
      id: s.maybe(s.string()),
      name: s.maybe(s.string()),
      response: s.maybe(object),
      parts: s.maybe(s.array(s.open({ inlineData: s.maybe(blob), fileData: s.maybe(file) }))),
    }),
  ),
})

const content = s.open({
  role: s.maybe(s.enum('user', 'model', 'function', 'tool', 'system', '')),
  parts: s.maybe(s.array(part)),
})

const declaration = s.open({
  name: s.string({ minLength: 1 }),
  description: s.maybe(s.string()),
  parameters: s.maybe(object),
  parametersJsonSchema: s.maybe(object),
})

const mode = s.enum('MODE_UNSPECIFIED', 'AUTO', 'ANY', 'NONE', 'VALIDATED')
const tokens = s.maybe(s.integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }))

const generationConfig = s.open({
  temperature: number,
  topP: number,
  topK: number,
  presencePenalty: number,
  frequencyPenalty: number,
  seed: s.maybe(s.integer()),
  candidateCount: s.maybe(s.integer({ minimum: 1, maximum: 128 })),
  maxOutputTokens: tokens,
  stopSequences: s.maybe(s.array(s.string())),
  responseMimeType: s.maybe(s.string()),
  responseSchema: s.maybe(object),
  responseJsonSchema: s.maybe(object),
  /** The field `responseJsonSchema` as older clients write it. */
  _responseJsonSchema: s.maybe(object),
  responseModalities: s.maybe(s.array(s.string())),
  thinkingConfig: s.maybe(
    s.open({
      includeThoughts: s.maybe(s.boolean()),
      thinkingBudget: s.maybe(s.integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER })),
      thinkingLevel: s.maybe(s.string()),
    }),
  ),
  imageConfig: s.maybe(s.open({ aspectRatio: s.maybe(s.string()), imageSize: s.maybe(s.string()) })),
})

/** Schema of the body; unknown fields pass. */
export const generateRequest = s.open({
  contents: s.array(content, { minItems: 1 }),
  systemInstruction: s.maybe(s.either(s.string(), content)),
  tools: s.maybe(s.array(s.open({ functionDeclarations: s.maybe(s.array(declaration)) }))),
  toolConfig: s.maybe(
    s.open({
      functionCallingConfig: s.maybe(
        s.open({ mode: s.maybe(mode), allowedFunctionNames: s.maybe(s.array(s.string())) }),
      ),
    }),
  ),
  generationConfig: s.maybe(generationConfig),
  serviceTier: s.maybe(s.string()),
})

/** A body that matches the schema. */
export type GenerateRequest = Infer<typeof generateRequest>
/** A turn of a conversation. */
export type Content = GenerateRequest['contents'][number]
/** A part of a turn: text, data, a call or its result. */
export type Part = NonNullable<Content['parts']>[number]
/** Settings of the answer. */
export type GenerationConfig = NonNullable<GenerateRequest['generationConfig']>
