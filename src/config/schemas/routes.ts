/** The schema of `config/routes.d/*.yaml`. Unknown keys are rejected. */
import { type Infer, s } from '../../core/schema.ts'
import { called, count, modelName, name, text } from './terms.ts'

const names = s.optional(s.array(text, { minItems: 1 }))
const tagValues = s.either(s.string(), s.array(s.string(), { minItems: 1 }))
const caller = {
  orgs: names,
  projects: names,
  keys: names,
  tags: s.optional(s.record(tagValues, { minProperties: 1, maxProperties: 16 })),
}
const when = s.object({
  ...caller,
  prompt_tokens: s.optional(s.object({ min: count, max: count })),
})
const target = called('the id of a model, or "<provider>/<model>"', text)
const fields = s.record(s.unknown(), { maxProperties: 100 })
const virtualModel = s.object({
  id: modelName,
  name: s.optional(name),
  hidden: s.optional(s.boolean()),
  strategy: s.default(s.enum('order', 'weight', 'price', 'latency'), 'order'),
  use: s.array(
    s.either(
      target,
      s.object({
        model: target,
        weight: s.optional(s.number({ exclusiveMinimum: 0, maximum: 1_000_000 })),
        when: s.optional(when),
      }),
    ),
    { minItems: 1, maxItems: 100 },
  ),
  sticky: s.default(s.enum('session', 'none'), 'none'),
  cache: s.optional(s.either(s.enum('off'), s.duration())),
  defaults: s.optional(fields),
  overrides: s.optional(fields),
  system: s.optional(text),
})

const rule = s.object({
  match: s.object({ model: s.optional(name), ...caller }),
  use: s.optional(target),
  deny: s.optional(s.string({ minLength: 1, maxLength: 1000 })),
  mirror: s.optional(s.object({ to: target, percent: s.default(s.number({ minimum: 0, maximum: 100 }), 100) })),
})

/** `config/routes.d/*.yaml`: names that stand for chains of models, and rules. */
export const routesFile = s.object({
  virtual_models: s.default(s.array(virtualModel), []),
  rules: s.default(s.array(rule, { maxItems: 10_000 }), []),
})
/** A valid routes file, with defaults. */
export type RoutesFile = Infer<typeof routesFile>
