/** What a provider refuses changes nothing of what is held for later, whether or not its error says what it refused. */
import t from 'tap'
import { opened, settle } from './kit.ts'

const second = Buffer.alloc(48_000).toString('base64')
const append = { type: 'input_audio_buffer.append', audio: second }
const committed = (item_id: string) => ({ type: 'input_audio_buffer.committed', item_id })
const completed = (item_id: string) => ({
  ...{ type: 'conversation.item.input_audio_transcription.completed', item_id, transcript: 'Hi' },
  usage: { type: 'duration', seconds: 2 },
})
const refusal = (event_id: unknown, code = 'unknown_parameter') => ({ type: 'error', error: { code, event_id } })

t.test('a clearing that its provider refuses makes no later speech free', async t => {
  const clear = { type: 'input_audio_buffer.clear', event_id: 'mine', x: 1 }
  // A second is 14 tokens. Without an answer the provider may have cleared its buffer, and what came behind counts on.
  const rows: [says: string, answer: (id: unknown) => object | undefined, held: number[]][] = [
    ['refused by name', id => refusal(id), [42, 28]],
    ['refused without a name', () => refusal(undefined), [42, 28]],
    ['refused with an empty name', () => refusal(''), [42, 28]],
    ['done', () => ({ type: 'input_audio_buffer.cleared' }), [28, 28]],
    ['not answered', () => undefined, [28, 56]],
  ]
  for (const [says, answer, held] of rows) {
    const { session, client, provider, charges } = await opened({ transcribes: true })
    client.message(append)
    client.message(clear)
    await settle()
    const sent = provider.last()!
    t.match(sent, { type: clear.type, x: 1, event_id: /^event_/ }, says)
    const answered = answer(sent.event_id)
    if (answered) provider.message(answered)
    await settle()
    if (says === 'refused by name') t.match(client.last(), { error: { event_id: 'mine' } }, 'clients see their own id')
    for (const [at, tokens] of held.entries()) {
      for (let seconds = 0; seconds < 2; seconds++) client.message(append)
      await settle()
      provider.message(committed(`i${at}`))
      await settle()
      t.equal(charges.held, tokens, `${says}: item ${at}`)
      provider.message(completed(`i${at}`))
      await settle()
      t.equal(charges.held, 0)
    }
    client.left()
    await session.ended
  }
})

t.test('a change that is refused without a name leaves what stood before it possible', async t => {
  const { client, provider, charges } = await opened()
  const cheap = { output_modalities: ['text'], max_output_tokens: 1 }
  client.message({ type: 'session.update', session: cheap })
  await settle()
  provider.message(refusal(null))
  client.message({ type: 'session.update', session: { temperature: 1 } })
  await settle()
  // This answers the second change.
  for (let changes = 0; changes < 2; changes++) provider.message({ type: 'session.updated', session: {} })
  await settle()
  client.message({ type: 'response.create' })
  await settle()
  t.ok(charges.held >= 4096, `${charges.held} are held`)
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
