/** Stored responses, as the unmodified `openai` client continues them, over every provider wire. */
import OpenAI from 'openai'
import t, { type Test } from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import type { Step } from '../helpers/upstream.ts'
import { everyWire } from './matrix/gateway.ts'
import { wires } from './matrix/wires.ts'

type Item = Record<string, unknown>

const { upstream, gateway } = await everyWire()
const command = commandsOf(gateway)
const usage = { prompt: 11, completion: 3 }
const weather: OpenAI.Responses.FunctionTool = {
  type: 'function',
  name: 'weather',
  description: 'Tells it',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  strict: false,
}
const play = async (prefix: string, ...steps: Step[]) => {
  await upstream.reset()
  await upstream.script(prefix, steps)
}
const sentTo = async (prefix: string) => (await upstream.record(prefix)).map(({ body }) => body as Item)

let made = 0
/** A project of an organization of its own, on an open account. */
async function project(responses = '30d', more = {}) {
  const { id: org } = await command<{ id: string }>('orgs.create', { name: `state-${++made}`, account: 'open' })
  const { id } = await command<{ id: string }>('projects.create', { organization: org, name: 'p', responses, ...more })
  const { key } = await command<{ key: string }>('keys.create', { project: id })
  return { org, id, key, client: clientOf(key) }
}
const clientOf = (apiKey: string) => new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 })
async function refused(t: Test, promise: Promise<unknown>, expected: object, what = '') {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  t.match(error, expected, what)
}
const notFound = { status: 404, error: { type: 'invalid_request_error', param: 'id' } }
const gone = { status: 400, code: 'previous_response_not_found', param: 'previous_response_id' }

const keeper = await project()

for (const [place, { id }] of wires.entries()) {
  const next = wires[(place + 1) % wires.length]!
  t.test(`${id}: an answer with calls and reasoning is continued by its id, there and over ${next.id}`, async t => {
    const { client } = keeper
    const toolCalls = ['Oslo', 'Bergen'].map(city => ({ name: 'weather', args: { city } }))
    await play(id, { reasoning: 'Two places', toolCalls, usage }, { text: 'Cold', usage })
    await upstream.script(next.id, [{ text: 'Very cold', usage }])
    const thinks = { tools: [weather], reasoning: { effort: 'low' as const } }
    const first = await client.responses.create({ ...thinks, model: id, input: 'Weather?', instructions: 'Be brief' })
    t.match(first, { store: true, previous_response_id: null })
    const outputs = first.output
      .filter(item => item.type === 'function_call')
      .map(({ call_id }) => ({ type: 'function_call_output' as const, call_id, output: '-3' }))
    t.equal(outputs.length, 2)
    const stream = client.responses.stream({ ...thinks, model: id, previous_response_id: first.id, input: outputs })
    const second = await stream.finalResponse()
    t.match(second, { output_text: 'Cold', store: true, previous_response_id: first.id, instructions: null })
    t.equal(second.usage?.input_tokens, 11, 'usage is of all that the provider read')
    const third = await client.responses.create({
      ...thinks,
      model: next.id,
      previous_response_id: second.id,
      input: 'And tomorrow?',
    })
    t.match(third, { output_text: 'Very cold', previous_response_id: second.id })

    const [sent] = await sentTo(next.id)
    const whole = JSON.stringify(sent)
    const said = ['Weather?', 'Oslo', '-3', 'Cold', 'And tomorrow?']
    t.strictSame(
      said.map(text => whole.indexOf(text) >= 0),
      said.map(() => true),
    )
    t.notMatch(whole, /Be brief|previous_response_id/)
    const [begun, continued] = await sentTo(id)
    t.notOk('previous_response_id' in continued!)
    t.ok(JSON.stringify(begun).includes('Be brief'))
    if (id === 'responses') {
      t.strictSame((continued!.input as Item[]).slice(0, 1), [{ role: 'user', content: 'Weather?' }])
      t.match(continued, { store: false, include: ['reasoning.encrypted_content'] })
      t.match(continued!.input, [{}, { type: 'reasoning' }, { type: 'function_call' }, { type: 'function_call' }])
    }
  })
}

