/** Spans as text: each is written once, when it ends, in OTLP's JSON. Objects that wait for an export would cost twice. */
import {
  type Attributes,
  type AttributeValue,
  INVALID_SPANID,
  INVALID_TRACEID,
  type SpanContext,
  SpanStatusCode,
  TraceFlags,
} from '@opentelemetry/api'
import { OTLPExporterBase } from '@opentelemetry/otlp-exporter-base'
import { convertLegacyHttpOptions, createOtlpHttpExportDelegate } from '@opentelemetry/otlp-exporter-base/node-http'
import { emptyResource, type Resource } from '@opentelemetry/resources'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base'

/** Facts of a span that has begun. Times are those of `performance.now()`. */
export interface BegunSpan {
  readonly name: string
  /** Number of OTLP: one more than that of the API. */
  readonly kind: number
  readonly context: SpanContext
  readonly parent: SpanContext | undefined
  readonly start: number
  readonly attributes: Attributes
}

/** The end of a span. */
export interface SpanEnd {
  readonly at: number
  /** 0 where no content came. */
  readonly firstToken: number
  readonly isError: boolean
}

/** Bits of a span's flags: it is known whether the parent is of another process, and it is. */
const [PARENT_KNOWN, PARENT_REMOTE] = [0x100, 0x200]
const TOKEN_EVENT = '{"name":"gateway.first_token","timeUnixNano":"'
const NOWHERE: SpanContext = { traceId: INVALID_TRACEID, spanId: INVALID_SPANID, traceFlags: TraceFlags.SAMPLED }

/** Entry of the library's queue. Only the text is sent. */
export class WrittenSpan implements ReadableSpan {
  declare readonly name: string
  declare readonly kind: ReadableSpan['kind']
  declare readonly startTime: ReadableSpan['startTime']
  declare readonly endTime: ReadableSpan['endTime']
  declare readonly duration: ReadableSpan['duration']
  declare readonly status: ReadableSpan['status']
  declare readonly attributes: Attributes
  declare readonly links: ReadableSpan['links']
  declare readonly events: ReadableSpan['events']
  declare readonly ended: boolean
  declare readonly droppedAttributesCount: number
  declare readonly droppedEventsCount: number
  declare readonly droppedLinksCount: number
  declare readonly resource: Resource
  declare readonly instrumentationScope: ReadableSpan['instrumentationScope']
  readonly text: string

  constructor(begun: BegunSpan, end: SpanEnd) {
    this.text = textOf(begun, end)
  }

  spanContext(): SpanContext {
    return NOWHERE
  }
}
// Members that the queue may read are the same for all: a span that waits costs one object and its text.
Object.assign(WrittenSpan.prototype, { resource: emptyResource(), ended: true })

function textOf(begun: BegunSpan, { at, firstToken, isError }: SpanEnd): string {
  const { name, kind, context, parent, start, attributes } = begun
  const token = firstToken > 0 ? `${TOKEN_EVENT}${nanoOf(firstToken)}","attributes":[],"droppedAttributesCount":0}` : ''
  const above = parent ? `,"parentSpanId":"${parent.spanId}"` : ''
  const state = context.traceState ? `,"traceState":${JSON.stringify(context.traceState.serialize())}` : ''
  const status = isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET
  const flags = context.traceFlags | PARENT_KNOWN | (parent?.isRemote ? PARENT_REMOTE : 0)
  return (
    `{"traceId":"${context.traceId}","spanId":"${context.spanId}"${above}${state},"name":${JSON.stringify(name)}` +
    `,"kind":${kind},"startTimeUnixNano":"${nanoOf(start)}","endTimeUnixNano":"${nanoOf(Math.max(start, at))}"` +
    `,"attributes":${attributesOf(attributes)},"droppedAttributesCount":0,"events":[${token}],"droppedEventsCount":0` +
    `,"status":{"code":${status}},"links":[],"droppedLinksCount":0,"flags":${flags}}`
  )
}

/** Unix nanoseconds; a number holds microseconds. */
const nanoOf = (at: number): string => `${Math.round((performance.timeOrigin + at) * 1000)}000`

/** A list of attributes as JSON. Written by hand: objects for `JSON.stringify` would take twice the time. */
function attributesOf(attributes: Attributes): string {
  let written = ''
  for (const key in attributes) {
    const value = attributes[key]
    if (value === undefined) continue
    written += `${written === '' ? '' : ','}{"key":${JSON.stringify(key)},"value":${anyValueOf(value)}}`
  }
  return `[${written}]`
}

function anyValueOf(value: AttributeValue): string {
  if (typeof value === 'string') return `{"stringValue":${JSON.stringify(value)}}`
  if (typeof value === 'boolean') return `{"boolValue":${value}}`
  if (typeof value === 'number')
    return Number.isInteger(value) ? `{"intValue":${value}}` : `{"doubleValue":${JSON.stringify(value)}}`
  return `{"arrayValue":{"values":[${value.map(one => anyValueOf(one ?? '')).join()}]}}`
}

/** Sends written spans by OTLP over HTTP. */
export function spanExporter(
  config: Parameters<typeof convertLegacyHttpOptions>[0],
  resource: Resource,
  scope: { readonly name: string; readonly version: string },
): OTLPExporterBase<ReadableSpan[]> {
  const sender = `{"attributes":${attributesOf(resource.attributes)},"droppedAttributesCount":0}`
  const head = `{"resourceSpans":[{"resource":${sender},"scopeSpans":[{"scope":${JSON.stringify(scope)},"spans":[`
  return new OTLPExporterBase<ReadableSpan[]>(
    createOtlpHttpExportDelegate<ReadableSpan[], object>(
      convertLegacyHttpOptions(config, 'TRACES', 'v1/traces', { 'Content-Type': 'application/json' }),
      {
        serializeRequest(spans) {
          const texts = spans.flatMap(span => (span instanceof WrittenSpan ? span.text : []))
          return Buffer.from(`${head}${texts.join(',')}]}]}]}`)
        },
        deserializeResponse: answer => (answer.length === 0 ? {} : JSON.parse(Buffer.from(answer).toString())),
      },
    ),
  )
}
