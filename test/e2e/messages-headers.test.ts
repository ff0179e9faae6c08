/** What the official Messages client reads and writes outside of bodies: headers, other paths, the list of models. */
import Anthropic from '@anthropic-ai/sdk'
import t from 'tap'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { startUpstream } from '../helpers/upstream.ts'

const upstream = await startUpstream(t, { key: upstreamSecret })
/** A provider of the client's wire, whose manifest says no more than it must. */
const claude = (id: string, over: object = {}) => ({
  base_url: upstream.url(id),
  auth: { scheme: 'header', header: 'x-api-key', secret: upstreamSecret },
  wires: { chat: 'anthropic.messages' },
  models: [{ ...testMapping, model: id, id: 'claude-1' }],
  ...over,
})
const gateway = await startGateway(t, {
  providers: {
    plain: claude('plain'),
    wide: claude('wide', { pass_headers: { 'anthropic-beta': ['context-1m-*'] } }),
  },
})
const client = new Anthropic({ baseURL: gateway.url, apiKey: gateway.key, maxRetries: 0 })
const asked = (model: string) => ({ model, max_tokens: 9, messages: [{ role: 'user' as const, content: 'Hi' }] })
/** The headers of the newest request to a provider. */
const headersTo = async (prefix: string) => (await upstream.record(prefix)).at(-1)!.headers

t.test('beta tokens of the client reach its wire, beside those that the body needs', async t => {
  const betas = ['interleaved-thinking-2025-05-14', 'context-1m-2025-08-07', 'fast-mode-2026-02-01']
  const context_management = { edits: [{ type: 'clear_tool_uses_20250919' as const }] }
  await client.beta.messages.create({ ...asked('plain'), betas, context_management })
  t.equal((await headersTo('plain'))['anthropic-beta'], 'context-management-2025-06-27,interleaved-thinking-2025-05-14')
  await client.beta.messages.create({ ...asked('wide'), betas })
  t.equal((await headersTo('wide'))['anthropic-beta'], 'interleaved-thinking-2025-05-14,context-1m-2025-08-07')
})

t.test('a manifest without an API version speaks the one that gateways speak', async t => {
  await client.messages.create(asked('plain'))
  t.equal((await headersTo('plain'))['anthropic-version'], '2023-06-01')
  await gateway.chat({ model: 'plain', messages: asked('plain').messages })
  t.equal((await headersTo('plain'))['anthropic-version'], '2023-06-01', 'for clients of other wires too')
})

t.test('the id of a request stands where the client looks for it, on refusals and streams too', async t => {
  const headers = { 'x-request-id': 'asked-1' }
  const answer = await client.messages.create(asked('plain'), { headers })
  t.equal(answer._request_id, 'asked-1')
  const { response, request_id: streamed } = await client.messages
    .create({ ...asked('plain'), stream: true })
    .withResponse()
  t.equal(streamed, response.headers.get('x-request-id'))
  await response.text()
  const refused: (readonly [says: string, run: () => Promise<unknown>, status: number])[] = [
    ['a model that is not there', () => client.messages.create(asked('nope')), 404],
    ['a wrong field', () => client.messages.create({ ...asked('plain'), max_tokens: 0 }), 400],
    ['a wrong key', () => client.withOptions({ apiKey: 'x' }).messages.create(asked('plain')), 401],
    ['an endpoint that is not there', () => client.messages.batches.list(), 404],
    ['a wrong method', () => client.get('/v1/messages'), 405],
  ]
  for (const [says, run, status] of refused) {
    const error = await run().catch((thrown: unknown) => thrown)
    t.ok(error instanceof Anthropic.APIError, says)
    t.match(error, { status, requestID: /./ }, says)
    const { headers, requestID } = error as InstanceType<typeof Anthropic.APIError>
    t.equal(headers?.get('x-request-id'), requestID, says)
  }
  t.equal(
    (await gateway.chat({ model: 'plain', messages: [] })).headers.get('request-id'),
    null,
    'of this client alone',
  )
})

t.test('unknown paths below the endpoint, and wrong methods, are refused in its form', async t => {
  const rows: [method: 'get' | 'post' | 'delete', path: string, status: number, type: string][] = [
    ['get', '/v1/messages/count_tokens?beta=true', 405, 'invalid_request_error'],
    ['get', '/v1/messages/batches', 404, 'not_found_error'],
    ['post', '/v1/messages/batches/b_1/cancel', 404, 'not_found_error'],
    ['post', '/v1/messages/', 404, 'not_found_error'],
    ['get', '/v1/messages', 405, 'invalid_request_error'],
    ['delete', '/v1/messages', 405, 'invalid_request_error'],
  ]
  for (const [method, path, status, type] of rows) {
    const error = await client[method](path).catch((thrown: unknown) => thrown)
    t.match(error, { status, error: { type: 'error', error: { type, message: /./ } } }, `${method} ${path}`)
  }
  const elsewhere = await gateway.get('/v1/messagesx')
  t.match(await elsewhere.json(), { error: { code: 'not_found', param: null } }, 'others have the usual form')
})

t.test('the list of models is in the form of the client, a page at a time', async t => {
  const first = await client.models.list({ limit: 1 })
  t.match(first, { data: [{ type: 'model', id: /./, display_name: /./, created_at: /^\d{4}-.*Z$/ }], has_more: true })
  t.match((await client.models.list().withResponse()).request_id, /./)
  const ids: string[] = []
  for await (const { id } of client.models.list({ limit: 1 })) ids.push(id)
  t.strictSame(ids.sort(), ['plain', 'wide'])
  t.equal((await client.beta.models.list()).data.length, 2)
  const refusals: [run: () => Promise<unknown>, error: object][] = [
    [
      () => client.withOptions({ apiKey: 'x' }).models.list(),
      { status: 401, error: { error: { type: 'authentication_error' } } },
    ],
    [
      () => client.models.list({ after_id: 'nope' }),
      { status: 400, error: { error: { type: 'invalid_request_error' } } },
    ],
  ]
  for (const [run, error] of refusals) {
    t.match(await run().catch((thrown: unknown) => thrown), { ...error, requestID: /./ })
  }
  const usual = await gateway.get('/v1/models')
  t.match(await usual.json(), { object: 'list', data: [{ object: 'model' }, { object: 'model' }] })
  t.match(usual.headers.get('vary'), 'anthropic-version')
  t.equal(usual.headers.get('request-id'), null)
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
