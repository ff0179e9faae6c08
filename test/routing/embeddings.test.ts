/** Which offers serve embeddings, what they need of them, and what the listing says of their models. */
import t from 'tap'
import { operationsOf } from '../../src/config/catalog.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import type { Route } from '../../src/core/snapshot.ts'
import type { Mapping, Model, Provider, Translator } from '../../src/core/translator.ts'
import { chat, embeddings } from '../../src/endpoints/inference.ts'
import { models as listing } from '../../src/endpoints/models.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { embeddings as operation } from '../../src/operations/embeddings/index.ts'
import { operations } from '../../src/operations/index.ts'
import { plan } from '../../src/routing/plan.ts'
import { capable } from '../../src/routing/requirements.ts'
import { sessionKey, sessionName } from '../../src/routing/session-affinity.ts'
import { exchange, listingOf, thrown } from '../core/kit.ts'
import { target } from '../plugins/wire-kit.ts'
import { queryOf } from './kit.ts'

const wire = (op: 'chat' | 'embeddings') => ({ op, wire: `acme.${op}` }) as Translator
const price = { rates: { prompt: 1n }, tiers: [] }

/** Offers of one model by providers that all speak both operations. */
function catalogOf(output: readonly string[], ...offers: Partial<Mapping>[]): Catalog {
  const mappings: Mapping[] = []
  const base = target({ model: { output } })
  const { input } = base.mapping.model
  const model: Model = { ...base.mapping.model, mappings, operations: operationsOf({ input, output }, { operations }) }
  const wires: Provider['wires'] = new Map([
    ['chat', wire('chat')],
    ['embeddings', wire('embeddings')],
  ])
  for (const [index, offer] of offers.entries()) {
    const provider = { ...base.provider, id: `p${index}`, auth: { scheme: 'none' } as const, priority: 1, wires }
    mappings.push({ ...base.mapping, model, provider, wires, price, ...offer })
  }
  return { models: new Map([[model.id, model]]), aliases: new Map(), providers: new Map() }
}

const snapshot = { routes: () => [chat, embeddings].map(endpoint => ({ endpoint }) as Route) }
const planned = (catalog: Catalog, request: object, { operation } = embeddings) =>
  plan(queryOf(catalog, { model: 'acme-large', input: 'a', ...request }, { operation: operation!, snapshot }), {
    auto: [],
  }).targets

t.test('a model that makes vectors serves embeddings and nothing else, and no other model does', async t => {
  const vectors = catalogOf(['embedding'], {})
  const texts = catalogOf(['text'], {})
  const messages = { messages: [{ role: 'user', content: 'Hi' }] }
  t.match(planned(vectors, {}), [{ provider: { id: 'p0' }, translator: { op: 'embeddings' } }])
  t.match(planned(texts, messages, chat), [{ provider: { id: 'p0' }, translator: { op: 'chat' } }])
  for (const [refused, path] of [
    [() => planned(vectors, messages, chat), '/v1/embeddings'],
    [() => planned(texts, {}), '/v1/chat/completions'],
  ] as const) {
    const error = { status: 400, code: 'model_not_supported', param: 'model' } as Partial<GatewayError>
    t.match(thrown(refused), { ...error, message: `ask for it at ${path}.` })
  }
})

t.test('a session is named by a header or by a chat, and embeddings that name none are of none', async t => {
  const request = { model: 'm', messages: [], user: 'u' }
  for (const name of ['x-session-id', 'x-session-affinity', 'session_id', 'session-id', 'thread-id']) {
    t.equal(sessionName({ [name]: 's' }, chat.operation!, request), 's', name)
    t.equal(sessionName({ [name]: 's' }, operation, request), 's', name)
    t.equal(sessionName({ [name]: ['s', 't'] }, chat.operation!, request), 'u', `${name} given twice`)
  }
  t.equal(sessionName({}, chat.operation!, request), 'u')
  t.match(sessionKey({ session: 'u', principal: undefined }, 'm'), / u$/)
  // Their user is the organization, whoever asks.
  const own = { model: 'm', input: 'a', user: 'org' }
  t.equal(sessionName({}, operation, own), undefined)
  t.equal(sessionKey({ session: undefined, principal: undefined }, 'm'), undefined)
})

