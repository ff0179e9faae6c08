/** Schemas shared by several configuration files. */
import { type JsonSchema, type Schema, s } from '../../core/schema.ts'

/** A valid model id or alias. */
export const MODEL_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/
/** Matches `MODEL_ID`. */
export const modelId = s.string({
  pattern: MODEL_ID.source,
  description: 'a model id of letters, digits and ".", "_", ":", "-", such as "acme-large"',
})
/** Names a model as other gateways do, such as "openai/gpt-5" or "My model": printable, without outer spaces. */
export const modelName = s.string({
  pattern: '^[!-~](?:[ -~]{0,126}[!-~])?$',
  description: 'a model name of at most 128 printable ASCII characters, such as "acme-large" or "acme/large"',
})
/** `YYYY-MM-DD`. */
export const date = s.string({ format: 'date', description: 'a date such as "2026-01-31"' })
/** An http or https address. */
export const url = s.string({
  pattern: '^https?://[^\\s]+$',
  format: 'url',
  description: 'an address such as "https://acme.example"',
})
/** A place that the gateway itself may reach. */
export const reached = s.string({
  pattern: '^https?://[^\\s/?#@]+$',
  format: 'url',
  description: 'a scheme, a host and perhaps a port, such as "http://media.internal:9000"',
})
/** Not empty. */
export const text = s.string({ minLength: 1 })
/** A name that requests, answers and listings repeat. */
export const name = s.string({ minLength: 1, maxLength: 256 })
/** Maximum entries of each list or mapping in a provider's file, except its models. Shipped files have at most 15. */
const MAX_LIST_ENTRIES = 500
/** A list in a provider's file. */
export const list = <S extends Schema<unknown>>(items: S, rules: JsonSchema = {}) =>
  s.array(items, { ...rules, maxItems: MAX_LIST_ENTRIES })
/** A mapping of any names in a provider's file. */
export const mapOf = <S extends Schema<unknown>>(values: S) => s.record(values, { maxProperties: MAX_LIST_ENTRIES })

/** The schema with a name for error messages. */
export const called = <T>(description: string, { json }: Schema<T>): Schema<T> => ({ json: { ...json, description } })

/** A time of 0 would end at once what it is for. */
export const someTime = s.duration({
  type: 'string',
  pattern: '[1-9]',
  description: 'a duration above 0, such as "30s"',
})
/** Nothing would fit in a size of 0. */
export const someSize = s.size({ type: 'string', pattern: '[1-9]', description: 'a size above 0, such as "32MiB"' })

const stability = s.enum('stable', 'beta', 'experimental', 'unstable')
/** Optional; from 1. */
export const count = s.optional(s.integer({ minimum: 1 }))
/** Fields of models and of offers; a date is the first day of the state. */
export const lifecycle = {
  stability: s.optional(stability),
  deprecated_at: s.optional(date),
  deactivated_at: s.optional(date),
}
