/** What goes on behind the network: many answers come in one turn of the loop, and what is done with each takes later ones. */
import t from 'tap'
import type { ContentPart } from '../../src/core/chat-request.ts'
import type { Event } from '../../src/core/event.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Reply } from '../../src/core/filter.ts'
import { MemoryBudget } from '../../src/core/memory-budget.ts'
import type { MediaFetcher, Services } from '../../src/core/ports.ts'
import type { StoredResponses } from '../../src/core/stored-responses.ts'
import type { Decoder, Target, Translator } from '../../src/core/translator.ts'
import { upstreamError, upstreamErrorOf } from '../../src/core/upstream-error.ts'
import { chat } from '../../src/endpoints/chat.ts'
import { route } from '../../src/filters/route.ts'
import { translate } from '../../src/filters/translate/index.ts'
import { CoalescedChunks } from '../../src/lib/chunk-coalescer.ts'
import { FollowUps } from '../../src/upstream/follow-ups.ts'
import type { ProviderFetcher } from '../../src/upstream/provider-fetcher.ts'
import type { Transport } from '../../src/upstream/transport.ts'
import { exchange } from '../core/kit.ts'
import { inLoop } from '../helpers/in-loop.ts'
import { target } from '../plugins/wire-kit.ts'
import { asking, catalogOf, Memory, priced, provider, settingsOf } from '../routing/kit.ts'

const MANY = 5
/** More than one turn has room for. */
const FULL_MS = 25
const AT = 'https://a.example/a'
const PNG = 'data:image/png;base64,iVBORw0KGgo='

/** Takes all of a turn, as what is large does. */
function work(): void {
  const from = performance.now()
  while (performance.now() - from < FULL_MS);
}

const media: MediaFetcher = {
  image: async () => PNG,
  audio: async () => ({ pieces: [Buffer.from('%PDF-1.4\n')], contentType: '' }),
}
const services = () => ({ memory: new MemoryBudget(1024 * 1024, { memory: () => 0 }), media, now: () => 0 })
const none: Reply = { status: 200, headers: [], events: [] as never }

/** One request whose part has to be fetched for its provider. */
async function fetched(part: ContentPart, done: () => void): Promise<void> {
  const ex = exchange({ request: { model: 'm', messages: [{ role: 'user', content: [part] }] } })
  const translator = { wire: 'w', op: 'chat', encode: () => ({ path: '/', body: {} }) } as unknown as Translator
  ex.target = target({ translator, provider: { inlineMedia: true } })
  const filter = translate.create({}, services() as unknown as Services)
  await filter.handle!(ex, async () => {
    done()
    return none
  })
  filter.finish!(ex, true)
}

/** What stands at an address of a provider, of any status: `at` that of the next one. */
function following(status: number, body: string, done: () => void, decoder: Partial<Decoder> = {}): Promise<Event[]> {
  const content = new CoalescedChunks()
  content.add(Buffer.from(body))
  const fetcher = { get: async () => ({ status, location: undefined, retryAfter: undefined, content }) }
  const follow = new FollowUps({} as Transport, fetcher as unknown as ProviderFetcher)
  let isRead = false
  const frame = (): Event[] => {
    isRead = true
    done()
    return [{ type: 'text', choice: 0, text: 'a' }]
  }
  const error: Translator['error'] = (status, body) => {
    done()
    return upstreamError(status, { message: body })
  }
  return follow.all([{ type: 'wait', url: AT, afterMs: 0 }], {
    target: target({ translator: { wire: 'w', error } as unknown as Translator }),
    decoder: { done: false, frame, end: () => [], ...decoder },
    signal: exchange().signal,
    lease: services().memory.lease('org'),
    mask: undefined,
    cancellable: undefined,
    tenant: 'org',
    requestId: 'r',
    remainingMs: () => (isRead ? 0 : 60_000),
  })
}

/** A request whose first provider fails at once. */
async function retried(done: () => void): Promise<void> {
  const filter = route.create(settingsOf({ exploration: 0 }), new Memory() as never)
  const offer = (id: string, price: string) => [provider(id), priced(price)] as const
  const catalog = catalogOf({ m: { offers: [offer('a', '1'), offer('b', '2')] as never } })
  const ex = asking(catalog)
  Reflect.deleteProperty(ex, 'turn')
  let attempts = 0
  await filter.handle!(ex, async () => {
    if (++attempts === 1) throw upstreamError(500, { message: 'down' })
    done()
    return none
  })
}

/** A request that continues a stored one. */
async function continued(done: () => void): Promise<void> {
  const codec = { ...chat.codec, decode: () => done() as never }
  const ex: Exchange = exchange({ endpoint: { ...chat, codec } as unknown as typeof chat, body: async () => ({}) })
  ex.stored = { read: async (body: unknown) => body } as unknown as StoredResponses
  await ex.readRequest()
}

t.test('what goes on behind many answers that are there at once has turns of the loop, one or two in each', async t => {
  const failing = (done: () => void): Target => {
    const error: Translator['error'] = status => {
      done()
      return upstreamError(status, { message: 'a' })
    }
    return target({ translator: { wire: 'w', error } as unknown as Translator })
  }
  const rows: [says: string, one: (done: () => void) => Promise<unknown>][] = [
    ['errors', done => upstreamErrorOf(failing(done), 500, Buffer.from('{}'), 'org')],
    ['errors of states', done => following(400, '{}', done).catch(() => undefined)],
    ['states', done => following(200, `{${' '.repeat(5000)}}`, done)],
    ['files', done => fetched({ type: 'file', file: { file_data: AT } }, done)],
    ['images', done => fetched({ type: 'image_url', image_url: { url: AT } }, done)],
    ['failed attempts', retried],
    ['conversations', continued],
  ]
  for (const [says, one] of rows) {
    const seen: number[] = []
    await inLoop(async turn => {
      const done = () => {
        seen.push(turn())
        work()
      }
      await Promise.all(Array.from({ length: MANY }, () => one(done)))
    })
    t.equal(seen.length, MANY, says)
    // One that has waited, and one that is new: how they fall together is up to the machine.
    const inTurn = (at: number) => seen.filter(other => other === at).length
    t.ok(
      seen.every(at => inTurn(at) <= 2),
      `${says}: ${seen}`,
    )
  }
})

t.test('a state that holds more than any real one is not read', async t => {
  const row = (count: number) => following(200, `{"a":[${'0,'.repeat(count)}0]}`, () => undefined)
  t.match(await row(9_000), [{ type: 'text' }])
  await t.rejects(row(10_000), { message: /more than 10,000 JSON values/, failover: true })
  await t.rejects(
    following(200, `${'['.repeat(200)}${']'.repeat(200)}`, () => undefined),
    { message: /128 levels/ },
  )
})
