/** The interface of a tool: its schemas, the scope that it needs, and how it runs. */
import type { Catalog } from '../core/catalog.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Services } from '../core/ports.ts'
import { type JsonSchema, type Schema, s } from '../core/schema.ts'
import type { Mapping, Model } from '../core/translator.ts'
import type { MemoryLease } from '../limits/memory.ts'

/** OAuth scopes, in canonical order. */
export const scopes = ['mcp:tools', 'usage:read'] as const
/** A scope that a tool needs. */
export type Scope = (typeof scopes)[number]

/** A content block of a result. */
export type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly data: string; readonly mimeType: string }

/** The result of `tools/call`. */
export interface ToolResult {
  readonly content: readonly Block[]
  readonly structuredContent?: object
  readonly isError?: true
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** A model under its name for requests, with its mappings that the caller may use. */
export interface ListedModel {
  readonly id: string
  readonly model: Model
  readonly mappings: readonly Mapping[]
  /** Absent where one free offer is enough. */
  readonly free?: boolean
}
/** Which models a list includes. */
interface ModelFilter {
  readonly include_deactivated: boolean
  readonly exclude_deprecated: boolean
}

/** Context in which a tool runs. */
export interface ToolContext {
  readonly ex: Exchange
  readonly services: Services
  readonly catalog: Catalog
  /** Memory of the answer, until it is sent. */
  readonly lease: MemoryLease
  /** Lists the models that `GET /v1/models` lists for the same caller. */
  models(wanted: ModelFilter): readonly ListedModel[]
}

/** A row of `tools/list`, and how `tools/call` runs it. */
export interface Tool<A = unknown> {
  readonly name: string
  readonly title: string
  readonly description: string
  /** Undefined: every credential may use it. */
  readonly scope: Scope | undefined
  readonly input: Schema<A>
  readonly output?: JsonSchema
  /** `args` are valid and have their defaults. Throws a GatewayError, whose message becomes a tool error. */
  run(args: A, context: ToolContext): Promise<ToolResult>
}

/** A text block. */
export const textBlock = (text: string): Block => ({ type: 'text', text })
/** A result by which the model can correct its call. */
export const toolError = (text: string): ToolResult => ({ isError: true, content: [textBlock(text)] })

/** A result that holds an object, and the same object as text. */
export const structured = (value: object): ToolResult => ({
  structuredContent: value,
  content: [textBlock(JSON.stringify(value))],
})

/** A nullable field; some clients drop tools with the shorter `type: [X, "null"]`. */
export const orNull = <T>({ json }: Schema<T>): Schema<T | null> => ({ json: { anyOf: [json, { type: 'null' }] } })
/** A count. */
export const count = s.integer({ minimum: 0 })
/** An ISO time. */
export const time = s.string({ format: 'date-time' })
/** A constant. */
export const only = <const V extends string>(value: V): Schema<V> => ({ json: { type: 'string', const: value } })
