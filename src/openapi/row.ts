/** Describes an endpoint beside its row in `src/endpoints`, names schemas, and has those of lists. */
import { type JsonSchema, type Schema, s } from '../core/schema.ts'

/** A group of operations in the document. */
type Tag =
  | 'Chat'
  | 'Messages'
  | 'Responses'
  | 'Google'
  | 'AI SDK'
  | 'Embeddings'
  | 'Images'
  | 'Audio'
  | 'Videos'
  | 'Documents'
  | 'Realtime'
  | 'Catalogue'
  | 'Account'
  | 'MCP'
  | 'OAuth'
  | 'Gateway'

/** Bodies of errors, by their schemas in `errors.ts`. */
export type ErrorForm =
  | 'Error'
  | 'MessagesError'
  | 'GoogleError'
  | 'AiSdkError'
  | 'CatalogueError'
  | 'RpcError'
  | 'OAuthError'
  | 'ErrorPage'

/** A parameter of a query, a path or a header. */
export interface Parameter {
  readonly description: string
  readonly schema?: JsonSchema
  readonly required?: true
  readonly example?: unknown
}

/** A request that succeeds: by its body, or by what its query holds. */
export interface Example {
  readonly summary: string
  readonly value: unknown
}

/** An answer that is no error. */
export interface Answer {
  readonly description: string
  /** Schemas by content type; none for an answer without a body. */
  readonly content?: Readonly<Record<string, Schema<unknown>>>
  readonly example?: unknown
  /** Operations that take the id of the answer as their `id`. */
  readonly links?: readonly string[]
}

/** The description of one endpoint. */
export interface Row {
  /** The `operationId`, after which clients name a method. */
  readonly id: string
  readonly tag: Tag
  readonly summary: string
  readonly description?: string
  /** Headers by name; the usual ones of the operation stand in `parameters.ts`. */
  readonly headers?: Readonly<Record<string, Parameter>>
  readonly query?: Readonly<Record<string, Parameter>>
  readonly path?: Readonly<Record<string, Parameter>>
  /** The name of the request's schema. */
  readonly body?: string
  /** The schema of a body that no codec describes, or of another content type. */
  readonly bodies?: Readonly<Record<string, Schema<unknown>>>
  /** The fields of a form that are files, beside those of the body. */
  readonly files?: readonly string[]
  /** The fields of a form, where they are others than those of the body. */
  readonly form?: Schema<unknown>
  readonly examples?: Readonly<Record<string, Example>>
  readonly answers: Readonly<Record<number, Answer>>
  readonly errors?: ErrorForm
  /** Also serves requests without a key. */
  readonly isPublic?: true
  /** Statuses of errors that only this operation has. */
  readonly also?: readonly number[]
  /** Whether the operation is there with these settings. */
  readonly needs?: 'realtime'
}

/** Answers of an operation that succeeds with JSON, or with the events of a stream. */
export const answered = (
  description: string,
  schema: Schema<unknown>,
  { stream, ...more }: Pick<Answer, 'example' | 'links'> & { readonly stream?: Schema<unknown> } = {},
): Row['answers'] => ({
  200: {
    description,
    content: { 'application/json': schema, ...(stream && { 'text/event-stream': stream }) },
    ...more,
  },
})

/** Rows by method and path, as `src/endpoints` has them. */
export type Rows = Readonly<Record<string, Row>>

const names = new WeakMap<JsonSchema, string>()

/** Gives a schema a name, under which it stands in `components`. */
export function named<S extends Schema<unknown>>(name: string, schema: S): S {
  names.set(schema.json, name)
  return schema
}

/** The name that `named` gave to a schema; undefined without one. */
export const nameOf = (json: JsonSchema): string | undefined => names.get(json)

/** A value of the schema, or null. */
export const orNull = <T>(schema: Schema<T>): Schema<T | null> => ({ json: { anyOf: [schema.json, { type: 'null' }] } })
/** A value that never changes. */
export const constant = <const T>(value: T): Schema<T> => ({ json: { const: value } })
/** Bytes that are no JSON. */
export const binary: Schema<Buffer> = { json: { type: 'string', format: 'binary' } }
/** An image of one pixel, for examples. */
export const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** A page of values. */
export const listOf = <T>(item: Schema<T>) =>
  s.open({
    object: constant('list'),
    data: s.array(item),
    has_more: s.boolean(),
    first_id: orNull(s.string()),
    last_id: orNull(s.string()),
  })

/** Parameters of a page. */
export const cursor: Readonly<Record<string, Parameter>> = {
  limit: {
    description: 'The most entries of a page; 20 if absent.',
    schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
  },
  order: { description: 'Newest first, or oldest first.', schema: { enum: ['asc', 'desc'], default: 'desc' } },
  after: { description: 'The id of the entry before the page.' },
}
