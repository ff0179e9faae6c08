/** One session: its money, its limits, and both of its ends in any order. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import t from 'tap'
import { errors, type GatewayError } from '../../src/lib/error.ts'
import { done, type End, limits, opened, settle } from './kit.ts'

const create = { type: 'response.create' }
const created = (id: string) => ({ type: 'response.created', response: { id } })
const transcribing = { type: 'session.update', session: { audio: { input: { transcription: { model: 'scribe' } } } } }
const transcript = (item: string, seconds = 2) => ({
  ...{ type: 'conversation.item.input_audio_transcription.completed', item_id: item, transcript: 'Hi' },
  usage: { type: 'duration', seconds },
})
/** Of 24 kHz; 21 tokens are counted for it. */
const second = Buffer.alloc(48_000).toString('base64')
const audio = (seconds: number) => ({ type: 'response.output_audio.delta', delta: second.repeat(seconds) })

t.test('a response that passes what is held for it holds more, and is cancelled where there is no more', async t => {
  // 4,096 tokens are held; from 3,072 on 4,096 beyond what has come are wanted.
  const { client, provider, charges } = await opened({ balance: 9000 })
  client.message(create)
  await settle()
  provider.message(created('r1'))
  t.equal(charges.held, 4096)
  provider.message(audio(140))
  await settle()
  t.equal(charges.held, 4096, 'below three quarters nothing is added')
  provider.message(audio(10))
  await settle()
  t.equal(charges.held, 3150 + 4096)
  t.notOk(provider.types().includes('response.cancel'))
  provider.message(audio(130))
  await settle()
  t.notOk(provider.types().includes('response.cancel'), 'what was held before still covers it')
  provider.message(audio(70))
  provider.message(audio(1))
  await settle()
  t.strictSame(provider.types().slice(-1), ['response.cancel'])
  t.strictSame(client.types().slice(-1), ['error insufficient_credits'], 'later output is not passed on')
  provider.message(done('r1', 10, 7300, 'cancelled'))
  await settle()
  t.equal(client.last()?.type, 'response.done')
  t.strictSame([charges.charged, charges.held], [7310, 0])
})

t.test('a response that shows nothing is charged by its report alone, however long it takes', async t => {
  const mapping = { supports: new Set(['reasoning'] as const), maxOutput: 30_000 }
  const begun = async () => {
    const one = await opened({ mapping })
    one.client.message(create)
    await settle()
    one.provider.message(created('r1'))
    await settle()
    one.session.tick(performance.now() + 14_000)
    await settle()
    t.strictSame([one.charges.held, one.provider.types().at(-1)], [4096, 'response.create'])
    return one
  }
  const { provider, charges } = await begun()
  provider.message(done('r1', 0, 30_000))
  await settle()
  t.strictSame([charges.charged, charges.held], [30_000, 0], 'a plausible report is charged whole')

  const { session, client, provider: left, charges: its } = await begun()
  client.left()
  left.left()
  await session.ended
  t.match(its.settled, [{ id: 'r1', outcome: 'aborted', estimated: true }])
  t.equal(its.charged, 0, 'without a report what was delivered is charged')
})

t.test('a response that there is less money for is sent a limit of its output, and ends in order', async t => {
  const { client, provider, charges } = await opened({ balance: 1000 })
  client.message({ ...create, response: { instructions: 'Sing.' } })
  await settle()
  const limit = 1000 - 2
  t.match(provider.last(), { response: { instructions: 'Sing.', max_output_tokens: limit } })
  t.equal(charges.held, 1000)
  provider.message(created('r1'))
  provider.message(audio(47))
  await settle()
  t.equal(client.last()?.type, 'response.output_audio.delta', 'no more is wanted before all of it is used')
  provider.message(done('r1', 2, limit, 'incomplete'))
  await settle()
  t.strictSame([client.last()?.type, charges.left], ['response.done', 0])
  client.message(create)
  await settle()
  t.match(client.last(), { error: { code: 'insufficient_credits' } })

  const { client: other, provider: its } = await opened({ balance: 300, byok: true })
  other.message({ ...create, response: { max_output_tokens: 'inf' } })
  await settle()
  t.match(its.last(), { response: { max_output_tokens: 300 } })
  its.message(created('r1'))
  its.message(audio(20))
  await settle()
  t.strictSame(its.types().slice(-1), ['response.cancel'], 'of a provider that passes its limit')
})

t.test('no limit is sent that the wire does not take', async t => {
  for (const [balance, sent] of [
    [5000, 4096],
    [3000, 3000],
    [9000, 8000],
  ] as const) {
    const { client, provider } = await opened({ balance })
    client.message({ ...create, response: { max_output_tokens: 8000 } })
    await settle()
    t.match(provider.last(), { response: { max_output_tokens: sent } }, `${balance}`)
  }
})

