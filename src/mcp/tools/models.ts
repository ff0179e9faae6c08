/** `list-models` and `list-image-models`: what the caller could call now, with prices. */

import { formatDecimal, parseDecimal } from '../../core/money.ts'
import { isFree } from '../../core/offer.ts'
import { type Infer, type Schema, s } from '../../core/schema.ts'
import type { Mapping } from '../../core/translator.ts'
import { count, type ListedModel, only, orNull, structured, type Tool } from '../tool.ts'

const input = s.object({
  include_deactivated: s.default(s.boolean(), false),
  exclude_deprecated: s.default(s.boolean(), false),
  limit: s.default(s.integer({ minimum: 1, maximum: 1000 }), 20),
  family: s.optional(s.string({ minLength: 1 })),
})

const text = s.string()
const flag = s.boolean()
const shared = {
  id: text,
  name: text,
  family: text,
  description: orNull(text),
  providers: s.array(text),
}
const row = s.object({
  ...shared,
  capabilities: s.object({ vision: flag, tools: flag, reasoning: flag, streaming: flag, imageGeneration: flag }),
  pricing: s.object({ input: orNull(text), output: orNull(text), unit: only('USD per million tokens') }),
  contextLength: orNull(count),
  maxOutput: orNull(count),
  free: flag,
  stability: text,
  deprecatedAt: orNull(text),
  deactivatedAt: orNull(text),
})
const output = s.object({ models: s.array(row), total: count, hasMore: flag })

/** The models of `GET /v1/models` for the same caller, at most `limit`. */
export const listModels: Tool<Infer<typeof input>> = {
  name: 'list-models',
  title: 'Models',
  description: 'Lists the models that can be called with this API key, with their capabilities and prices.',
  scope: undefined,
  input,
  output: output.json,
  async run({ family, limit, ...wanted }, { models }) {
    const all = models(wanted).filter(({ model }) => family === undefined || model.family === family)
    const answer: Infer<typeof output> = {
      models: all.slice(0, limit).map(rowOf),
      total: all.length,
      hasMore: all.length > limit,
    }
    return structured(answer)
  },
}

const imageRow = s.object({ ...shared, requestPriceUsd: orNull(text), imagePriceUsd: orNull(text) })
const imageOutput = s.object({ models: s.array(imageRow), total: count })
const nothing: Schema<Record<string, never>> = s.object({})

/** Lists the models that make images. */
export const listImageModels: Tool = {
  name: 'list-image-models',
  title: 'Image models',
  description: 'Lists the models that can make images with this API key, with their prices.',
  scope: undefined,
  input: nothing,
  output: imageOutput.json,
  async run(_args, { models }) {
    const all = models({ include_deactivated: false, exclude_deprecated: false })
    const drawing = all.filter(({ model }) => model.output.includes('image'))
    const answer: Infer<typeof imageOutput> = {
      models: drawing.map(listed => ({
        ...sharedOf(listed),
        requestPriceUsd: pricingOf(listed).request ?? null,
        imagePriceUsd: imagePriceOf(listed),
      })),
      total: drawing.length,
    }
    return structured(answer)
  },
}

/** USD per token or per unit, as the first offer has it; what has no price is not there. */
const pricingOf = ({ mappings: [first] }: ListedModel): Readonly<Partial<Record<string, string>>> =>
  first?.pricing ?? {}

/** USD of one image, of the usual size where it depends on that. */
function imagePriceOf({ mappings: [first] }: ListedModel): string | null {
  const bySize = first?.pricingBySize?.per_image ?? {}
  return bySize['1024x1024'] ?? Object.values(bySize)[0] ?? null
}

const perMillion = (usd: string | undefined): string | null =>
  usd === undefined ? null : formatDecimal(parseDecimal(usd, 12), 6)

const sharedOf = ({ id, model, mappings }: ListedModel) => ({
  id,
  name: model.name,
  family: model.family,
  description: model.description ?? null,
  providers: [...new Set(mappings.map(({ provider }) => provider.id))],
})

function rowOf(listed: ListedModel): Infer<typeof row> {
  const { model, mappings } = listed
  const any = (capability: Parameters<Mapping['supports']['has']>[0]) =>
    mappings.some(({ supports }) => supports.has(capability))
  const { prompt, completion } = pricingOf(listed)
  return {
    ...sharedOf(listed),
    capabilities: {
      vision: any('vision'),
      tools: any('tools'),
      reasoning: any('reasoning'),
      streaming: any('streaming'),
      imageGeneration: model.output.includes('image'),
    },
    pricing: { input: perMillion(prompt), output: perMillion(completion), unit: 'USD per million tokens' },
    contextLength: largest(mappings.map(mapping => mapping.contextLength ?? model.contextLength)),
    maxOutput: largest(mappings.map(mapping => mapping.maxOutput ?? model.maxOutput)),
    free: listed.free ?? mappings.some(isFree),
    stability: model.stability ?? 'stable',
    deprecatedAt: model.deprecatedAt ?? null,
    deactivatedAt: model.deactivatedAt ?? null,
  }
}

const largest = (numbers: readonly (number | undefined)[]): number | null =>
  Math.max(0, ...numbers.map(number => number ?? 0)) || null
