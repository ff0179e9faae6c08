/** JSON Schemas of configuration files for editors, without the keywords of the gateway's dialect. */
import type { Endpoint } from '../core/endpoint.ts'
import type { FilterFactory } from '../core/filter.ts'
import type { JsonSchema } from '../core/schema.ts'
import { isObject } from '../json/json.ts'
import { examples, type Unit, units } from '../validation/units.ts'
import type { Registries } from './registries.ts'
import { gatewayFile } from './schemas/gateway.ts'
import { modelsFile } from './schemas/models.ts'
import { providerFile } from './schemas/provider.ts'
import { routesFile } from './schemas/routes.ts'

/** A string may be a reference instead: `${NAME}`, `${file:path}`. */
const REFERENCE = '\\$\\{'

type Known = Pick<Registries, 'wires' | 'filters' | 'endpoints'>

/** Schemas by file name without its extension. */
export function editorSchemas({ wires, filters, endpoints }: Known): Readonly<Record<string, JsonSchema>> {
  const file = (title: string, json: JsonSchema) => ({
    $schema: 'http://json-schema.org/draft-07/schema#',
    title,
    ...json,
  })
  const gateway = {
    ...withProperties(forEditors(gatewayFile.json), {
      chains: {
        type: 'object',
        additionalProperties: { type: 'array', items: entryOf([...filters.keys()]), minItems: 1 },
      },
      endpoints: {
        type: 'object',
        properties: Object.fromEntries(endpoints.map(endpoint => [endpoint.name, changesOf(endpoint, filters)])),
        additionalProperties: false,
      },
    }),
    definitions: {
      ...mapValues(Object.fromEntries(filters), optionsOf),
      ...mapValues(Object.fromEntries(filters), factory => partly(optionsOf(factory)), 'some-'),
    },
  }
  const byOp = new Map<string, string[]>()
  for (const { op, wire } of wires.values()) byOp.set(op, [...(byOp.get(op) ?? []), wire])
  const wiresByOperation = { type: 'object', properties: mapValues(Object.fromEntries(byOp), suggested) }
  return {
    gateway: file('gateway.yaml of Model Gateway', gateway),
    models: file('models.d/*.yaml of Model Gateway', forEditors(modelsFile.json)),
    routes: file('routes.d/*.yaml of Model Gateway', forEditors(routesFile.json)),
    provider: file(
      'providers.d/*.yaml of Model Gateway',
      everywhere(forEditors(providerFile.json), 'wires', wiresByOperation),
    ),
  }
}

/** Known names as suggestions; plugins may add others. */
const suggested = (names: readonly string[]): JsonSchema => ({ anyOf: [{ enum: names }, { type: 'string' }] })

/** A filter of a chain: its name, or its name with options. */
const entryOf = (names: readonly string[]): JsonSchema => ({
  anyOf: [
    suggested(names),
    {
      type: 'object',
      properties: Object.fromEntries(names.map(name => [name, defined(name)])),
      minProperties: 1,
      maxProperties: 1,
    },
  ],
})

/** Overrides of one endpoint: filter options, and options of its codec. */
function changesOf({ codec: { compat } }: Endpoint, filters: Known['filters']): JsonSchema {
  const properties = Object.fromEntries([...filters.keys()].map(name => [name, defined(`some-${name}`)]))
  return { type: 'object', properties: { ...properties, ...(compat && { compat: forEditors(compat.options.json) }) } }
}

const defined = (name: string): JsonSchema => ({ $ref: `#/definitions/${name}` })

const optionsOf = ({ options }: FilterFactory): JsonSchema => ({ type: 'object', ...forEditors(options.json) })

const partly = ({ required: _, ...rest }: JsonSchema): JsonSchema => rest

function forEditors(schema: JsonSchema): JsonSchema {
  const { unit, discriminator: _, properties, items, additionalProperties: others, anyOf, oneOf, ...rest } = schema
  const each = (list: unknown) => (list as JsonSchema[]).map(forEditors)
  const plain = {
    ...rest,
    ...(unit !== undefined && quantity(unit as Unit)),
    ...(isObject(properties) && { properties: mapValues(properties as Record<string, JsonSchema>, forEditors) }),
    ...(isObject(items) && { items: forEditors(items) }),
    ...(others !== undefined && { additionalProperties: isObject(others) ? forEditors(others) : others }),
    ...(Array.isArray(anyOf) && { anyOf: each(anyOf) }),
    ...(Array.isArray(oneOf) && { oneOf: each(oneOf) }),
  }
  return referable(plain)
}

const quantity = (unit: Unit): JsonSchema => ({
  type: 'string',
  pattern: `^\\d{1,12}(\\.\\d{1,6})? ?(${Object.keys(units[unit]).join('|')})$`,
  description: examples[unit],
})

/** The schema with references allowed in place of its strings. */
function referable(schema: JsonSchema): JsonSchema {
  const { pattern, enum: values, type, ...rest } = schema
  if (typeof pattern === 'string') return { ...schema, pattern: `(?:${pattern})|${REFERENCE}` }
  if (!Array.isArray(values) || type !== 'string') return schema
  return { ...rest, anyOf: [{ enum: values }, { type: 'string', pattern: REFERENCE }] }
}

/** Replaces the schema of property `name` in every object that has it. */
function everywhere(schema: JsonSchema, name: string, by: JsonSchema): JsonSchema {
  const { properties, items } = schema
  const inner = isObject(properties)
    ? mapValues(properties as Record<string, JsonSchema>, (value, key) =>
        key === name ? by : everywhere(value, name, by),
      )
    : undefined
  return {
    ...schema,
    ...(inner && { properties: inner }),
    ...(isObject(items) && { items: everywhere(items, name, by) }),
  }
}

const withProperties = (schema: JsonSchema, properties: Readonly<Record<string, JsonSchema>>): JsonSchema => ({
  ...schema,
  properties: { ...(schema.properties as object), ...properties },
})

const mapValues = <V, W>(
  map: Readonly<Record<string, V>>,
  change: (value: V, key: string) => W,
  prefix = '',
): Record<string, W> =>
  Object.fromEntries(Object.entries(map).map(([key, value]) => [prefix + key, change(value, key)]))
