/** The schema of a provider's offer of a model. */
import { capabilities } from '../../core/provider-settings.ts'
import { type Infer, s } from '../../core/schema.ts'
import { pricing, tier } from './pricing.ts'
import { called, count, date, lifecycle, list, mapOf, modelName, name, text } from './terms.ts'

const state = called('true, false or a word', s.either(s.boolean(), text))
/**
 * The provider's field that turns reasoning on and off. An effort turns it on; `none` and a forced tool turn it off.
 * The effort itself is sent when `reasoning_efforts` contains any other than `none`.
 */
const reasoningSwitch = s.object({
  field: s.string({
    pattern: '^[A-Za-z_]\\w{0,63}(\\.[A-Za-z_]\\w{0,63})?$',
    description: 'a field such as "enable_thinking" or "thinking.type"',
  }),
  on: state,
  off: s.optional(state),
  budget: s.optional(text),
})

/** Factor of a service tier on token prices. */
const factor = s.decimal({
  pattern: '^\\d{1,3}(\\.\\d{1,6})?$',
  description: 'a factor in quotes, such as "0.5"',
})

/** Properties of an offer. */
const offer = {
  wires: s.default(mapOf(s.string()), {}),
  pricing: s.optional(pricing),
  pricing_tiers: s.default(list(tier), []),
  priced_at: s.optional(date),
  priced_from: s.optional(text),
  unpriced: s.optional(s.enum('allow', 'refuse')),
  supports: s.default(list(s.enum(...capabilities)), []),
  reasoning_efforts: s.default(list(s.enum('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')), []),
  reasoning_modes: s.default(list(s.enum('standard', 'pro')), []),
  reasoning_switch: s.optional(reasoningSwitch),
  service_tiers: s.default(list(s.enum('flex', 'priority')), []),
  tier_factors: s.optional(s.object({ flex: s.optional(factor), priority: s.optional(factor) })),
  regions: s.default(list(text), []),
  parameters: s.optional(list(text)),
  context_length: count,
  max_output: count,
  min_cacheable_tokens: count,
  cache: s.optional(s.enum('auto')),
  max_n: s.optional(s.integer({ minimum: 1, maximum: 128 })),
  voices: s.optional(mapOf(text)),
  max_input_characters: count,
  max_file: s.optional(s.size()),
  sizes: s.optional(list(text, { minItems: 1 })),
  aspect_ratios: s.optional(list(text, { minItems: 1 })),
  max_images: s.optional(s.integer({ minimum: 1, maximum: 16 })),
  video_sizes: s.optional(list(text, { minItems: 1 })),
  video_seconds: s.optional(list(s.integer({ minimum: 1, maximum: 3600 }), { minItems: 1 })),
  max_reference_images: s.optional(s.integer({ minimum: 1, maximum: 9 })),
  cancellable: s.optional(s.boolean()),
  ...lifecycle,
}
/** An offer of a model of the catalogue; `id` is the provider's name for it, by default the model's. */
export const mapping = s.object({ model: modelName, id: s.optional(name), ...offer })

/** Capabilities assumed of models that no file lists: the provider rejects what it does not support. */
const openSupports = [
  'streaming',
  'tools',
  'parallel_tool_calls',
  'vision',
  'reasoning',
  'json_output',
  'structured_outputs',
  'audio_input',
  'file_input',
]
/** Properties of the offers of models that no file lists. */
export const openEntry = s.object({ ...offer, supports: s.default(list(s.enum(...capabilities)), openSupports) })
/** A valid `open` of a manifest. */
export type OpenEntry = Infer<typeof openEntry>

/** A valid entry of `models` in a manifest. */
export type MappingEntry = Infer<typeof mapping>
/** Properties of an offer without its model. */
export type OfferEntry = Omit<MappingEntry, 'model'>
