/** Replays whole earlier answers to the same request of the same project, while the project wants that. */
import { createHash } from 'node:crypto'
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory, Reply } from '../core/filter.ts'
import type { CachedReply, Services } from '../core/ports.ts'
import { type Infer, s } from '../core/schema.ts'

const options = s.object({
  /** Larger answers are not kept. */
  max_entry: s.default(s.size(), '1MiB'),
})

export const cache: FilterFactory<Infer<typeof options>> = {
  name: 'cache',
  options,
  needs: ['principal'],
  create({ max_entry }, services) {
    const answer = async (ex: Exchange, ttlMs: number, next: () => Promise<Reply>): Promise<Reply> => {
      await ex.input()
      const key = keyOf(ex)
      const found = services.cache.get(key)
      const hit = found instanceof Promise ? await found : found
      if (hit) return replay(ex, hit)
      const reply = await next()
      reply.headers.push('x-gateway-cache', 'MISS')
      return {
        ...reply,
        events: record(ex, reply.events, events => store(services, key, ttlMs, max_entry, ex, events)),
      }
    }
    return {
      handle(ex, next) {
        const ttlMs = ex.policy?.keepsReplies === false ? undefined : ex.principal?.cacheTtlMs
        return ttlMs === undefined || ex.header('x-no-cache') === 'true' ? next() : answer(ex, ttlMs, next)
      },
    }
  },
}

/**
 * Tenant, configuration and everything that the answer may depend on. `stream` is left out: the events of an answer
 * serve both forms.
 */
function keyOf(ex: Exchange): string {
  const { orgId, projectId, mode } = ex.principal!
  const tenant = [orgId, projectId, mode, ex.access?.id]
  // A client's own body may say more than its canonical reading.
  const parts = [tenant, ex.snapshot.version, ex.endpoint.name, sorted(ex.request!), sorted(ex.native?.body)]
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64')
}

function sorted(request: object = {}): [string, unknown][] {
  const entries = Object.entries(request).filter(([name]) => name !== 'stream')
  return entries.sort(([a], [b]) => (a < b ? -1 : 1))
}

function replay(ex: Exchange, hit: CachedReply): Reply {
  ex.cached = hit
  ex.requestedModel ||= ex.request!.model
  return { status: 200, headers: ['x-gateway-cache', 'HIT'], events: once(hit.events) }
}

async function* once(events: readonly Event[]): AsyncGenerator<readonly Event[]> {
  yield events
}

async function* record(ex: Exchange, events: Reply['events'], done: (events: Event[]) => void): Reply['events'] {
  const kept: Event[] = []
  for await (const batch of events) {
    kept.push(...batch)
    yield batch
  }
  if (!ex.failure && !ex.signal.aborted) done(kept)
}

function store(services: Services, key: string, ttlMs: number, maxBytes: number, ex: Exchange, events: Event[]): void {
  const { mapping } = ex.target!
  if (!events.some(({ type }) => type === 'finish' || type === 'result')) return
  if (events.some(event => event.type === 'finish' && event.reason === 'content_filter')) return
  if (events.some(event => event.type === 'result' && event.bytes && event.bytes.length > maxBytes)) return
  const reply = {
    events: events.map(storable),
    provider: mapping.provider.id,
    model: mapping.model.id,
    externalId: mapping.externalId,
  }
  const bytes = JSON.stringify(reply).length
  if (bytes <= maxBytes) void services.cache.set(key, reply, bytes, ttlMs)
}

/** The event in a form that any store can keep. */
const storable = (event: Event): Event =>
  event.type === 'result' && event.bytes ? { ...event, bytes: event.bytes.toString('utf8') } : event