t.test('a session ends by the clock: when it is too long, too quiet, or its ends answer no pings', async t => {
  const rows: [says: string, after: number, code: number, error: string, answers: 'both' | 'client' | 'provider'][] = [
    ['idle', limits.idle, 1000, 'session_idle', 'both'],
    ['length', limits.session, 1000, 'session_expired', 'both'],
    ['a client without pongs', 31_000, 1011, 'no_pong', 'provider'],
    ['a provider without pongs', 31_000, 1011, 'upstream_unavailable', 'client'],
  ]
  for (const [says, after, code, error, answers] of rows) {
    const { session, client, provider, charges } = await opened()
    const start = performance.now()
    session.tick(start + 15_000)
    t.strictSame([client.pings, provider.pings], [1, 1], says)
    if (answers !== 'provider') client.pong()
    if (answers !== 'client') provider.pong()
    session.tick(start + 16_000)
    t.strictSame([client.pings, client.closes], [1, []], `${says}: pings come every 15 seconds`)
    session.tick(start + after)
    await session.ended
    t.strictSame([client.types().at(-1), client.closes], [`error ${error}`, [code]], says)
    t.strictSame([provider.closes, charges.held], [[1000], 0], says)
  }
})

t.test('rules that deny the caller end its session: at the next tick, and before the next response', async t => {
  const rows: [says: string, next: (one: Awaited<ReturnType<typeof opened>>) => void][] = [
    ['a tick', ({ session }) => session.tick(performance.now())],
    ['a response', ({ client }) => client.message(create)],
  ]
  for (const [says, next] of rows) {
    let refusal: GatewayError | undefined
    const one = await opened({ denied: () => refusal })
    const { session, client, provider, charges } = one
    session.tick(performance.now())
    await settle()
    t.strictSame(client.closes, [], `${says}: allowed`)
    refusal = errors.forbidden('Ask for another model.')
    next(one)
    await session.ended
    t.match([client.last()?.error, client.closes], [{ message: 'Ask for another model.' }, [1008]], says)
    t.notOk(
      provider.sent.some(({ type }) => type === 'response.create'),
      says,
    )
    t.strictSame([provider.closes, charges.held], [[1000], 0], says)
  }
})

t.test('a side that sends frames without content ends the session', async t => {
  const rows: [says: string, send: (end: End) => void][] = [
    ['pings', end => end.pinged()],
    ['pongs that no ping awaits', end => end.pong()],
    ['empty messages', end => end.message('')],
  ]
  const sides = [
    ['client', 1008, 'too_many_frames'],
    ['provider', 1011, 'upstream_unavailable'],
  ] as const
  for (const [side, code, error] of sides) {
    // A provider's first empty message is its failure.
    for (const [says, send] of side === 'client' ? rows : rows.slice(0, 2)) {
      const { session, client, provider, charges } = await opened()
      const end = side === 'client' ? client : provider
      session.tick(performance.now() + 15_000)
      end.pong()
      for (let sent = 0; sent < 60; sent++) send(end)
      t.strictSame(client.closes, [], `60 ${says} of the ${side}, beside the pong that is awaited`)
      for (let sent = 0; sent < 100; sent++) send(end)
      await session.ended
      t.strictSame([client.types().at(-1), client.closes[0]], [`error ${error}`, code], `${says} of the ${side}`)
      t.equal(end.closes.includes(1006), true, `${says} of the ${side} that go on cut it off`)
      t.equal(charges.held, 0)
    }
  }
})

t.test('messages of either side postpone the idle end', async t => {
  for (const side of ['client', 'provider'] as const) {
    const one = await opened()
    const { session, client } = one
    const at = performance.now()
    session.tick(at)
    one[side].message({ type: 'input_audio_buffer.clear' })
    session.tick(at + limits.idle)
    t.strictSame(client.closes, [], side)
  }
})

t.test('a session that transcribes holds for each item, charges each transcript, and makes no responses', async t => {
  const { client, provider, charges, lastUpdate } = await opened({ transcribes: true })
  t.match(lastUpdate(), {
    session: { type: 'transcription', audio: { input: { transcription: { model: 'scribe-1' } } } },
  })
  client.message(create)
  await settle()
  t.equal(client.types().at(-1), 'error response_not_supported')
  client.message({ type: 'input_audio_buffer.append', audio: second })
  provider.message({ type: 'input_audio_buffer.committed', item_id: 'i1' })
  await settle()
  t.ok(charges.held > 0)
  provider.message(transcript('i1'))
  provider.message(transcript('i1'))
  await settle()
  t.match(charges.settled, [{ id: 'transcript:i1', model: 'scribe', cost: 2000, outcome: 'ok' }])
  t.strictSame([charges.settled.length, charges.held], [1, 0], 'once')
  provider.message({ type: 'input_audio_buffer.committed', item_id: 'i2' })
  await settle()
  provider.message({ type: 'conversation.item.input_audio_transcription.failed', item_id: 'i2' })
  await settle()
  t.strictSame([charges.charged, charges.held], [2000, 0], 'a transcript that failed costs nothing')
  t.notOk(provider.types().includes('response.create'))
})

