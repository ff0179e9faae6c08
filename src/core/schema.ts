/** One declaration gives the TypeScript type and the JSON Schema that checks it. */

/** A JSON Schema, as ajv compiles it. */
export type JsonSchema = { readonly [keyword: string]: unknown }

/** A JSON Schema that carries its TypeScript type. `optional` marks an object key that may be absent. */
export interface Schema<T> {
  readonly json: JsonSchema
  readonly optional?: boolean
  /** Never set: only holds the type. */
  readonly _type?: T
}

/** The type that a schema validates. */
export type Infer<S> = S extends Schema<infer T> ? T : never

type Shape = Record<string, Schema<unknown>>
type OptionalKeys<P> = { [K in keyof P]: P[K] extends { optional: true } ? K : never }[keyof P]
type ObjectOf<P> = { [K in Exclude<keyof P, OptionalKeys<P>>]: Infer<P[K]> } & {
  [K in OptionalKeys<P>]?: Infer<P[K]> | undefined
} extends infer O
  ? { [K in keyof O]: O[K] }
  : never

const of = <T>(json: JsonSchema): Schema<T> => ({ json })

function object<P extends Shape>(properties: P, additionalProperties: boolean): Schema<ObjectOf<P>> {
  const required = Object.keys(properties).filter(key => !properties[key]!.optional)
  const json = Object.fromEntries(Object.entries(properties).map(([key, schema]) => [key, schema.json]))
  return of({ type: 'object', properties: json, required, additionalProperties })
}

/** The schema builders. `object` refuses unknown keys (configuration), `open` tolerates them (client requests). */
export const s = {
  string: (rules: JsonSchema = {}) => of<string>({ type: 'string', ...rules }),
  number: (rules: JsonSchema = {}) => of<number>({ type: 'number', ...rules }),
  integer: (rules: JsonSchema = {}) => of<number>({ type: 'integer', ...rules }),
  boolean: (rules: JsonSchema = {}) => of<boolean>({ type: 'boolean', ...rules }),
  unknown: () => of<unknown>({}),
  /** `"30s"`, `"250ms"`; becomes milliseconds. */
  duration: (rules: JsonSchema = {}) => of<number>({ unit: 'duration', ...rules }),
  /** `"32MiB"`, `"64KiB"`; becomes bytes. */
  size: (rules: JsonSchema = {}) => of<number>({ unit: 'size', ...rules }),
  /** A non-negative decimal number written as a string, so that no digit is lost: `"0.25"`. */
  decimal: (rules: JsonSchema = {}) => of<string>({ type: 'string', pattern: '^\\d{1,9}(\\.\\d{1,12})?$', ...rules }),
  enum: <const V extends readonly string[]>(...values: V) => of<V[number]>({ type: 'string', enum: values }),
  array: <S extends Schema<unknown>>(items: S, rules: JsonSchema = {}) =>
    of<Infer<S>[]>({ type: 'array', items: items.json, ...rules }),
  /** A list, or one word in its place: defaults are filled in behind no union. */
  arrayOr: <const W extends string, S extends Schema<unknown>>(word: W, items: S, rules: JsonSchema = {}) =>
    of<W | Infer<S>[]>({ type: ['array', 'string'], pattern: `^${word}$`, items: items.json, ...rules }),
  /** A mapping, or a list of `items`: defaults are filled in behind no union. */
  objectOr: <S extends Schema<unknown>, I extends Schema<unknown>>(one: S, items: I, rules: JsonSchema = {}) =>
    of<Infer<S> | Infer<I>[]>({ ...one.json, type: ['object', 'array'], items: items.json, ...rules }),
  record: <S extends Schema<unknown>>(values: S, rules: JsonSchema = {}) =>
    of<Record<string, Infer<S>>>({ type: 'object', additionalProperties: values.json, ...rules }),
  object: <P extends Shape>(properties: P) => object(properties, false),
  open: <P extends Shape>(properties: P) => object(properties, true),
  /** A union discriminated by `type`; each member lists its values. */
  tagged: <S extends Schema<unknown>[]>(...members: S) =>
    of<Infer<S[number]>>({
      type: 'object',
      required: ['type'],
      discriminator: { propertyName: 'type' },
      oneOf: members.map(member => member.json),
    }),
  /** Members of different JSON types, for example a string or an object. */
  either: <S extends Schema<unknown>[]>(...members: S) =>
    of<Infer<S[number]>>({ anyOf: members.map(member => member.json) }),
  nullable: <S extends Schema<unknown>>(schema: S): Schema<Infer<S> | null> => {
    const { type, enum: values } = schema.json
    if (typeof type !== 'string') return of({ anyOf: [schema.json, { type: 'null' }] })
    return of({ ...schema.json, type: [type, 'null'], ...(Array.isArray(values) ? { enum: [...values, null] } : {}) })
  },
  /** A key that may be absent and then has this value (written as in the file, for example `"5s"`). */
  default: <S extends Schema<unknown>>(schema: S, value: unknown): Schema<Infer<S>> => ({
    json: { ...schema.json, default: value },
    optional: true,
  }),
  optional: <S extends Schema<unknown>>(schema: S): Schema<Infer<S>> & { readonly optional: true } => ({
    json: schema.json,
    optional: true,
  }),
  /** A key that may be absent or null. */
  maybe: <S extends Schema<unknown>>(schema: S) => s.optional(s.nullable(schema)),
}
