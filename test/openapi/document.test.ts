/** The document as such: what it says of every endpoint, and what others make of it. */
import { Validator } from '@seriousme/openapi-schema-validator'
import t from 'tap'
import { endpoints } from '../../src/endpoints/index.ts'
import { CLIENT_CLOSED } from '../../src/lib/error.ts'
import { documentOf, rowOf } from '../../src/openapi/document.ts'
import { codesByStatus } from '../../src/openapi/errors.ts'
import { rows } from '../../src/openapi/rows/index.ts'
import { OpenApi, type Tree } from '../helpers/openapi.ts'

const document = documentOf(endpoints, { version: '1.2.3', realtime: true })
const text = JSON.stringify(document)
const tree = JSON.parse(text) as Tree
const api = new OpenApi(tree)

t.test('the document is valid OpenAPI 3.1, and smaller than 1 MB', async t => {
  const { valid, errors } = await new Validator().validate(JSON.parse(text))
  t.ok(valid, JSON.stringify(errors)?.slice(0, 2000))
  t.equal(tree.openapi as unknown, '3.1.0')
  t.equal(tree.info!.version as unknown, '1.2.3')
  t.ok(text.length < 1_000_000, `${text.length} bytes`)
})

t.test('every endpoint is described, but for those that only refuse', async t => {
  const left = endpoints.filter(endpoint => !rowOf(endpoint) && endpoint.method !== 'OPTIONS')
  const refuses = /\{\+path\}|^\/mcp$|^\/v1beta\/models$|^\/v1\/(?:realtime\/client-secrets|report|generation)$/
  t.strictSame(
    left.filter(({ path }) => !refuses.test(path)).map(({ method, path }) => `${method} ${path}`),
    [],
  )
  const known = new Set(endpoints.map(({ method, path }) => `${method} ${path}`))
  t.strictSame(
    Object.keys(rows).filter(row => !known.has(row)),
    [],
    'every row is of an endpoint',
  )
})

t.test('an operation that is turned off is left out', async t => {
  const { paths } = documentOf(endpoints, { version: '1', realtime: false }) as Tree
  t.strictSame(
    Object.keys(paths!).filter(path => path.startsWith('/v1/realtime')),
    [],
  )
})

t.test('every operation has a name of its own, from which clients make a method', async t => {
  const ids = api.operations.map(({ id }) => id)
  t.equal(new Set(ids).size, ids.length)
  t.strictSame(
    ids.filter(id => !/^[a-z][A-Za-z0-9]+$/.test(id)),
    [],
  )
})

t.test('every operation that takes a body has an example, which the schema takes', async t => {
  const bodies = Object.entries(tree.paths!).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { requestBody }]) =>
      Object.keys(requestBody?.content ?? {}).map(type => ({ path, method, type })),
    ),
  )
  t.ok(bodies.length > 30)
  for (const { path, method, type } of bodies) {
    const { examples } = api.operations.find(one => one.path === path && one.method === method)!
    if (type !== 'application/json') continue
    t.ok(examples.length > 0, path)
    for (const { name, type, value } of examples) {
      const place = ['paths', path, method, 'requestBody', 'content', type, 'schema']
      t.equal(api.issue(place, value), undefined, `${method} ${path}: ${name}`)
    }
  }
})

t.test('examples of answers are what their schemas describe', async t => {
  for (const { path, method, statuses } of api.operations) {
    for (const status of statuses) {
      const at = ['paths', path, method, 'responses', status, 'content', 'application/json']
      const example = at.reduce<Tree | undefined>((tree, part) => tree?.[part], tree)?.example
      if (example) t.equal(api.issue([...at, 'schema'], example), undefined, path)
    }
  }
  for (const [name, { content }] of Object.entries(tree.components!.responses!)) {
    const { example } = content!['application/json'] ?? {}
    const place = ['components', 'responses', name, 'content', 'application/json', 'schema']
    if (example) t.equal(api.issue(place, example), undefined, name)
  }
})

t.test('every code of the catalogue stands at its status', async t => {
  const codes = codesByStatus()
  t.ok(codes.size > 15)
  for (const [status, names] of codes) {
    if (status === CLIENT_CLOSED) continue
    const { description } = tree.components!.responses![`Error${status}`]!
    for (const name of names) t.match(description as unknown, `\`${name}\``)
  }
})

t.test('requests have the schemas that check them', async t => {
  const described = endpoints.filter(endpoint => endpoint.codec.requestSchema && rowOf(endpoint)?.body)
  t.ok(described.length > 20)
  const upstream = endpoints.filter(
    ({ serve, codec }) => serve === 'upstream' && codec.wire !== 'ai-sdk.language-model',
  )
  t.strictSame(
    upstream.filter(one => !described.includes(one)).map(({ path }) => path),
    [],
  )
  const chat = tree.components!.schemas!.ChatCompletionRequest!
  t.strictSame(chat.required as unknown, ['model', 'messages'])
})