t.test('each transcript holds for the prompt of its settings', async t => {
  const { client, provider, charges } = await opened({ transcribes: true })
  const says = (prompt?: string | null) => {
    const transcription = { model: 'scribe', ...(prompt !== undefined && { prompt }) }
    client.message({ type: 'session.update', session: { audio: { input: { transcription } } } })
    provider.message({ type: 'session.updated', session: {} })
  }
  let items = 0
  const held = async () => {
    const before = charges.held
    provider.message({ type: 'input_audio_buffer.committed', item_id: `i${items++}` })
    await settle()
    return charges.held - before
  }
  const bare = await held()
  says('x'.repeat(4000))
  await settle()
  t.equal((await held()) - bare, 1000)
  t.equal((await held()) - bare, 1000, 'of all of them')
  says()
  await settle()
  t.equal((await held()) - bare, 1000, 'also where a change leaves it out')
  says(null)
  await settle()
  t.equal(await held(), bare)
})

t.test('a transcript is charged whatever the settings are when it comes', async t => {
  const { client, provider, charges } = await opened()
  client.message(transcribing)
  client.message({ type: 'input_audio_buffer.append', audio: second })
  await settle()
  const off = { type: 'session.update', session: { audio: { input: { transcription: null } } } }
  provider.message({ type: 'input_audio_buffer.committed', item_id: 'held' })
  await settle()
  client.message(off)
  provider.message({ type: 'input_audio_buffer.committed', item_id: 'not held' })
  await settle()
  for (const item of ['held', 'not held']) provider.message(transcript(item))
  await settle()
  t.match(charges.settled, [
    { id: 'transcript:held', model: 'scribe', cost: 2000 },
    { id: 'transcript:not held', model: 'scribe', cost: 2000 },
  ])
})

t.test('text that no provider has counted is a token for four bytes, and the hold grows by them', async t => {
  const { session, client, provider, charges } = await opened()
  client.message(create)
  await settle()
  provider.message(created('r1'))
  for (const type of ['response.output_text.delta', 'response.function_call_arguments.delta']) {
    provider.message({ type, delta: '漢'.repeat(4000) })
  }
  await settle()
  t.equal(charges.held, 6000 + 4096)
  provider.left()
  await session.ended
  t.match(charges.settled, [{ id: 'r1', cost: 6000, estimated: true, outcome: 'error' }])
})

t.test('all that an item holds is held for, whatever its shape', async t => {
  const long = 'x'.repeat(40_000)
  const part = (text: unknown) => ({ type: 'input_text', text })
  const listed = { name: 'f', description: long, input_schema: { type: 'object' } }
  const named = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => ['x'.repeat(40) + at, 1]))
  const items: readonly [says: string, item: object][] = [
    ['a text', { type: 'message', content: [part(long)] }],
    ['texts in a list', { type: 'message', content: [part([long])] }],
    ['content that is a text', { type: 'message', content: long }],
    ['a part that is a text', { type: 'message', content: [long] }],
    ['a part of an unknown type', { type: 'message', content: [{ type: 'input_file', file_data: long }] }],
    ['an image of another type', { type: 'message', content: [{ type: 'output_image', image_url: `data:${long}` }] }],
    ['the output of a tool', { type: 'function_call_output', call_id: 'c', output: long }],
    ['output as a list', { type: 'function_call_output', call_id: 'c', output: [part(long)] }],
    ['output as an object', { type: 'function_call_output', call_id: 'c', output: { a: { b: long } } }],
    ['names in the output', { type: 'function_call_output', call_id: 'c', output: named }],
    ['numbers', { type: 'function_call_output', call_id: 'c', output: Array.from({ length: 8000 }, () => 12_345) }],
    ['the arguments of a call', { type: 'function_call', name: 'f', call_id: 'c', arguments: long }],
    ['arguments as an object', { type: 'function_call', name: 'f', call_id: 'c', arguments: { a: long } }],
    ['the name of a tool', { type: 'function_call', name: long, call_id: 'c', arguments: '{}' }],
    ['tools of a server', { type: 'mcp_list_tools', server_label: 's', tools: [listed] }],
    ['a call of such a tool', { type: 'mcp_call', name: 'f', arguments: '{}', output: long }],
    ['a request for approval', { type: 'mcp_approval_request', name: 'f', arguments: long }],
    ['an id that is a text', { id: long, type: 'message', content: [] }],
    ['a type that is unknown', { type: 'x', y: long }],
  ]
  for (const [says, item] of items) {
    for (const isOwn of [false, true]) {
      const { client, charges } = await opened()
      if (!isOwn) client.message({ type: 'conversation.item.create', item })
      client.message({ ...create, ...(isOwn && { response: { input: [item] } }) })
      await settle()
      const { prompt = 0 } = charges.expected
      t.ok(prompt >= 10_000 && prompt < 20_000, `${says}: ${prompt}`)
    }
  }
  const { client, charges } = await opened()
  const picture = { type: 'input_image', image_url: `data:image/png;base64,${'A'.repeat(400_000)}` }
  client.message({ type: 'conversation.item.create', item: { type: 'message', content: [picture] } })
  const output = [picture, { type: 'input_audio', audio: second }]
  client.message({ type: 'conversation.item.create', item: { type: 'function_call_output', call_id: 'c', output } })
  client.message(create)
  await settle()
  t.ok(charges.expected.prompt! < 10_000, 'what an image or audio costs is no text')
})

