/** Replays earlier complete answers to the same request of the same owner, where the project enables it. */
import type { Catalog } from '../core/catalog.ts'
import { type Event, isContent } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory } from '../core/filter.ts'
import type { CachedReply } from '../core/ports.ts'
import type { Reply } from '../core/reply.ts'
import { type Infer, s } from '../core/schema.ts'
import { jsonHash } from '../json/lossless.ts'
import { exceeds, weigh } from '../json/size.ts'
import { Upload } from '../lib/body.ts'
import { errors } from '../lib/error.ts'
import { perObject } from '../lib/per-object.ts'
import { HeldValues } from '../limits/held.ts'
import type { MemoryBudget } from '../limits/memory.ts'
import { scheduler } from '../limits/scheduler.ts'
import { ownerOf } from '../policy/owner.ts'
import { splitsProjects } from '../routing/conditions.ts'
import { virtualFor } from '../routing/rules.ts'
import { isCopy } from './copy.ts'
import { isHealed } from './healing/index.ts'
import { isMoved } from './route/index.ts'
import { ExchangeQuery } from './routing-query.ts'

const options = s.object({
  /** Larger answers are not kept. */
  max_entry: s.default(s.size(), '1MiB'),
})

/** Keyed by tenant, configuration and all of the request but `stream`. `x-no-cache: true` skips it. */
export const cache: FilterFactory<Infer<typeof options>> = {
  name: 'cache',
  options,
  needs: ['principal'],
  create({ max_entry }, services) {
    const answer = async (ex: Exchange, ttlMs: number, next: () => Promise<Reply>): Promise<Reply> => {
      await hashUploads(await ex.readRequest(), ex)
      const key = await keyOf(ex, ttlMs)
      const found = services.cache.get(key, ex.caller.principal!.orgId)
      const hit = found instanceof Promise ? await found : found
      services.metrics.cacheLookup(hit ? 'hit' : 'miss')
      if (hit) return replay(ex, hit, services.memory)
      const reply = await next()
      reply.headers.push('x-gateway-cache', 'MISS')
      const keep = (events: readonly Event[], size: number) => {
        if (!isWorthKeeping(events) || isForOnePayer(ex) || ex.answer.healingSkipped) return
        const entry = entryOf(ex, events)
        // The commas between the events are not in their own size.
        const bytes = Buffer.byteLength(JSON.stringify({ ...entry, events: [] })) + size + events.length - 1
        if (bytes <= max_entry) void services.cache.set(key, entry, bytes, ttlMs, ex.caller.principal!.orgId)
      }
      return { ...reply, events: record(ex, reply.events, max_entry, keep) }
    }
    /** The time of a virtual model counts before the project's. */
    const timed = async (ex: Exchange, ofProject: number | undefined, next: () => Promise<Reply>): Promise<Reply> => {
      await ex.readRequest()
      const ttlMs = virtualFor(new ExchangeQuery(ex))?.cacheMs ?? ofProject ?? 0
      return ttlMs === 0 ? next() : answer(ex, ttlMs, next)
    }
    return {
      handle(ex, next) {
        const isKept = ex.caller.policy?.keepsReplies !== false && !ex.operation.neverReplayed && !ex.endpoint.counts
        if (!isKept || ex.header('x-no-cache') === 'true' || isCopy(ex)) return next()
        const ttlMs = ex.caller.principal?.cacheTtlMs
        if (hasOwnTimes(ex.snapshot.catalog)) return timed(ex, ttlMs, next)
        return ttlMs === undefined ? next() : answer(ex, ttlMs, next)
      },
    }
  },
}

/** Whether a virtual model sets how long answers are kept. */
const hasOwnTimes = perObject(({ virtual }: Catalog): boolean =>
  [...(virtual?.values() ?? [])].some(({ cacheMs }) => cacheMs !== undefined),
)

/**
 * Tenant, configuration and everything that the answer may depend on. `stream` is left out: the events of an answer
 * serve both forms, unless only one of them is healed.
 */
async function keyOf(ex: Exchange, ttlMs: number): Promise<string> {
  const { orgId, projectId, session } = ownerOf(ex.caller.principal!)
  const { mode } = ex.caller.principal!
  // With the time, so that one that is made shorter counts for what was kept before.
  const tenant: unknown[] = [orgId, projectId, session, mode, ex.caller.access?.id, ttlMs]
  if (splitsProjects(ex.snapshot.catalog)) tenant.push(ex.caller.principal!.keyId, [...ex.caller.labels.tags].sort())
  // A client's own body and headers may say more than its canonical reading.
  const parts = [
    tenant,
    ex.snapshot.version,
    ex.endpoint.name,
    sorted(ex.request!),
    sorted(ex.input.native?.body),
    sorted(ex.input.native?.headers),
    isHealed(ex),
  ]
  const hash = await ex.step(() => jsonHash(parts))
  return hash.digest('base64')
}

