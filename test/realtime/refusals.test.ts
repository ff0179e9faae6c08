/** What a provider refuses changes nothing of what is held for later, whether or not its error says what it refused. */
import t from 'tap'
import { opened, settle } from './kit.ts'

const second = Buffer.alloc(48_000).toString('base64')
const append = { type: 'input_audio_buffer.append', audio: second }
const refusal = (event_id: unknown, code = 'unknown_parameter') => ({ type: 'error', error: { code, event_id } })

t.test('a commit or a clearing reaches its provider with nothing that it could refuse', async t => {
  for (const type of ['input_audio_buffer.commit', 'input_audio_buffer.clear']) {
    const { client, provider } = await opened({ transcribes: true })
    client.message(append)
    client.message({ type, event_id: 'mine', x: 1 })
    await settle()
    const { event_id, ...rest } = provider.last()!
    t.strictSame(rest, { type })
    t.match(event_id, /^event_/)
    provider.message(refusal(event_id))
    await settle()
    t.match(client.last(), { error: { event_id: 'mine' } }, 'clients see their own id')
  }
})

t.test('a change that is refused is taken back, and no later one', async t => {
  const { client, provider, charges } = await opened()
  provider.message({ type: 'session.updated', session: {} })
  client.message({ type: 'session.update', session: { output_modalities: ['text'], max_output_tokens: 1 } })
  await settle()
  const refused = provider.last()!.event_id
  client.message({ type: 'session.update', session: { max_output_tokens: 700 } })
  await settle()
  provider.message(refusal(refused))
  provider.message({ type: 'session.updated', session: {} })
  await settle()
  client.message({ type: 'response.create' })
  await settle()
  t.equal(charges.held, 700)
  t.match(charges.expected, { output_audio: 700 })
})

t.test('a response that is refused for another one keeps neither money nor its place', async t => {
  for (const named of [true, false]) {
    const { client, provider, charges } = await opened()
    const create = async () => {
      client.message({ type: 'response.create' })
      await settle()
      return provider.last()!.event_id
    }
    const id = await create()
    t.ok(charges.held > 0)
    provider.message(refusal(named ? id : null, 'conversation_already_has_active_response'))
    await settle()
    t.equal(charges.held, 0)
    await create()
    t.ok(charges.held > 0)
    provider.message(refusal(null, 'server_error'))
    await settle()
    t.ok(charges.held > 0, 'another error is of anything')
  }
})

t.test('items that are refused, deleted, cut or looked at lower nothing that is held', async t => {
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'x'.repeat(4000) }] }
  const { client, provider, charges } = await opened()
  const heldFor = async () => {
    client.message({ type: 'response.create' })
    await settle()
    const { held } = charges
    provider.message(refusal(provider.last()!.event_id))
    await settle()
    t.equal(charges.held, 0)
    return held
  }
  const before = await heldFor()
  client.message({ type: 'conversation.item.create', item })
  const behind = await heldFor()
  t.ok(behind >= before + 1000)
  for (const kind of ['delete', 'truncate', 'retrieve']) {
    client.message({ type: `conversation.item.${kind}`, item_id: 'i1', event_id: kind })
    for (const id of [kind, null]) provider.message(refusal(id))
    await settle()
    t.equal(await heldFor(), behind, kind)
  }
})