t.test('a report of what the model can read is believed, and of any other one what was held is charged', async t => {
  const rows: [says: string, mapping: object, input: number, output: number, settled: object][] = [
    ['the context', { contextLength: 128_000 }, 100_000, 5, { cost: 100_005, estimated: false, outcome: 'ok' }],
    ['beyond it', { contextLength: 128_000 }, 128_001, 5, { cost: 4096, estimated: true, outcome: 'error' }],
    ['an unknown context', {}, 100_000, 5, { cost: 4096, estimated: true, outcome: 'error' }],
    ['an endless answer', {}, 5, 1e6, { cost: 4096, estimated: true, outcome: 'error' }],
  ]
  for (const [says, mapping, input, output, settled] of rows) {
    for (const more of [[audio(1)], []]) {
      const { client, provider, charges } = await opened({ mapping })
      client.message(create)
      await settle()
      provider.message(created('r1'))
      for (const event of more) provider.message(event)
      provider.message(done('r1', input, output))
      await settle()
      t.match(charges.settled, [{ id: 'r1', ...settled }], says)
    }
  }
})

t.test('a report that no response or transcript can have caused is not charged', async t => {
  const { client, provider, charges } = await opened({ balance: 20_000 })
  client.message(transcribing)
  client.message({ type: 'input_audio_buffer.append', audio: second })
  await settle()
  provider.message({ type: 'input_audio_buffer.committed', item_id: 'i1' })
  await settle()
  provider.message(transcript('i1', 1e9))
  client.message(create)
  await settle()
  provider.message(created('r1'))
  provider.message(audio(1))
  provider.message(done('r1', 1e9, 1e9))
  await settle()
  t.match(charges.settled, [
    { id: 'transcript:i1', cost: 14, estimated: true, outcome: 'ok' },
    { id: 'r1', estimated: true, outcome: 'error' },
  ])
  t.ok(charges.left > 0)
  t.strictSame(client.closes, [1011], 'its provider has failed')
})

t.test('a response that is due waits for one that its client began while the one before was charged', async t => {
  const { client, provider, charges } = await opened()
  const begun = () => provider.types().filter(type => type === 'response.create').length
  client.message(create)
  await settle()
  provider.message(created('r1'))
  const held = charges.held
  provider.message({ type: 'input_audio_buffer.committed', item_id: 'i1' })
  await settle()
  t.equal(begun(), 1)
  provider.message(done('r1', 10, 10))
  client.message(create)
  await settle()
  t.equal(begun(), 2, 'one runs at a time')
  t.ok(charges.held < 2 * held, `${charges.held} held`)
  for (const id of ['r2', 'r3']) {
    provider.message(created(id))
    provider.message(done(id, 10, 10))
    await settle()
  }
  t.equal(begun(), 3)
  t.strictSame(
    charges.settled.map(({ id }) => id),
    ['r1', 'r2', 'r3'],
  )
  t.strictSame([charges.held, client.closes], [0, []])
})

t.test('a refused change of the settings takes no later one with it', async t => {
  const { client, provider, charges, lastUpdate } = await opened()
  client.message({ type: 'session.update', session: { audio: { output: { voice: 'none' } } } })
  const refused = lastUpdate()!.event_id
  await settle()
  client.message(transcribing)
  await settle()
  provider.message({ type: 'error', error: { code: 'invalid_value', event_id: refused } })
  provider.message({ type: 'session.updated', session: {} })
  provider.message({ type: 'input_audio_buffer.committed', item_id: 'i1' })
  await settle()
  provider.message(transcript('i1'))
  await settle()
  t.match(charges.settled, [{ id: 'transcript:i1', model: 'scribe', cost: 2000 }])
})

t.test(
  'what a provider has committed is held for and charged by what it had then, whatever was sent behind',
  async t => {
    const to = (model: string | null) => ({
      type: 'session.update',
      session: { audio: { input: { transcription: model && { model } } } },
    })
    const rows: [says: string, behind: object[], errors: string[]][] = [
      ['nothing', [], []],
      ['off', [to(null)], []],
      ['another model, behind off', [to(null), to('other')], ['error transcription_model_locked']],
      ['a model that the key may not use', [to('denied')], ['error transcription_model_not_allowed']],
      [
        'more audio, and none',
        [{ type: 'input_audio_buffer.append', audio: second }, { type: 'input_audio_buffer.clear' }],
        [],
      ],
    ]
    for (const [says, behind, errors] of rows) {
      const { session, client, provider, charges } = await opened()
      const updated = () => provider.message({ type: 'session.updated', session: {} })
      client.message(transcribing)
      updated()
      client.message({ type: 'input_audio_buffer.append', audio: second })
      client.message({ type: 'input_audio_buffer.commit' })
      for (const event of behind) client.message(event)
      await settle()
      t.strictSame(
        client.types().filter(type => type.startsWith('error')),
        errors,
        says,
      )
      provider.message({ type: 'input_audio_buffer.committed', item_id: 'i1' })
      await settle()
      t.equal(charges.held, 14, `${says}: a second is held for`)
      client.left()
      await settle()
      provider.message(transcript('i1'))
      await session.ended
      t.match(charges.settled, [{ id: 'transcript:i1', model: 'scribe', cost: 2000, outcome: 'ok' }], says)
    }
  },
)