/** Files stand in a request by themselves, or as the `file` of an image. */
async function hashUploads(request: object, { caller: { tenant } }: Exchange): Promise<void> {
  for (const member of Object.values(request)) {
    for (const item of Array.isArray(member) ? member : [member]) {
      const file = item instanceof Upload ? item : item?.file
      if (file instanceof Upload) await scheduler.run(tenant, () => file.hash())
    }
  }
}

function sorted(request: object = {}): [string, unknown][] {
  const entries = Object.entries(request).filter(([name]) => name !== 'stream')
  return entries.sort(([a], [b]) => (a < b ? -1 : 1))
}

/**
 * Passes an answer on. When it has ended without failure, calls `keep` with its events in a form that any store can
 * keep, and the bytes of their JSON. Drops an answer once it exceeds `maxBytes`.
 */
async function* record(
  ex: Exchange,
  events: Reply['events'],
  maxBytes: number,
  keep: (events: readonly Event[], size: number) => void,
): Reply['events'] {
  let kept: Event[] = []
  let size = 0
  for await (const batch of events) {
    for (const event of batch) {
      if (size > maxBytes) break
      if (event.type === 'progress') continue
      const form = storable(event, maxBytes)
      size += form ? Buffer.byteLength(JSON.stringify(form)) : Infinity
      if (form) kept.push(form)
    }
    if (size > maxBytes) kept = []
    yield batch
  }
  if (size <= maxBytes && !ex.answer.failure && !ex.signal.aborted) keep(kept, size)
}

/** The event in a form that any store can keep; undefined for a failure, and for what is too much. */
function storable(event: Event, maxBytes: number): Event | undefined {
  if (event.type === 'error') return undefined
  // To write 28 MB of an image for its length alone takes 80 ms.
  if (event.type !== 'result' || !event.bytes) return exceeds(event, maxBytes, 0) ? undefined : event
  return event.bytes.length > maxBytes ? undefined : { ...event, bytes: event.bytes.toString('utf8') }
}

/** Whether an answer is complete, with an end that a repeated request would not improve. */
const isWorthKeeping = (events: readonly Event[]): boolean =>
  events.some(({ type }) => type === 'finish' || type === 'result') &&
  events.some(event => isContent(event) && event.type !== 'finish') &&
  !events.some(event => event.type === 'finish' && event.reason === 'content_filter')

/**
 * Whether the money of its payer, or the gateway, ended the answer, had another limit sent than its caller's, which
 * changes more than its end, or another model used: another one's would not.
 */
const isForOnePayer = (ex: Exchange): boolean =>
  ex.answer.isCut || ex.answer.stoppedBy !== undefined || ex.outbound.limit !== undefined || isMoved(ex)

function entryOf(ex: Exchange, events: readonly Event[]): CachedReply {
  const { provider, model, externalId } = ex.target!.mapping
  const { logId, at } = ex
  const { model: requestedModel, provider: requestedProvider } = ex.requested
  return { events, provider: provider.id, model: model.id, externalId, requestedModel, requestedProvider, logId, at }
}

const BYTES_OF_CHARACTER = 2
/** Characters of a piece, and at least of a batch: its client takes one before the next is written. */
const BATCH_CHARACTERS = 32 * 1024

/**
 * A cached answer as its client gets it: within memory, and a piece of a stream at a time.
 *
 * Throws 529 where there is no memory for the entry: the cache may drop it long before its client has taken it.
 */
function replay(ex: Exchange, hit: CachedReply, memory: MemoryBudget): Reply {
  const { events } = hit
  const lease = memory.lease(ex.caller.tenant)
  if (!lease.grow(BYTES_OF_CHARACTER * weigh(events))) throw errors.overloaded()
  ex.answer.cached = hit
  ex.requested.model = hit.requestedModel
  ex.requested.provider = hit.requestedProvider
  const batches = ex.streaming ? batchesOf(events) : [events]
  return { status: 200, headers: ['x-gateway-cache', 'HIT'], events: new HeldValues(batches, () => lease.release()) }
}

/** Long texts come in pieces, as from a provider. */
function* batchesOf(events: readonly Event[]): Generator<readonly Event[]> {
  let batch: Event[] = []
  let length = 0
  for (const event of events) {
    for (const piece of piecesOf(event)) {
      batch.push(piece)
      length += weigh(piece)
      if (length < BATCH_CHARACTERS) continue
      yield batch
      batch = []
      length = 0
    }
  }
  if (batch.length > 0) yield batch
}

function* piecesOf(event: Event): Generator<Event> {
  if (event.type !== 'text' || event.text.length <= BATCH_CHARACTERS) {
    yield event
    return
  }
  const { text } = event
  for (let at = 0; at < text.length; ) {
    const end = at + BATCH_CHARACTERS - (isSplit(text, at + BATCH_CHARACTERS) ? 1 : 0)
    yield { ...event, text: text.slice(at, end) }
    at = end
  }
}

/** Whether a character of two units would be cut. */
const isSplit = (text: string, at: number): boolean => /[\ud800-\udbff]/.test(text.charAt(at - 1))
