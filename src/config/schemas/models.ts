/** The schema of `config/models.d/<family>.yaml`. Unknown keys are rejected. */
import { type Infer, s } from '../../core/schema.ts'
import { called, count, date, lifecycle, modelId, modelName, text } from './terms.ts'

const modality = s.enum('text', 'image', 'audio', 'video', 'file', 'embedding', 'rerank', 'moderation', 'decision')
/** A formula that the vendor publishes: `min(max, base + per_patch * patches)`. */
const imageTokens = s.object({
  patch_size: s.integer({ minimum: 1 }),
  per_patch: s.default(s.number({ exclusiveMinimum: 0 }), 1),
  base: s.default(s.integer({ minimum: 0 }), 0),
  max: s.integer({ minimum: 1 }),
})
const model = s.object({
  id: modelName,
  name: text,
  description: s.optional(s.string()),
  family: text,
  aliases: s.default(s.array(modelId), []),
  hidden: s.optional(s.boolean()),
  created: s.optional(date),
  tokenizer: s.optional(s.string()),
  image_tokens: s.optional(imageTokens),
  audio_tokens: s.optional(s.number({ exclusiveMinimum: 0 })),
  operations: s.optional(s.array(text, { minItems: 1 })),
  input: s.array(modality, { minItems: 1 }),
  output: s.array(modality, { minItems: 1 }),
  context_length: count,
  max_output: count,
  ...lifecycle,
})

/**
 * `config/models.d/<family>.yaml`. `aliases` are further names of models or of single offers, one per line:
 * `fast: gpt-5.4-mini`, `local: ollama/qwen3:4b`.
 */
export const modelsFile = s.object({
  models: s.default(s.array(model), []),
  aliases: s.default(s.record(called('the id of a model, or "<provider>/<model>"', text)), {}),
})
/** A valid models file, with defaults. */
export type ModelsFile = Infer<typeof modelsFile>
/** A model, without its offers. */
export type ModelEntry = ModelsFile['models'][number]