t.test('no more commits wait for their answers than are kept', async t => {
  const { client } = await opened()
  for (let commits = 0; commits < 257; commits++) client.message({ type: 'input_audio_buffer.commit' })
  await settle()
  t.strictSame(client.types().slice(1), ['error rate_limit_exceeded'])
})

t.test('output is counted in the format of its response', async t => {
  const { client, provider, charges } = await opened()
  const response = { audio: { output: { format: { type: 'audio/pcmu' } } } }
  client.message({ type: 'response.create', response })
  await settle()
  provider.message(created('r1'))
  // 6 s of 8,000 bytes a second for each second of plain PCM.
  provider.message(audio(30))
  await settle()
  t.equal(charges.held, 30 * 6 * 21 + 4096)
})

t.test('a client that reads nothing of its errors is read no further, and ended', async t => {
  const { session, client } = await opened()
  client.waiting = 5 * 1024 * 1024
  client.message('{}')
  client.message('{}')
  await settle()
  t.equal(client.paused, true)
  t.notOk(
    client.types().some(type => type.startsWith('error')),
    'nothing is added to what waits',
  )
  session.tick(performance.now() + 31_000)
  t.strictSame(client.closes, [1008])
})

t.test('what waits for a client that has left keeps no usage from being read', async t => {
  const { client, provider, charges } = await opened()
  client.message(create)
  await settle()
  provider.message(created('r1'))
  await settle()
  client.waiting = 5 * 1024 * 1024
  client.left(1006)
  await settle()
  provider.message(done('r1', 10, 3000, 'cancelled'))
  await settle()
  t.match(charges.settled, [{ id: 'r1', cost: 3010, estimated: false }])
})

t.test('a transcript that its provider has begun is charged once, although its client has left', async t => {
  const committed = { type: 'input_audio_buffer.committed', item_id: 'i1' }
  const failed = { type: 'conversation.item.input_audio_transcription.failed', item_id: 'i1' }
  const delta = { type: 'conversation.item.input_audio_transcription.delta', item_id: 'i1', delta: 'Hi' }
  /** By the second of audio that was sent. */
  const estimated = { id: 'transcript:i1', model: 'scribe', cost: 14, estimated: true, outcome: 'aborted' }
  const reported = { id: 'transcript:i1', model: 'scribe', cost: 2000, estimated: false, outcome: 'ok' }
  type Step = object | 'client leaves' | 'provider leaves'
  const rows: [says: string, steps: Step[], settled: object[]][] = [
    ['no report', [committed, delta, 'client leaves', 'provider leaves'], [estimated]],
    ['a report', [committed, delta, 'client leaves', transcript('i1'), transcript('i1')], [reported]],
    ['a commit that is confirmed later', ['client leaves', committed, transcript('i1')], [reported]],
    ['a commit that is confirmed later, and no report', ['client leaves', committed, 'provider leaves'], [estimated]],
    ['a transcript that fails', [committed, 'client leaves', failed], []],
    ['a provider that fails', [committed, delta, 'provider leaves'], []],
  ]
  for (const [says, steps, settled] of rows) {
    const { session, client, provider, charges } = await opened()
    client.message(transcribing)
    client.message({ type: 'input_audio_buffer.append', audio: second })
    client.message({ type: 'input_audio_buffer.commit' })
    await settle()
    for (const step of steps) {
      if (step === 'client leaves') client.left()
      else if (step === 'provider leaves') provider.left()
      else provider.message(step)
      await settle()
    }
    t.strictSame([client.closes.length, provider.closes.length], [1, 1], `${says}: both sides have ended`)
    await session.ended
    t.match(charges.settled, settled, says)
    t.strictSame([charges.settled.length, charges.held], [settled.length, 0], says)
  }
})

t.test('a response that its provider reports as failed is no success, and costs what it reports', async t => {
  const { client, provider, charges } = await opened()
  const usage = { input_tokens: 0, output_tokens: 0 }
  for (const status of ['failed', 'cancelled', 'incomplete', 'completed']) {
    client.message({ type: 'response.create' })
    await settle()
    provider.message(created(status))
    provider.message({ type: 'response.done', response: { id: status, status, output: [], usage } })
    await settle()
    t.match(client.last(), { type: 'response.done', response: { status } })
  }
  t.match(charges.settled, [
    { id: 'failed', outcome: 'error', cost: 0, failure: { code: 'upstream_stream_truncated' } },
    { id: 'cancelled', outcome: 'ok' },
    { id: 'incomplete', outcome: 'ok' },
    { id: 'completed', outcome: 'ok', failure: undefined },
  ])
})

