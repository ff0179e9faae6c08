/** What the filters make of an operation that is not chat: the cache of bytes, the parameters, the money reserved. */

import t from 'tap'
import type { Event } from '../../src/core/event.ts'
import type { CachedReply, HoldRequest, Services } from '../../src/core/ports.ts'
import type { Reply } from '../../src/core/reply.ts'
import { embeddings } from '../../src/endpoints/inference.ts'
import { billing } from '../../src/filters/billing/index.ts'
import { cache } from '../../src/filters/cache.ts'
import { translate } from '../../src/filters/translate/index.ts'
import { eventsOf, exchange, principal } from '../core/kit.ts'
import { target } from '../plugins/wire-kit.ts'

const data = '[{"object":"embedding","index":0,"embedding":[0.5]}]'
const bytes: Event = { type: 'result', value: { encoding: 'float' }, bytes: Buffer.from(data) }
const usage: Event = { type: 'usage', usage: { prompt: 7 } }
const ask = (request: object = {}, to = target()) => {
  const ex = exchange({
    endpoint: embeddings,
    principal: { ...principal, cacheTtlMs: 1000 },
    snapshot: { version: 'v1' },
    target: to,
    request: { model: 'acme-large', input: ['four', 'more'], ...request },
  })
  ex.readRequest = () => Promise.resolve(ex.request!)
  return ex
}
const made = (services: object) => ({ metrics: { cacheLookup() {} }, ...services }) as unknown as Services
const reply = (...events: Event[]): Reply => ({ status: 200, headers: [], events: eventsOf(events) })

t.test('bytes are kept as text, which every store can keep, and only as many as an entry may have', async t => {
  const kept: [CachedReply, number][] = []
  const services = {
    cache: { get: () => undefined, set: (_: string, entry: CachedReply, size: number) => kept.push([entry, size]) },
  }
  const run = async (max_entry: number, ...events: Event[]) => {
    const filter = cache.create({ max_entry }, made(services))
    const answer = await filter.handle!(ask(), async () => reply(...events))
    const seen: Event[] = []
    for await (const batch of answer.events) seen.push(...batch)
    t.strictSame(seen, events, 'what passes is what came')
  }
  await run(1000, usage, bytes)
  t.equal(kept.length, 1)
  const [[entry, size]] = kept as [[CachedReply, number]]
  t.strictSame(entry.events, [usage, { ...bytes, bytes: data }])
  t.equal(size, JSON.stringify(entry).length)
  await run(data.length - 1, bytes)
  await run(data.length, bytes)
  t.equal(kept.length, 1, 'neither bytes that are too many nor a reply that is')
  await run(1000, { type: 'result', value: { encoding: 'float', vectors: [[0.5]] } })
  t.equal(kept.length, 2, 'values as they are')
})

t.test('a request with another input, form or size is another entry', async t => {
  const keys = new Set<string>()
  const services = { cache: { get: (key: string) => void keys.add(key), set: () => {} } }
  const filter = cache.create({ max_entry: 1 }, made(services))
  const requests = [{}, { input: 'other' }, { encoding_format: 'base64' }, { dimensions: 4 }, { model: 'other' }, {}]
  for (const request of requests) await filter.handle!(ask(request), async () => reply(bytes))
  t.equal(keys.size, 5)
})

t.test('a mapping that lists its parameters without user gets none', async t => {
  const sent: object[] = []
  const translator = {
    op: 'embeddings',
    wire: 'acme.embeddings',
    encode(input: object) {
      sent.push(input)
      return { path: '/', body: {} }
    },
  }
  for (const parameters of [undefined, new Set(['user']), new Set(['dimensions'])]) {
    const to = { ...target({ mapping: { parameters } }), translator: translator as never }
    const request = { user: 'org-1', dimensions: 4, encoding_format: 'float' }
    await translate.create({}, {} as Services).handle!(ask(request, to), async () => reply())
  }
  const all = { model: 'acme-large', input: ['four', 'more'], user: 'org-1', dimensions: 4, encoding_format: 'float' }
  const { user: _, ...rest } = all
  t.strictSame(sent, [all, all, rest])
})

t.test('what is reserved is the prompt alone, whatever an answer may usually cost', async t => {
  const holds: HoldRequest[] = []
  const ledger = { hold: async (request: HoldRequest) => void holds.push(request) }
  const services = made({ ledger, metrics: { unpriced: () => {} }, now: () => 0 })
  const price = { rates: { prompt: 1000n, completion: 9_000_000n }, tiers: [] }
  const filter = billing.create(
    { stream_hold: 4096, least_output: 256, hold_unmeasured: true, storage: '0.01' },
    services,
  )
  const ex = ask({}, target({ mapping: { price } }))
  await filter.handle!(ex, async () => reply()).catch(() => {})
  t.match(holds, [{ amount: 2n, request: { endpoint: 'embeddings', requestedModel: 'acme-large' } }])
})
