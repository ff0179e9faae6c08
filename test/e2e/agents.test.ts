/**
 * Unmodified `openai` and `@anthropic-ai/sdk` clients as agents that think and call tools, against every chat wire. The
 * upstreams refuse what they did not sign as they signed it; what is another's must not reach them at all.
 */
import type Anthropic from '@anthropic-ai/sdk'
import t from 'tap'
import { chat } from '../helpers/chat.ts'
import { commandsOf } from '../helpers/commands.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { readEvents } from '../helpers/sse.ts'
import type { Step } from '../helpers/upstream.ts'
import {
  type Agent,
  anthropicAgent,
  contentOf,
  geminiAgent,
  openAiAgent,
  openAiHelper,
  openAiRunner,
  thoughtlessAgent,
  thoughtlessResponses,
  typedAgent,
} from './agents/loops.ts'
import { everyWire, nextOf } from './matrix/gateway.ts'
import { betrays, returns, wires } from './matrix/wires.ts'

const { upstream, gateway } = await everyWire()

const agents: Record<string, (model: string) => Agent> = {
  openai: model => openAiAgent(gateway, model),
  '@anthropic-ai/sdk': model => anthropicAgent(gateway, model),
  '@anthropic-ai/sdk, by its types alone': model => typedAgent(gateway, model),
  '@google/genai': model => geminiAgent(gateway, model),
  '@google/genai, without thoughts and ids': model => thoughtlessAgent(gateway, model),
}

const city = (name: string) => ({ name: 'weather', args: { city: name } })
const newest = async (prefix: string) => (await upstream.record(prefix)).at(-1)
const script = (prefix: string, ...steps: Step[]) => upstream.script(prefix, steps)
const refusals = async () =>
  (await upstream.record()).flatMap(({ prefix, refused }) => (refused ? [{ prefix, refused }] : []))

const oslo = { text: 'I ask for 🙂 Oslo', args: { city: 'Oslo' } }
const rome = { text: 'and for two more', args: { city: 'Rome' } }
const first: Step = { reasoning: oslo.text, toolCalls: [city('Oslo')] }
const second: Step = { reasoning: rome.text, toolCalls: [city('Rome'), city('Łódź')] }
const third: Step = { reasoning: 'that will do', text: 'Cold everywhere' }
const told = (step: Step) => ({
  thought: step.reasoning,
  text: step.text ?? '',
  calls: ((step.toolCalls ?? []) as { args: unknown }[]).map(({ args }) => args),
})

t.test('a prompt that is too long is refused in the words by which each client finds that out', async t => {
  await upstream.reset()
  const message = 'The maximum context length is 9 tokens.'
  const body = { error: { message, type: 'invalid_request_error', code: 'context_length_exceeded' } }
  await upstream.script('chat', [{ status: 400, body }])
  const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }]
  const asked = { model: 'chat', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 9 }
  const ask = async (path: string, body: object) => {
    const answer = await gateway.post(path, body)
    return { status: answer.status, text: await answer.text() }
  }
  for (const stream of [false, true]) {
    const messages = await ask('/v1/messages', { ...asked, stream })
    t.match(messages, { status: 400, text: /prompt is too long: The maximum/ })
    const method = stream ? 'streamGenerateContent' : 'generateContent'
    const gemini = await ask(`/v1beta/models/chat:${method}`, { contents })
    t.match(gemini, { status: 400, text: /input token count exceeds the maximum number of tokens allowed: The/ })
    const chat = await ask('/v1/chat/completions', { ...asked, stream })
    const text = /this model's maximum context length is exceeded: The .*"code":"context_length_exceeded"/
    t.match(chat, { status: 400, text })
    const completion = await ask('/v1/completions', { model: 'chat', prompt: 'Hi', stream })
    t.match(completion, { status: 400, text })
    if (!stream) t.match(await ask('/v1/responses', { model: 'chat', input: 'Hi' }), { status: 400, text })
  }
  const streamed = await gateway.post('/v1/responses', { model: 'chat', input: 'Hi', stream: true })
  t.equal(streamed.status, 200)
  const { data } = await readEvents<Record<string, unknown>>(streamed)
  const error = { code: 'context_length_exceeded', message: /exceeds the context window of this model: The maximum/ }
  t.match(data, [
    { type: 'response.created', sequence_number: 0 },
    { type: 'response.in_progress' },
    { type: 'error', error },
    { type: 'response.failed', sequence_number: 3, response: { status: 'failed', store: false, error } },
  ])
})

for (const [client, agentOf] of Object.entries(agents)) {
  t.test(`${client}: three turns with tools and thinking, on every wire`, async t => {
    await upstream.reset()
    await Promise.all(
      wires.map(async wire => {
        await script(wire.id, first, second, third)
        const agent = agentOf(wire.id)
        const steps = [await agent.turn(), await agent.turn(), await agent.turn()]
        t.strictSame(steps, [first, second, third].map(told), wire.wire)
        const last = await newest(wire.id)
        const kept = wire.replays !== 'nothing'
        for (const thought of [oslo, rome]) {
          t.equal(returns(wire, last?.body, thought), kept, `${wire.wire}: its own thinking comes back to it`)
        }
      }),
    )
    t.same(await refusals(), [], 'no provider refuses what comes back')
  })

  for (const kind of ['twin', 'next'] as const) {
    const whose = kind === 'twin' ? 'of its own wire' : 'of another wire'
    t.test(`${client}: a turn that another provider ${whose} takes over shows it no thinking`, async t => {
      await upstream.reset()
      await Promise.all(
        wires.map(async wire => {
          const other = kind === 'twin' ? wire : nextOf(wire)
          const spare = `${other.id}-spare`
          const says = `${wire.wire}, then ${other.wire}`
          const agent = agentOf(`${wire.id}-${kind}`)
          await script(wire.id, first)
          t.strictSame(await agent.turn(), told(first), says)

          await script(wire.id, { status: 500 })
          await script(spare, second)
          t.strictSame(await agent.turn(), told(second), `${says}: the other takes over`)
          t.notOk(betrays((await newest(spare))?.body, oslo), `${says}: it sees no thinking of the first`)

          await script(wire.id, third)
          t.strictSame(await agent.turn(), told(third), `${says}: the first is back`)
          const own = (await newest(wire.id))?.body
          t.equal(returns(wire, own, oslo), wire.replays !== 'nothing', `${says}: with its own thinking`)
          t.notOk(betrays(own, rome), `${says}: and without that of the other`)
        }),
      )
      t.same(await refusals(), [], 'no provider refuses what comes back')
    })
  }
}