t.test('a provider that ends a session after the longest time has not failed', async t => {
  const rows: [says: string, events: object[], settled: object[]][] = [
    ['between responses', [created('r1'), done('r1', 10, 5)], [{ id: 'r1', outcome: 'ok', cost: 15 }]],
    ['before any output', [created('r1')], []],
    [
      'within a response',
      [created('r1'), { type: 'response.output_text.delta', delta: 'Hello you' }],
      [{ id: 'r1', outcome: 'error', estimated: true }],
    ],
  ]
  for (const [says, events, settled] of rows) {
    const { session, client, provider, charges } = await opened()
    client.message({ type: 'response.create' })
    await settle()
    for (const event of events) provider.message(event)
    await settle()
    provider.left(1001)
    await session.ended
    t.strictSame([client.types().at(-1), client.closes], ['error session_expired', [1000]], says)
    t.equal(session.failure, undefined, says)
    t.match(charges.settled, settled, says)
    t.strictSame([charges.settled.length, charges.held], [settled.length, 0], says)
  }
})

t.test('a commit that its provider refuses is awaited no longer', async t => {
  const commit = { type: 'input_audio_buffer.commit', event_id: 'mine' }
  const rows: [says: string, error: (id: unknown) => object, of: string | null][] = [
    ['named, with any code', event_id => ({ code: 'invalid_value', event_id }), 'mine'],
    ['named, with the code for no audio', event_id => ({ code: 'input_audio_buffer_commit_empty', event_id }), 'mine'],
    ['not named, with the code for no audio', () => ({ code: 'input_audio_buffer_commit_empty' }), null],
  ]
  for (const [says, error, of] of rows) {
    const { session, client, provider } = await opened()
    const refuse = async (at: number) => {
      const commits = provider.sent.filter(({ type }) => type === commit.type)
      provider.message({ type: 'error', error: error(commits[at]?.event_id) })
      await settle()
    }
    client.message(transcribing)
    client.message(commit)
    await settle()
    await refuse(0)
    t.match(client.last(), { type: 'error', error: { event_id: of } }, says)
    provider.message({ type: 'input_audio_buffer.committed', item_id: 'i1' })
    await settle()
    t.equal(provider.types().at(-1), 'response.create', `${says}: what the provider commits is answered`)
    for (const event of [created('r1'), done('r1', 1, 1), transcript('i1')]) provider.message(event)
    client.message(commit)
    client.message(commit)
    await settle()
    await refuse(1)
    client.left()
    await settle()
    t.strictSame(provider.closes, [], `${says}: another one is still awaited`)
    await refuse(2)
    t.strictSame(provider.closes, [1000], `${says}: the session ends at once`)
    await session.ended
  }
})

t.test('a transcript whose money is being held when both sides leave is charged', async t => {
  const { session, client, provider, charges } = await opened()
  client.message(transcribing)
  client.message({ type: 'input_audio_buffer.append', audio: second })
  await settle()
  provider.message({ type: 'input_audio_buffer.committed', item_id: 'i1' })
  client.left()
  provider.left()
  await session.ended
  t.match(charges.settled, [{ id: 'transcript:i1', cost: 14, estimated: true, outcome: 'aborted' }])
  t.equal(charges.held, 0)
})

t.test('a large event that is being read when its provider leaves holds no money', async t => {
  const { session, client, provider, charges } = await opened()
  client.message(transcribing)
  client.message({ type: 'input_audio_buffer.append', audio: second })
  await settle()
  provider.message({ type: 'input_audio_buffer.committed', item_id: 'i1', more: 'x'.repeat(3_000_000) })
  provider.left()
  await session.ended
  await settle()
  t.strictSame([charges.held, charges.settled], [0, []])
})