t.test('a stored response and its own input are read, listed in parts, and removed', async t => {
  const { client } = await project()
  await play('chat', { text: 'One', usage }, { text: 'Two', usage })
  const first = await client.responses.create({ model: 'chat', input: 'Hi', metadata: { a: 'b' }, tools: [weather] })
  const read = await client.responses.retrieve(first.id)
  t.strictSame({ ...read }, { ...first })
  const input: OpenAI.Responses.ResponseInput = [
    { role: 'developer', content: 'Short' },
    { role: 'user', content: [{ type: 'input_text', text: 'a' }] },
    { type: 'message', role: 'assistant', content: 'b' } as never,
    { id: first.output[0]!.id, type: 'item_reference' } as never,
    { role: 'user', content: 'c' },
  ]
  const second = await client.responses.create({ model: 'chat', previous_response_id: first.id, input })
  const listed = await client.responses.inputItems.list(second.id, { order: 'asc' })
  t.match(listed.data, [
    { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Short' }] },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'a' }], id: /^msg_/, status: 'completed' },
    { role: 'assistant', content: [{ type: 'output_text', text: 'b' }] },
    { role: 'assistant', id: first.output[0]!.id, content: [{ type: 'output_text', text: 'One' }] },
    { role: 'user', content: [{ type: 'input_text', text: 'c' }] },
  ])
  const ids = listed.data.map(({ id }) => id)
  t.equal(new Set(ids).size, 5)
  const pages: unknown[] = []
  for await (const { id } of client.responses.inputItems.list(second.id, { limit: 2 })) pages.push(id)
  t.strictSame(pages, ids.toReversed(), 'the newest first, in parts')
  const headers = { authorization: `Bearer ${client.apiKey}` }
  const page = (query: string) => gateway.get(`/v1/responses/${second.id}/input_items?${query}`, headers)
  t.match(await (await page('limit=2')).json(), { object: 'list', has_more: true, first_id: ids[4], last_id: ids[3] })
  const middle = await (await page(`after=${ids[1]}&order=asc&limit=1`)).json()
  t.match(middle, { has_more: true, first_id: ids[2], last_id: ids[2] })
  t.match(await (await page(`after=${ids[0]}`)).json(), { data: [], has_more: false, first_id: null, last_id: null })
  for (const query of ['limit=0', 'limit=101', 'limit=x', 'order=up', 'after=msg_x']) {
    t.equal((await page(query)).status, 400, query)
  }

  const ended = /has ended/
  await refused(t, client.responses.cancel(second.id), { status: 400, message: ended })
  const streamed = client.responses.retrieve(second.id, { stream: true })
  await refused(t, Promise.resolve(streamed), { status: 400, param: 'stream' })
  t.equal((await gateway.get(`/v1/responses/${second.id}`, { authorization: null })).status, 401)
  await client.responses.delete(first.id)
  for (const ask of [
    () => client.responses.retrieve(first.id),
    () => client.responses.delete(first.id),
    () => client.responses.cancel(first.id),
    () => client.responses.inputItems.list(first.id),
    () => client.responses.retrieve('resp_none'),
  ]) {
    await refused(t, Promise.resolve(ask()), notFound)
  }
  await refused(t, client.responses.create({ model: 'chat', input: 'Hi', previous_response_id: first.id }), gone)
  const orphan = client.responses.create({ model: 'chat', input: 'Hi', previous_response_id: second.id })
  await refused(t, orphan, { ...gone, message: new RegExp(first.id) }, 'the answer that is missing is named')
  t.equal((await client.responses.retrieve(second.id)).output_text, 'Two')
})

t.test('a response is found by its project alone, and by an end user only when it is of that session', async t => {
  const own = await project()
  const { id: sibling } = await command<{ id: string }>('projects.create', {
    organization: own.org,
    name: 'sibling',
    responses: '1d',
  })
  const { key: siblingKey } = await command<{ key: string }>('keys.create', { project: sibling })
  const { key: second } = await command<{ key: string }>('keys.create', { project: own.id })
  const session = async (customer: string) => {
    const headers = { authorization: `Bearer ${own.key}` }
    return (await (await gateway.post('/v1/sessions', { customer }, headers)).json()) as { sessionToken: string }
  }
  const { key: made } = await command<{ key: string }>('keys.create', { project: own.id, kind: 'session' })
  const [ada, ben] = [clientOf((await session('ada')).sessionToken), clientOf((await session('ben')).sessionToken)]
  await play('chat', ...Array.from({ length: 12 }, () => ({ text: 'Hi', usage })))
  const ofKey = await own.client.responses.create({ model: 'chat', input: 'Hi' })
  const ofAda = await ada.responses.create({ model: 'chat', input: 'Hi' })
  const rows: [string, OpenAI, string, boolean][] = [
    ['its key', own.client, ofKey.id, true],
    ['another key of its project', clientOf(second), ofKey.id, true],
    ['a key, of what an end user began', own.client, ofAda.id, true],
    ['a key of a sibling project', clientOf(siblingKey), ofKey.id, false],
    ['a key of another organization', keeper.client, ofKey.id, false],
    ['its end user', ada, ofAda.id, true],
    ['another end user', ben, ofAda.id, false],
    ['an end user, of what a key began', ada, ofKey.id, false],
    ['a session key of the operator, of what a key began', clientOf(made), ofKey.id, false],
    ['a session key of the operator, of what an end user began', clientOf(made), ofAda.id, false],
  ]
  for (const [who, client, id, isFound] of rows) {
    const goesOn = () => client.responses.create({ model: 'chat', input: 'On', previous_response_id: id, store: false })
    const item = `msg_${id.slice(5)}_0`
    const input = [{ type: 'item_reference', id: item }] as OpenAI.Responses.ResponseInput
    const refers = () => client.responses.create({ model: 'chat', input, store: false })
    if (isFound) {
      t.equal((await client.responses.retrieve(id)).id, id, who)
      t.equal((await client.responses.inputItems.list(id)).data.length, 1, who)
      await refused(t, Promise.resolve(client.responses.cancel(id)), { status: 400, message: /has ended/ }, who)
      t.match(await goesOn(), { store: false, previous_response_id: id }, who)
      t.match(await refers(), { store: false }, who)
    } else {
      await refused(t, Promise.resolve(client.responses.retrieve(id)), notFound, who)
      await refused(t, Promise.resolve(client.responses.delete(id)), notFound, who)
      await refused(t, Promise.resolve(client.responses.cancel(id)), notFound, who)
      await refused(t, Promise.resolve(client.responses.inputItems.list(id)), notFound, who)
      await refused(t, goesOn(), gone, who)
      await refused(t, refers(), { status: 400, param: 'input[0].id', message: new RegExp(item) }, who)
    }
  }
  await refused(t, clientOf('mgw_wrong').responses.retrieve(ofKey.id), { status: 401 })
})

t.test('a response is removed once while it is read and continued, and then by none', async t => {
  const { client } = await project()
  await play('chat', ...Array.from({ length: 20 }, () => ({ text: 'Hi', usage })))
  const statusOf = async (promise: Promise<unknown>) =>
    promise.then(
      () => 200,
      error => (error as { status: number }).status,
    )
  for (let round = 0; round < 5; round++) {
    const { id } = await client.responses.create({ model: 'chat', input: 'Hi' })
    const goOn = () => client.responses.create({ model: 'chat', input: 'On', previous_response_id: id, store: false })
    const [continued, removed, read, again, listed] = await Promise.all([
      statusOf(goOn()),
      statusOf(Promise.resolve(client.responses.delete(id))),
      statusOf(Promise.resolve(client.responses.retrieve(id))),
      statusOf(Promise.resolve(client.responses.delete(id))),
      statusOf(Promise.resolve(client.responses.inputItems.list(id))),
    ])
    t.strictSame([removed, again].sort(), [200, 404])
    t.ok([200, 400].includes(continued), `${continued}`)
    for (const status of [read, listed]) t.ok([200, 404].includes(status), `${status}`)
    await refused(t, goOn(), gone)
    await refused(t, Promise.resolve(client.responses.retrieve(id)), notFound)
  }
})

t.test('nothing is stored against the request, the project or the organization', async t => {
  const own = await project('off')
  await play('chat', ...Array.from({ length: 9 }, () => ({ text: 'Hi', usage })))
  const ask = (more = {}) => own.client.responses.create({ model: 'chat', input: 'Hi', ...more })
  const never = await ask({ store: true })
  t.match(never, { store: false })
  await refused(t, Promise.resolve(own.client.responses.retrieve(never.id)), notFound)
  await command('projects.update', { project: own.id, responses: '1h' })
  await refused(t, Promise.resolve(own.client.responses.retrieve(never.id)), notFound)
  const unwanted = await ask({ store: false })
  t.match(unwanted, { store: false })
  await refused(t, Promise.resolve(own.client.responses.retrieve(unwanted.id)), notFound)
  const kept = await ask()
  t.equal((await own.client.responses.retrieve(kept.id)).id, kept.id)

  await command('compliance.set', { organization: own.org, noLogging: true })
  await refused(t, Promise.resolve(own.client.responses.retrieve(kept.id)), notFound, 'zero data retention')
  t.match(await command('projects.update', { project: own.id, responses: '1h' }).catch(String), /zero data retention/)
  await command('projects.update', { project: own.id, responses: 'off' })
})

t.test('streams are stored as they ended, written before their last event; what a client left is not', async t => {
  const { client, key } = await project()
  const last = async (model: string) => {
    let event: OpenAI.Responses.ResponseStreamEvent | undefined
    for await (const one of await client.responses.create({ model, input: 'Hi', stream: true })) event = one
    if (!event || !('response' in event)) throw new Error('a stream ended without its response')
    return event.response
  }
  await play('chat', { text: 'Hello there', fault: 'reset', afterChunks: 2 } as Step)
  const failed = await last('chat')
  t.match(failed, { status: 'failed', store: true })
  await play('chat', { text: 'cut', finish: 'length', usage })
  const cut = await last('chat')
  for (const one of [failed, cut])
    t.strictSame({ ...(await client.responses.retrieve(one.id)) }, { ...one, ...withText(one) })
  t.match(cut, { status: 'incomplete', store: true })

  await play('chat', { text: 'Hello there', fault: 'stall', afterChunks: 2 } as Step)
  const leaving = new AbortController()
  const body = { model: 'chat', input: 'Hi', stream: true }
  const headers = { authorization: `Bearer ${key}` }
  const response = await gateway.post('/v1/responses', body, headers, leaving.signal)
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let seen = ''
  while (!seen.includes('output_text.delta')) seen += (await reader.read()).value ?? ''
  leaving.abort()
  const [id] = /resp_\w+/.exec(seen)!
  await refused(t, Promise.resolve(client.responses.retrieve(id!)), notFound)
})
const withText = ({ output }: OpenAI.Responses.Response) => ({
  output_text: output
    .flatMap(item => (item.type === 'message' ? item.content : []))
    .map(part => (part.type === 'output_text' ? part.text : ''))
    .join(''),
})

t.test('a replay from the response cache is stored as a response of its own', async t => {
  const { client } = await project('30d', { cache: 'on' })
  await play('chat', { text: 'Once', usage })
  const first = await client.responses.create({ model: 'chat', input: 'Hi' })
  const again = await client.responses.create({ model: 'chat', input: 'Hi' })
  t.match(again, { output_text: 'Once', store: true, gateway: { cached: true }, usage: { cost: 0 } } as object)
  t.not(again.id, first.id)
  await client.responses.delete(first.id)
  t.equal((await client.responses.retrieve(again.id)).output_text, 'Once')
})

t.test('the books are right after all of it', async t => {
  t.strictSame((await command<{ differences: string[] }>('usage.check')).differences, [])
})