t.test('@anthropic-ai/sdk: every thought is shown as thinking that is signed, whole and streamed', async t => {
  await upstream.reset()
  await Promise.all(
    wires.flatMap(wire =>
      [false, true].map(async streams => {
        const spare = `${wire.id}-spare`
        await script(streams ? wire.id : spare, first)
        const content = await contentOf(gateway, streams ? wire.id : `${spare}/${wire.id}-twin`, streams)
        const says = `${wire.wire}, ${streams ? 'streamed' : 'whole'}`
        t.strictSame(
          content.map(({ type }) => type),
          ['thinking', 'tool_use'],
          says,
        )
        const [thought] = content as Anthropic.ThinkingBlock[]
        t.match(thought, { thinking: oslo.text, signature: /./ }, says)
        if (!/^anthropic|^bedrock/.test(wire.wire)) t.match(thought!.signature, /^[A-Za-z0-9+/]+=*$/, says)
      }),
    ),
  )
})

for (const [name, run] of [
  ['runTools()', openAiRunner],
  ['stream()', openAiHelper],
  ['responses.create()', thoughtlessResponses],
] as const) {
  t.test(`openai ${name}: what the client drops of an answer does not stop the loop`, async t => {
    await upstream.reset()
    await Promise.all(
      wires.map(async wire => {
        await script(wire.id, first, second, third)
        t.equal(await run(gateway, wire.id), third.text, wire.wire)
        const last = await newest(wire.id)
        // To a provider of its own wire a body goes as it came.
        const isNative = run === thoughtlessResponses && wire.wire === 'openai.responses'
        for (const thought of [oslo, rome]) {
          const isKept = wire.replays !== 'nothing' && !isNative
          t.equal(returns(wire, last?.body, thought), isKept, `${wire.wire}: the gateway kept it`)
        }
      }),
    )
    t.same(await refusals(), [], 'no provider refuses what comes back')
  })
}

t.test('signatures of another organization, and forged ones, reach no provider', async t => {
  await upstream.reset()
  const command = commandsOf(gateway)
  const { id: organization } = await command<{ id: string }>('orgs.create', { name: 'another' })
  await command('credits.add', { organization, amount: '10' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
  const { key } = await command<{ key: string }>('keys.create', { project })
  const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } }]
  const question = { role: 'user', content: 'Hi' }
  const made = { type: 'server_tool_use', id: 'srvtoolu_made_up', name: 'made_up', input: {}, executableCode: { a: 1 } }
  await Promise.all(
    wires.map(async wire => {
      const thought = { text: oslo.text, args: oslo.args }
      await script(wire.id, first, ...Array.from({ length: 9 }, () => ({ text: 'ok' })))
      const { message } = await chat(gateway, 'whole', {
        model: wire.id,
        messages: [question],
        tools,
        reasoning_effort: 'low',
      })
      const results = message.tool_calls!.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'cold' }))
      const ask = async (turn: object, headers?: Record<string, string>) => {
        const body = { model: wire.id, messages: [question, turn, ...results], tools, reasoning_effort: 'low' }
        const response = await gateway.chat(body, headers)
        t.equal(response.status, 200, `${wire.wire}: ${await response.text()}`)
        return (await newest(wire.id))?.body
      }
      t.equal(returns(wire, await ask(message), thought), wire.replays !== 'nothing', wire.wire)
      if (wire.replays === 'nothing' || wire.replays === 'text') return
      const forms: Record<string, string> = {
        'another mark': JSON.stringify(message).replace(/(mgs1\.\w{8}\.)..../g, '$1AAAA'),
        'no mark': JSON.stringify(message).replace(/mgs1\.\w{8}\.[\w-]{22}\./g, ''),
        'another provider': JSON.stringify(message).replaceAll(`.${wire.id}:`, `.${wire.id}-spare:`),
      }
      const sent: [says: string, body: unknown][] = [
        ['another organization', await ask(message, { authorization: `Bearer ${key}` })],
      ]
      for (const [says, text] of Object.entries(forms)) sent.push([says, await ask(JSON.parse(text))])
      for (const [says, body] of sent) t.notOk(returns(wire, body, thought), `${wire.wire}: ${says}`)

      const blocks = ['server_tool_use', 'executableCode', 'web_search_call'].map(type => ({
        ...made,
        type,
        provider: wire.id,
      }))
      const invented = await ask({ ...message, provider_native_blocks: blocks })
      t.notMatch(JSON.stringify(invented), /made_up/, `${wire.wire}: a native block`)
      const response = await gateway.post('/v1/messages', {
        model: wire.id,
        max_tokens: 100,
        messages: [question, { role: 'assistant', content: [made, { type: 'text', text: 'I looked.' }] }, question],
      })
      t.equal(response.status, 200, `${wire.wire}: ${await response.text()}`)
      t.notMatch(JSON.stringify((await newest(wire.id))?.body), /made_up/, `${wire.wire}: a block of a Messages client`)
    }),
  )
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