t.test('what an offer cannot do is another offer’s, or refused', async t => {
  const { mapping } = target({ model: { output: ['embedding'] } })
  const narrow: Mapping = { ...mapping, parameters: new Set(['user']), contextLength: 2 }
  const wide: Mapping = { ...mapping, contextLength: 3 }
  const rows: [request: object, able: Mapping[], param?: string, code?: string][] = [
    [{ input: 'any text at all' }, [narrow, wide, mapping]],
    [{ input: ['a', 'b', 'c', 'd'] }, [narrow, wide, mapping]],
    [{ input: 'a', dimensions: 4 }, [wide, mapping], 'dimensions', 'model_not_supported'],
    [{ input: [1, 2] }, [narrow, wide, mapping], 'input', 'context_length_exceeded'],
    [{ input: [1, 2, 3] }, [wide, mapping], 'input', 'context_length_exceeded'],
    [{ input: [[1], [1, 2, 3]] }, [wide, mapping], 'input', 'context_length_exceeded'],
    [{ input: [[1, 2, 3, 4]] }, [mapping], 'input', 'context_length_exceeded'],
  ]
  for (const [given, able, param, code] of rows) {
    const request = { model: 'm', ...given } as never
    const says = JSON.stringify(given)
    t.strictSame(capable([narrow, wide, mapping], operation, request), { mappings: able }, says)
    if (able.includes(narrow)) continue
    t.match(capable([narrow], operation, request).error, { status: 400, param, code }, says)
  }
})

t.test(
  'a wire that takes fewer inputs is not asked for more, and says how many where no other one is there',
  async t => {
    const narrow = { ...wire('embeddings'), maxInputs: 96 } as Translator
    const offers = [{ wires: new Map([['embeddings', narrow]]) as Provider['wires'] }, {}]
    const texts = (count: number) => ({ input: Array.from({ length: count }, () => 'a') })
    const providersOf = (request: object, ...of: Partial<Mapping>[]) =>
      planned(catalogOf(['embedding'], ...of), request).map(({ provider }) => provider.id)
    for (const request of [texts(96), { input: 'a' }, { input: Array(97).fill(7) }]) {
      t.strictSame(providersOf(request, ...offers), ['p0', 'p1'])
    }
    t.strictSame(providersOf(texts(97), ...offers), ['p1'])
    const message = 'No provider of "acme-large" supports so many inputs in one request. It takes at most 96.'
    const refused = { status: 400, code: 'model_not_supported', param: 'input', message } as Partial<GatewayError>
    t.match(
      thrown(() => providersOf(texts(97), offers[0]!)),
      refused,
    )
  },
)

t.test('an embeddings request reads its inputs, and answers with no tokens', async t => {
  const rows: [input: unknown, characters: number][] = [
    ['four', 4],
    [['four', 'more'], 8],
    [[1, 2], 8],
    [[[1, 2], [3]], 12],
  ]
  for (const [input, characters] of rows) {
    t.equal(operation.promptSize({ model: 'm', input } as never), characters, JSON.stringify(input))
  }
  t.equal(operation.output, undefined)
})

t.test('the listing says which parameters of embeddings have an effect', async t => {
  const parametersOf = async (offer: Partial<Mapping>) => {
    const snapshot = { catalog: catalogOf(['embedding'], offer) }
    const [entry] = await listingOf<{ supported_parameters: string[] }>(exchange({ endpoint: listing, snapshot }))
    return entry?.supported_parameters
  }
  t.strictSame(await parametersOf({ maxN: 8 }), ['encoding_format', 'dimensions', 'user'])
  t.strictSame(await parametersOf({ parameters: new Set([]) }), ['encoding_format'])
})
