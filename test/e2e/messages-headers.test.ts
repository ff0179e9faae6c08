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

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
