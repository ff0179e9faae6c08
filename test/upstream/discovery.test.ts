/** What is read of the lists of models that providers have, and what becomes of it when they come and go. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { OpenCatalog } from '../../src/config/open.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import type { Log } from '../../src/core/ports.ts'
import type { Provider } from '../../src/core/translator.ts'
import { Discovery, FoundModels } from '../../src/upstream/discovery.ts'
import { target } from '../plugins/wire-kit.ts'

type Answer = (req: IncomingMessage, res: ServerResponse) => void

const listing =
  (models: unknown): Answer =>
  (_, res) =>
    void res.end(JSON.stringify({ object: 'list', data: models }))

interface Scene {
  readonly discovery: Discovery
  readonly found: FoundModels
  readonly port: number
  /** What was heard of the engine, by name. */
  ids(): string[]
  /** How the engine answers from now on. */
  answers(answer: Answer): void
  readonly asked: IncomingMessage[]
  readonly changes: number[]
  readonly logged: string[]
}

interface SceneOptions {
  readonly own?: string
  readonly deadlineMs?: number
}

/** An engine on a port of its own, and who looks it up. */
async function scene(t: Test, more: Partial<Provider> = {}, options: SceneOptions = {}): Promise<Scene> {
  const { own = '127.0.0.1:1', deadlineMs = 10_000 } = options
  let answer = listing([])
  const asked: IncomingMessage[] = []
  const server = createServer((req, res) => {
    asked.push(req)
    answer(req, res)
  }).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const found = new FoundModels()
  const changes: number[] = []
  found.onChange = lists => void changes.push(lists.length)
  const base = { id: 'engine', baseUrl: `http://127.0.0.1:${port}/v1`, auth: { scheme: 'none' }, ...more } as const
  const { provider, mapping } = target({ provider: base })
  const open = new OpenCatalog(mapping, new Set(['mapped']), () => found.of(provider.baseUrl))
  const providers = new Map(
    [provider, target({ provider: { id: 'other', baseUrl: base.baseUrl } }).provider].map(one => [one.id, one]),
  )
  const catalog: Catalog = { models: new Map(), aliases: new Map(), providers, open: new Map([['engine', open]]) }
  const logged: string[] = []
  const log: Log = { debug() {}, info: (_, message) => void logged.push(message), warn() {}, error() {} }
  const discovery = new Discovery({
    catalog: () => catalog,
    found,
    own: () => own.replace('PORT', `${port}`),
    log,
    deadlineMs,
  })
  t.teardown(async () => {
    await discovery.close()
    server.closeAllConnections()
    server.close()
  })
  return {
    ...{ discovery, found, port, asked, changes, logged },
    ids: () => open.listed.map(({ externalId }) => externalId),
    answers: next => {
      answer = next
    },
  }
}

t.test('a provider that is not looked up lists nothing, and the same nothing each time', t => {
  const open = new OpenCatalog(target().mapping, new Set())
  const { listed } = open
  t.strictSame(listed, [])
  t.equal(open.find('given')?.externalId, 'given')
  t.equal(open.listed, listed)
  t.end()
})

t.test('what an engine lists can be called, until it is gone for a while', async t => {
  const { discovery, ids, answers, asked, changes, logged, found } = await scene(t)
  answers(listing([{ id: 'tiny:1', object: 'model', created: 1700000000 }, { id: 'vendor/large' }]))
  await discovery.look()
  t.strictSame(ids(), ['tiny:1', 'vendor/large'])
  const [tiny, large] = found.all()[0]![1]
  t.equal(tiny!.created, 1700000000)
  t.ok(large!.created > 1700000000, 'what has no date is as old as it is known')
  t.match(asked[0], { method: 'GET', url: '/v1/models', headers: { accept: 'application/json' } })
  t.equal(asked.length, 1, 'only those are looked up whose files say so')
  const [before] = found.all()
  await discovery.look()
  t.equal(found.all()[0]![1], before![1], 'a list that is the same is the same object')
  answers((_, res) => void res.destroy())
  await discovery.look()
  t.equal(ids().length, 2, 'once may be chance')
  await discovery.look()
  t.strictSame(ids(), [])
  answers(listing([{ id: 'tiny:1' }]))
  await discovery.look()
  t.strictSame(ids(), ['tiny:1'])
  t.strictSame(changes, [1, 0, 1], 'others are told of changes alone')
  t.strictSame(logged, ['models found', 'models found'])
})

