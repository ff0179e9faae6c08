/** What a tool is: its schemas, what a caller must be allowed, and what it does. */
import type { Catalog, Mapping, Model } from '../core/catalog.ts'
import type { Exchange } from '../core/exchange.ts'
import type { MemoryLease } from '../core/memory-budget.ts'
import type { Services } from '../core/ports.ts'
import { type JsonSchema, type Schema, s } from '../core/schema.ts'

export const scopes = ['mcp:tools', 'usage:read'] as const
export type Scope = (typeof scopes)[number]

export type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly data: string; readonly mimeType: string }

export interface ToolResult {
  readonly content: readonly Block[]
  readonly structuredContent?: object
  readonly isError?: true
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** A model as the caller may see it, with what offers it. */
export interface ListedModel {
  readonly id: string
  readonly model: Model
  readonly mappings: readonly Mapping[]
}
export interface ListWanted {
  readonly include_deactivated: boolean
  readonly exclude_deprecated: boolean
}

export interface ToolContext {
  readonly ex: Exchange
  readonly services: Services
  readonly catalog: Catalog
  /** Counts what the answer holds in memory until it is sent. */
  readonly lease: MemoryLease
  /** What `GET /v1/models` would list for the same caller. */
  models(wanted: ListWanted): readonly ListedModel[]
}

export interface Tool<A = unknown> {
  readonly name: string
  readonly title: string
  readonly description: string
  /** Undefined for what every credential may use. */
  readonly scope: Scope | undefined
  readonly input: Schema<A>
  readonly output?: JsonSchema
  /** `args` are checked, with defaults. Throws a GatewayError for what a caller may mend. */
  run(args: A, context: ToolContext): Promise<ToolResult>
}

export const textBlock = (text: string): Block => ({ type: 'text', text })
export const toolError = (text: string): ToolResult => ({ isError: true, content: [textBlock(text)] })

/** An object, for programs, and the same as text. */
export const structured = (value: object): ToolResult => ({
  structuredContent: value,
  content: [textBlock(JSON.stringify(value))],
})

/** A field that may be null, in the form that every client maps onto its own schemas. */
export const orNull = <T>({ json }: Schema<T>): Schema<T | null> => ({ json: { anyOf: [json, { type: 'null' }] } })
export const count = s.integer({ minimum: 0 })
export const time = s.string({ format: 'date-time' })
/** One text alone. */
export const only = <const V extends string>(value: V): Schema<V> => ({ json: { type: 'string', const: value } })
