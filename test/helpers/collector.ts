/** An OTLP collector that keeps what it gets, or fails as it is told. */
import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Scope } from './child.ts'

interface Value {
  stringValue?: string
  intValue?: number
  doubleValue?: number
  boolValue?: boolean
}
type Pairs = { key: string; value: Value }[]

/** One span, with its attributes by name. */
export interface CollectedSpan {
  name: string
  kind: number
  traceId: string
  spanId: string
  parentSpanId?: string
  traceState?: string
  attributes: Record<string, unknown>
  events: string[]
  status: number
}

interface WireSpan extends Omit<CollectedSpan, 'attributes' | 'events' | 'status'> {
  attributes: Pairs
  events: { name: string }[]
  status: { code?: number }
}

export interface Collector {
  readonly url: string
  /** Requests that have come. */
  readonly requests: number
  /** All that was sent, as text. */
  readonly text: string
  /** Headers of the last request. */
  readonly headers: Readonly<Record<string, unknown>>
  /** Resolves with the spans once `enough` says so. */
  spans(enough: (spans: CollectedSpan[]) => boolean): Promise<CollectedSpan[]>
  /** Resolves once what was sent holds all of these texts. */
  saw(...texts: string[]): Promise<void>
}

const record = (pairs: Pairs): Record<string, unknown> =>
  Object.fromEntries(pairs.map(({ key, value }) => [key, Object.values(value)[0]]))

/** `status` answers each export; without one the collector hangs. */
export async function startCollector(t: Scope, status: number | undefined = 200): Promise<Collector> {
  const bodies: string[] = []
  let headers: Record<string, unknown> = {}
  let requests = 0
  const changes = new EventEmitter()
  const server = createServer(async (request, response) => {
    requests++
    headers = request.headers
    let body = ''
    for await (const chunk of request) body += chunk
    bodies.push(body)
    changes.emit('export')
    if (status !== undefined) response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const spansNow = () => bodies.filter(body => body.includes('resourceSpans')).flatMap(spansOf)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get requests() {
      return requests
    },
    get text() {
      return bodies.join('\n')
    },
    get headers() {
      return headers
    },
    async spans(enough) {
      for (;;) {
        const spans = spansNow()
        if (enough(spans)) return spans
        await once(changes, 'export')
      }
    },
    async saw(...texts) {
      while (!texts.every(text => bodies.some(body => body.includes(text)))) await once(changes, 'export')
    },
  }
}

function spansOf(body: string): CollectedSpan[] {
  const { resourceSpans } = JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: WireSpan[] }[] }[] }
  return resourceSpans
    .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
    .map(span => ({
      ...span,
      attributes: record(span.attributes),
      events: span.events.map(({ name }) => name),
      status: span.status.code ?? 0,
    }))
}
