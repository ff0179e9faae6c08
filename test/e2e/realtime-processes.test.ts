/** Realtime sessions beside more than one process, own keys of providers, and a process that is killed under them. */
import t, { type Test } from 'tap'
import { readBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { type Gateway, startGateway, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { RealtimeClient, refusalOf } from '../helpers/realtime-client.ts'
import { realtimeProvider, usualTake } from '../helpers/realtime-provider.ts'

async function started(t: Test, config: Record<string, unknown> = {}) {
  const provider = await realtimeProvider(t)
  const gateway = await startGateway(t, {
    providers: {
      acme: {
        base_url: provider.url,
        wires: { realtime: 'openai.realtime' },
        // 1,000 nano-USD a token.
        models: [{ model: 'voice', id: 'rt-1', pricing: { prompt: '1', completion: '1' }, supports: ['realtime'] }],
      },
    },
    models: [
      { id: 'voice', name: 'voice', family: 'test', input: ['audio'], output: ['audio'], operations: ['realtime'] },
    ],
    config,
  })
  return { provider, gateway, command: commandsOf(gateway) }
}
const closed = async (...clients: RealtimeClient[]) => {
  await Promise.all(clients.map(client => client.end()))
}
const secretOf = async (gateway: Gateway) => {
  const answer = await gateway.post('/v1/realtime/client_secrets', { session: { type: 'realtime', model: 'voice' } })
  return ((await answer.json()) as { value: string }).value
}

t.test('a client secret of one worker opens sessions at all of them, within one limit', async t => {
  const { gateway, command } = await started(t, { server: { workers: 2 }, realtime: { per_key: 4 } })
  const key = await secretOf(gateway)
  const open: RealtimeClient[] = []
  for (let at = 0; at < 4; at++) open.push(await new RealtimeClient(gateway, '', { key }).opened())
  const { workers } = await command<{ workers: { inFlight: number }[] }>('status')
  t.strictSame(
    workers.map(({ inFlight }) => inFlight),
    [2, 2],
  )
  for (let at = 0; at < 2; at++) {
    t.strictSame(await refusalOf(new RealtimeClient(gateway, '', { key })), [429, 'rate_limit_exceeded'])
  }
  await closed(...open)
})

t.test('client secrets and sessions count against one limit, though their chains differ', async t => {
  const { gateway } = await started(t, { endpoints: { realtime: { ratelimit: { rpm: 3 } } } })
  const key = await secretOf(gateway)
  const open = [await new RealtimeClient(gateway).opened(), await new RealtimeClient(gateway, '', { key }).opened()]
  t.strictSame(await refusalOf(new RealtimeClient(gateway)), [429, 'rate_limit_exceeded'])
  const answer = await gateway.post('/v1/realtime/client_secrets', { session: { type: 'realtime', model: 'voice' } })
  t.equal(answer.status, 429)
  await answer.text()
  await closed(...open)
})

t.test("an organization's own key reaches the provider, and its sessions cost no credits", async t => {
  const { provider, gateway, command } = await started(t)
  await command('orgs.create', { name: 'own' })
  const project = await command<{ id: string }>('projects.create', { organization: 'own', name: 'p', mode: 'hybrid' })
  const { key } = await command<{ key: string }>('keys.create', { project: project.id, name: 'k' })
  t.strictSame(await refusalOf(new RealtimeClient(gateway, undefined, { key })), [402, 'billing_error'])
  await command('provider-keys.add', { organization: 'own', provider: 'acme', secret: 'sk-of-the-organization' })
  const client = await new RealtimeClient(gateway, undefined, { key }).opened()
  t.equal(provider.last().headers.authorization, 'Bearer sk-of-the-organization')
  client.send({ type: 'response.create' })
  await client.until('response.done')
  const rows = readBooks(gateway, books => books.prepare('SELECT outcome, cost FROM requests').all())
  t.match(rows.at(-1), { outcome: 'ok' })
  t.match(await command('credits.show', { organization: 'own' }), { used: '0', held: '0' })
  await closed(client)
  t.not(provider.last().headers.authorization, `Bearer ${upstreamSecret}`)
})

t.test('a gateway that is killed in a response charges what was noted of it, and holds nothing', async t => {
  const { provider, gateway, command } = await started(t)
  provider.take = (session, event) => {
    if (event.type !== 'response.create') return usualTake(session, event)
    session.send({ type: 'response.created', response: { id: 'resp_cut' } })
    session.send({ type: 'response.output_text.delta', response_id: 'resp_cut', delta: 'four'.repeat(100) })
  }
  const client = await new RealtimeClient(gateway).opened()
  client.send({ type: 'response.create' })
  await client.until('response.output_text.delta')
  const noted = () =>
    readBooks(gateway, books => books.prepare('SELECT id FROM holds WHERE progress IS NOT NULL').all())
  while (noted().length === 0) await new Promise(resolve => setImmediate(resolve))
  await gateway.kill('SIGKILL')
  await client.closed
  await gateway.restart()
  const rows = readBooks(gateway, books =>
    books
      .prepare(`
        SELECT outcome, estimated, cost, -ledger.amount AS charged
        FROM requests JOIN ledger ON ledger.request_id = requests.id AND ledger.kind = 'charge'`)
      .all(),
  )
  t.strictSame(rows, [{ outcome: 'orphaned', estimated: 1, cost: 100_000, charged: 100_000 }])
  t.match(await command('credits.show', { organization: 'default' }), { held: '0', used: '0.0001' })
  await checkInvariants(t, gateway)
})