t.test('what is held for a response counts all of its conversation, whatever other responses report', async t => {
  const speech = { type: 'message', content: [{ type: 'input_audio', audio: second.repeat(10) }] }
  /** 10 seconds of 10 tokens each, and 1,000 of text. */
  const items = [
    { type: 'conversation.item.create', item: speech },
    { type: 'conversation.item.create', item: { content: [{ type: 'input_text', text: 'x'.repeat(4000) }] } },
  ]
  const tiny = [{ type: 'message', content: [{ type: 'input_text', text: 'Hi' }] }]
  const prompt = 1100
  const nulls = { instructions: null, tools: null, input: null, truncation: null }
  const rows: [says: string, response: object, input: number, during: object[], held: number][] = [
    ['one of the conversation says how long that is', {}, 700, [], 700 + 5],
    ['and an item that came meanwhile is added', {}, 700, items.slice(0, 1), 700 + 5 + 100],
    ['one that read nothing says nothing', {}, 0, [], prompt + 5],
    ['one beside the conversation', { conversation: 'none', input: tiny }, 1, [], prompt],
    ['one beside it that reads it', { conversation: 'none' }, 700, [], prompt],
    ['its own input adds only output', { input: tiny }, 1, [], prompt + 5],
    ['no input', { input: [] }, 1, [], prompt + 5],
    ['its own truncation', { truncation: {} }, 700, [], 700 + 5],
    ['its own instructions say how long the audio is, not the text', { instructions: 'Hi' }, 700, [], 1000 + 50 + 5],
    ['its own tools', { tools: [] }, 700, [], 1000 + 50 + 5],
    ['and more of the rest, without the instructions', { instructions: 'Hi' }, 3001, [], 3000 + 5],
    ['null is nothing of its own', nulls, 700, [], 700 + 5],
  ]
  for (const [says, response, input, during, held] of rows) {
    const { client, provider, charges } = await opened()
    for (const item of items) client.message(item)
    client.message({ type: 'response.create', response })
    await settle()
    provider.message(created('r1'))
    for (const item of during) client.message(item)
    await settle()
    provider.message({
      type: 'response.done',
      response: {
        ...{ id: 'r1', status: 'completed', output: [{}] },
        usage: { input_tokens: input, output_tokens: 5, input_token_details: { audio_tokens: Math.min(input, 50) } },
      },
    })
    await settle()
    t.equal(charges.held, 0, says)
    client.message(create)
    await settle()
    t.equal(charges.held - 4096, held, says)
  }
})

t.test('what a client sends while a response is held for comes behind it', async t => {
  const { client, provider, charges } = await opened()
  const hold = charges.holdResponse.bind(charges)
  let isHolding = false
  charges.holdResponse = (...of) => {
    isHolding = true
    return hold(...of)
  }
  client.message({ type: 'session.update', session: { audio: { input: { turn_detection: { type: 'server_vad' } } } } })
  await settle()
  provider.message({ type: 'session.updated', session: {} })
  provider.message({ type: 'input_audio_buffer.committed', item_id: 'i1' })
  while (!isHolding) await null
  client.message({
    type: 'conversation.item.create',
    item: { content: [{ type: 'input_text', text: 'x'.repeat(4000) }] },
  })
  await settle()
  t.strictSame(provider.types().slice(-2), ['response.create', 'conversation.item.create'])
  t.equal(charges.held, 4096)
})

t.test('a response holds for its own input, instructions and tools', async t => {
  const text = 'x'.repeat(4000)
  const rows: [response: object, least: number][] = [
    [{ instructions: text }, 1000],
    [{ tools: [{ type: 'function', name: 'f', description: text }] }, 1000],
    [{ input: [{ type: 'message', content: [{ type: 'input_text', text }] }] }, 1000],
    // At 8,000 bytes a second.
    [{ input: [{ type: 'message', content: [{ type: 'input_audio', audio: second }] }] }, 60],
  ]
  for (const [response, least] of rows) {
    const { client, charges } = await opened()
    client.message({ type: 'session.update', session: { audio: { input: { format: { type: 'audio/pcmu' } } } } })
    client.message({ type: 'response.create', response })
    await settle()
    t.ok(charges.held - 4096 >= least, Object.keys(response).join())
  }
})

t.test('an event of very many names is refused: reading it would hold all others up', async t => {
  const event = (names: number) =>
    `{"type":"input_audio_buffer.append",${Array.from({ length: names }, (_, at) => `"k${at}":1`).join(',')}}`
  const { client, provider } = await opened()
  client.message(event(19_000))
  await settle()
  t.equal(provider.types().at(-1), 'input_audio_buffer.append')
  client.message(event(20_001))
  await settle()
  t.equal(client.types().at(-1), 'error invalid_json')
  provider.message(event(20_001))
  await settle()
  t.equal(client.types().at(-1), 'error upstream_unavailable')
})

t.test("an organization's own key passes settings and events on that the gateway does not price", async t => {
  for (const byok of [true, false]) {
    const { client, provider } = await opened({ byok })
    client.message({ type: 'session.update', session: { web_search: true } })
    client.message({ type: 'x.unknown' })
    await settle()
    const expected = byok ? ['session.update', 'x.unknown'] : []
    t.strictSame(provider.types().slice(1), expected, byok ? 'own key' : 'key of the operator')
  }
})

t.test('a response that begins anew under an id that has ended is not charged under it', async t => {
  const { session, client, provider, charges } = await opened()
  const steps = [() => client.message(create), () => provider.message(done('c', 1, 2))]
  for (const step of [
    ...steps,
    () => client.message(create),
    () => provider.message(created('c')),
    () => client.left(),
  ]) {
    step()
    await settle()
  }
  provider.left()
  await session.ended
  t.match(charges.settled, [
    { id: 'c', outcome: 'ok' },
    { id: /^(?!c$)/, outcome: 'aborted' },
  ])
  t.equal(client.types().filter(type => type === 'response.created').length, 0, 'and its begin is a duplicate')
  t.equal(charges.held, 0)
})

