/** Schemas of the code as those of the document: named ones become references to components. */
import type { JsonSchema } from '../core/schema.ts'
import { nameOf } from './row.ts'

/** Components by their names. */
export class Components {
  readonly schemas: Record<string, JsonSchema> = {}
  readonly #sources = new Map<string, JsonSchema>()

  /** The schema as it stands in the document. Throws for two schemas of one name. */
  of(json: JsonSchema, name = nameOf(json)): JsonSchema {
    if (name === undefined) return this.#plain(json)
    const known = this.#sources.get(name)
    if (known === undefined) {
      this.#sources.set(name, json)
      // Takes its place in the order before what it holds.
      this.schemas[name] = {}
      this.schemas[name] = this.#plain(json)
    } else if (known !== json) throw new Error(`two schemas have the name ${name}`)
    return { $ref: `#/components/schemas/${name}` }
  }

  /** Without keywords of the dialect, and without those that say nothing. */
  #plain(json: JsonSchema): JsonSchema {
    const { discriminator: _, unit: __, additionalProperties: others, required, ...rest } = json
    const plain: Record<string, unknown> = rest
    if (Array.isArray(required) && required.length > 0) plain.required = required
    if (others === false) plain.additionalProperties = false
    else if (isSchema(others)) plain.additionalProperties = this.of(others)
    if (isSchema(json.items)) plain.items = this.of(json.items)
    if (isSchema(json.not)) plain.not = this.of(json.not)
    if (isSchema(json.properties)) {
      plain.properties = Object.fromEntries(
        Object.entries(json.properties).map(([name, member]) => [name, this.of(member as JsonSchema)]),
      )
    }
    for (const union of ['anyOf', 'oneOf', 'allOf']) {
      const members = json[union]
      if (Array.isArray(members)) plain[union] = members.map((member: JsonSchema) => this.of(member))
    }
    return plain
  }
}

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