t.test('a list is bounded, and what is none of one is passed over', async t => {
  const { discovery, ids, answers } = await scene(t)
  const rows: [says: string, answer: Answer, ids: string[]][] = [
    [
      'odd entries',
      listing([
        null,
        7,
        {},
        { id: 7 },
        { id: '' },
        { id: '../x' },
        { id: 'a b' },
        { id: 'a'.repeat(129) },
        { id: 'b' },
        { id: 'b' },
        { id: 'c', created: -1 },
      ]),
      ['b', 'c'],
    ],
    ['what its file maps', listing([{ id: 'mapped' }, { id: 'd' }]), ['d']],
    [
      'many models',
      listing(Array.from({ length: 2000 }, (_, n) => ({ id: `m${n}` }))),
      Array.from({ length: 500 }, (_, n) => `m${n}`),
    ],
    ['no models', listing([]), []],
  ]
  for (const [says, answer, wanted] of rows) {
    answers(answer)
    await discovery.look()
    t.strictSame(ids(), wanted, says)
  }
})

t.test('a server that does not answer as an engine lists nothing', async t => {
  const { discovery, ids, answers, asked } = await scene(t)
  const rows: [says: string, answer: Answer][] = [
    ['another status', (_, res) => void res.writeHead(404).end('{"data":[{"id":"a"}]}')],
    [
      'a redirect',
      (req, res) => void res.writeHead(302, { location: `http://${req.headers.host}/v1/models?again` }).end(),
    ],
    ['a page', (_, res) => void res.end('<html>')],
    ['an error under 200', (_, res) => void res.end('{"error":"Unexpected endpoint or method"}')],
    ['another list', (_, res) => void res.end('["a"]')],
    [
      'more than it may be',
      (_, res) => void res.end(JSON.stringify({ data: [{ id: 'a', more: 'x'.repeat(1 << 20) }] })),
    ],
  ]
  for (const [says, answer] of rows) {
    answers(answer)
    const before = asked.length
    await discovery.look()
    t.strictSame(ids(), [], says)
    t.equal(asked.length, before + 1, `${says}, asked for once`)
  }
})

t.test('an engine that does not come to an end is left', async t => {
  const { discovery, ids, answers } = await scene(t, {}, { deadlineMs: 100 })
  for (const answer of [() => undefined, (_, res) => void res.write('{"data":[')] satisfies Answer[]) {
    answers(answer)
    await discovery.look()
    t.strictSame(ids(), [])
  }
})

t.test('an engine that requires a key gets it, and the gateway never discovers itself', async t => {
  const key = { id: 'k', source: 'platform', secret: 'sk-engine', fingerprint: 'f' } as const
  const one = await scene(t, { auth: { scheme: 'bearer' }, credentials: [key] })
  await one.discovery.look()
  t.match(one.asked, [{ headers: { authorization: 'Bearer sk-engine' } }])
  const self = await scene(t, {}, { own: '0.0.0.0:PORT' })
  await self.discovery.look()
  t.strictSame(self.asked, [])
})

t.test('a look that runs ends with the gateway', async t => {
  const { discovery, answers, asked, ids } = await scene(t)
  answers(() => undefined)
  const looking = discovery.look()
  while (asked.length === 0) await new Promise(resolve => setImmediate(resolve))
  await discovery.close()
  await looking
  await discovery.look()
  t.strictSame([asked.length, ids()], [1, []])
})

t.test('a list that is refused to one credential is asked for with the next one', async t => {
  const credential = (secret: string) =>
    ({ id: `engine#${secret}`, source: 'platform', secret, fingerprint: secret, weight: 1 }) as const
  const credentials = [credential('refused'), credential('good')]
  const { discovery, ids, asked, answers } = await scene(t, { auth: { scheme: 'bearer' }, credentials })
  answers((req, res) => {
    if (req.headers.authorization === 'Bearer good') listing([{ id: 'llama' }])(req, res)
    else res.writeHead(401).end('{}')
  })
  await discovery.look()
  t.strictSame(ids(), ['llama'])
  t.strictSame(
    asked.map(({ headers }) => headers.authorization),
    ['Bearer refused', 'Bearer good'],
  )
})