t.test('in any order of events, money is the sum of what ended, and an end is final', async t => {
  const ids = fc.constantFrom('a', 'b', 'c')
  const count = fc.nat(50)
  const fromClient = fc.constantFrom<object | string>(
    ...[create, { type: 'response.cancel' }, transcribing, { type: 'input_audio_buffer.append', audio: 'AAAA' }],
    ...[{ type: 'input_audio_buffer.commit' }, '{', { type: 'response.create', response: { max_output_tokens: 5 } }],
    { type: 'session.update', session: { audio: { input: { transcription: null } } } },
  )
  const fromProvider = fc.oneof(
    ids.map(created),
    fc.tuple(ids, count, count).map(([id, input, output]) => done(id, input, output)),
    ids.map(id => ({ type: 'response.done', response: { id, output: [{}], usage: { input_tokens: -1 } } })),
    count.map(characters => ({ type: 'response.output_text.delta', delta: 'x'.repeat(characters) })),
    ids.map(item_id => ({ type: 'input_audio_buffer.committed', item_id })),
    ids.map(id => transcript(id)),
    fc.constantFrom<object | string>({ type: 'session.updated', session: {} }, { type: 'error', error: {} }, '{'),
  )
  const step = fc.oneof(
    { weight: 6, arbitrary: fromClient.map(event => ({ side: 'client' as const, event })) },
    { weight: 6, arbitrary: fromProvider.map(event => ({ side: 'provider' as const, event })) },
    { weight: 1, arbitrary: fc.constantFrom('settle', 'client leaves', 'provider leaves', 'drain') },
  )
  const property = fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.nat(20_000), async (steps, balance) => {
    const { session, client, provider, charges } = await opened({ balance })
    for (const one of steps) {
      if (one === 'settle') await settle()
      else if (one === 'client leaves') client.closes.length === 0 && client.left()
      else if (one === 'provider leaves') provider.closes.length === 0 && provider.left()
      else if (one === 'drain') session.shutDown()
      else (one.side === 'client' ? client : provider).message(one.event)
    }
    await settle()
    if (client.closes.length === 0) client.left()
    await settle()
    // What runs is waited for; its provider ends it here.
    if (provider.closes.length === 0) provider.left()
    await session.ended
    const ids = charges.settled.map(({ id }) => id)
    return (
      charges.held === 0 &&
      charges.left === balance - charges.charged &&
      new Set(ids).size === ids.length &&
      client.closes.length === 1 &&
      provider.closes.length === 1
    )
  })
  await t.resolves(fc.assert(property, { numRuns: 200 }))
})

t.test('of what its ends have sent a session keeps no large part', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const heap = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const MIB = 1024 * 1024
  /** Made anew, so that the test keeps none of it. */
  const long = (first: number) => `${first}${'x'.repeat(MIB)}`
  await opened({ secret: 'sk-prod-8f2e91aa77c04d' })
  const before = heap()
  const earlier = Array.from({ length: 4 }, (_, at) => JSON.stringify({ type: 'a', text: long(at) }))
  const { session, client, provider } = await opened({
    ...{ secret: 'sk-prod-8f2e91aa77c04d', settings: { instructions: long(0) } },
    earlier: earlier.splice(0),
  })
  client.message({ type: 'response.create', response: { instructions: long(1), metadata: { a: long(2) } } })
  await settle()
  provider.message(created('r1'))
  for (let item = 0; item < 64; item++) {
    provider.message({ type: 'conversation.item.x.delta', item_id: long(item), delta: 'a' })
    await settle()
    client.sent.length = 0
    provider.sent.length = 0
  }
  const kept = (heap() - before) / MIB
  t.ok(kept < 1, `${kept} MiB`)
  t.equal(session.failure, undefined)
})

t.test('large messages keep their place among small ones', async t => {
  const { client, provider } = await opened()
  const kinds = [true, false, false, true, true, false]
  const names = kinds.map((_, at) => `e${at}`)
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'é'.repeat(300_000) }] }
  const before = [client.sent.length, provider.sent.length] as const
  for (const [at, isLarge] of kinds.entries()) {
    const more = isLarge ? { item } : {}
    client.message({ type: 'conversation.item.create', event_id: names[at], ...more })
    provider.message({ type: 'conversation.item.done', event_id: names[at], ...more })
  }
  await settle()
  for (const [end, from] of [client, provider].map((end, at) => [end, before[at]!] as const)) {
    const got = end.sent.slice(from)
    t.strictSame(
      got.map(({ event_id: id }) => id),
      names,
    )
    t.strictSame(got[3]?.item, item)
  }
})

t.test('a client that leaves while its response is refused does not make its provider wait', async t => {
  const { client, provider, charges } = await opened({ balance: 1 })
  client.message({ type: 'response.create' })
  client.left()
  await settle()
  t.equal(provider.closes.length, 1)
  t.strictSame([charges.held, charges.charged], [0, 0])
})
