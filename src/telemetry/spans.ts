/** Spans as bytes of OTLP's JSON, each written once, when it ends. Objects and strings that wait for an export cost twice. */
import { INVALID_SPANID, INVALID_TRACEID, type SpanContext, SpanStatusCode, TraceFlags } from '@opentelemetry/api'
import { OTLPExporterBase } from '@opentelemetry/otlp-exporter-base'
import { convertLegacyHttpOptions, createOtlpHttpExportDelegate } from '@opentelemetry/otlp-exporter-base/node-http'
import { emptyResource, type Resource } from '@opentelemetry/resources'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base'

/** Facts of a span. Times are those of `performance.now()`. */
export interface SpanFacts {
  readonly name: string
  /** Number of OTLP: one more than that of the API. */
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  /** As `tracestate` writes it. */
  readonly state: string | undefined
  readonly parent: SpanContext | undefined
  readonly start: number
  /** Attributes as their writers returned them, `operation` before all others. */
  readonly attributes: string
}

/** The end of a span. */
export interface SpanEnd {
  readonly at: number
  /** 0 where no content came. */
  readonly firstToken: number
  isError: boolean
}

/** Makes a writer of an attribute; it returns an empty text without a value. */
export const text =
  (key: string, before = ',') =>
  (value: string | undefined): string =>
    value === undefined ? '' : `${before}{"key":"${key}","value":{"stringValue":${JSON.stringify(value)}}}`
/** Writes the attribute that comes first. */
export const operation = text('gen_ai.operation.name', '')
/** Like `text`, for flags. */
export const flag =
  (key: string) =>
  (value: boolean | undefined): string =>
    value === undefined ? '' : `,{"key":"${key}","value":{"boolValue":${value}}}`
/** Like `text`, for finite numbers. Collectors give an attribute the type of its first value, so that it has but one. */
export const number =
  (key: string, type: 'int' | 'double' = 'int') =>
  (value: number | undefined): string =>
    Number.isFinite(value)
      ? `,{"key":"${key}","value":{"${type}Value":${type === 'int' ? Math.round(value!) : value}}}`
      : ''

/** Bits of a span's flags: it is known whether the parent is of another process, and it is. */
const [PARENT_KNOWN, PARENT_REMOTE] = [0x100, 0x200]
const TOKEN_EVENT = '{"name":"gateway.first_token","timeUnixNano":"'
const NOWHERE: SpanContext = { traceId: INVALID_TRACEID, spanId: INVALID_SPANID, traceFlags: TraceFlags.SAMPLED }
const SPACE = 0x20

/** Entry of the library's queue. Only the bytes are sent. */
export class WrittenSpan implements ReadableSpan {
  declare readonly name: string
  declare readonly kind: ReadableSpan['kind']
  declare readonly startTime: ReadableSpan['startTime']
  declare readonly endTime: ReadableSpan['endTime']
  declare readonly duration: ReadableSpan['duration']
  declare readonly status: ReadableSpan['status']
  declare readonly attributes: ReadableSpan['attributes']
  declare readonly links: ReadableSpan['links']
  declare readonly events: ReadableSpan['events']
  declare readonly ended: boolean
  declare readonly droppedAttributesCount: number
  declare readonly droppedEventsCount: number
  declare readonly droppedLinksCount: number
  declare readonly resource: Resource
  declare readonly instrumentationScope: ReadableSpan['instrumentationScope']
  /** Begins with the comma behind the span before. */
  readonly bytes: Buffer

  constructor(span: SpanFacts, end: SpanEnd) {
    this.bytes = Buffer.from(written(span, end))
  }

  spanContext(): SpanContext {
    return NOWHERE
  }
}
// Members that the queue may read are the same for all: a span that waits costs one object and its bytes.
Object.assign(WrittenSpan.prototype, { resource: emptyResource(), ended: true })

function written(span: SpanFacts, { at, firstToken, isError }: SpanEnd): string {
  const { name, kind, traceId, spanId, state, parent, start, attributes } = span
  const token = firstToken > 0 ? `${TOKEN_EVENT}${nanoOf(firstToken)}","attributes":[],"droppedAttributesCount":0}` : ''
  const above = parent ? `,"parentSpanId":"${parent.spanId}"` : ''
  const stateText = state === undefined ? '' : `,"traceState":${JSON.stringify(state)}`
  const status = isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET
  const flags = TraceFlags.SAMPLED | PARENT_KNOWN | (parent?.isRemote ? PARENT_REMOTE : 0)
  return (
    `,{"traceId":"${traceId}","spanId":"${spanId}"${above}${stateText},"name":${JSON.stringify(name)}` +
    `,"kind":${kind},"startTimeUnixNano":"${nanoOf(start)}","endTimeUnixNano":"${nanoOf(Math.max(start, at))}"` +
    `,"attributes":[${attributes}],"droppedAttributesCount":0,"events":[${token}],"droppedEventsCount":0` +
    `,"status":{"code":${status}},"links":[],"droppedLinksCount":0,"flags":${flags}}`
  )
}

/** Unix nanoseconds; a number holds microseconds. */
const nanoOf = (at: number): string => `${Math.round((performance.timeOrigin + at) * 1000)}000`

/** Sends written spans by OTLP over HTTP. */
export function spanExporter(
  config: Parameters<typeof convertLegacyHttpOptions>[0],
  { attributes }: Resource,
  scope: { readonly name: string; readonly version: string },
): OTLPExporterBase<ReadableSpan[]> {
  const facts = Object.entries(attributes).map(([key, value]) => ({ key, value: { stringValue: String(value) } }))
  const sender = JSON.stringify({ attributes: facts, droppedAttributesCount: 0 })
  const head = Buffer.from(
    `{"resourceSpans":[{"resource":${sender},"scopeSpans":[{"scope":${JSON.stringify(scope)},"spans":[`,
  )
  const tail = Buffer.from(']}]}]}')
  return new OTLPExporterBase<ReadableSpan[]>(
    createOtlpHttpExportDelegate<ReadableSpan[], object>(
      convertLegacyHttpOptions(config, 'TRACES', 'v1/traces', { 'Content-Type': 'application/json' }),
      {
        serializeRequest(spans) {
          const body = Buffer.concat([head, ...spans.map(span => (span as WrittenSpan).bytes), tail])
          // Overwrites the comma before the first span.
          body[head.length] = SPACE
          return body
        },
        deserializeResponse: answer => (answer.length === 0 ? {} : JSON.parse(Buffer.from(answer).toString())),
      },
    ),
  )
}
