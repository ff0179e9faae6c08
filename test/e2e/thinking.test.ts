/** What clients ask of a model's thinking, over every chat wire, whole and streamed. */

import t from 'tap'
import type { Json } from '../../src/json/json.ts'
import { chat, type Mode } from '../helpers/chat.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { readEvents } from '../helpers/sse.ts'
import type { Step } from '../helpers/upstream.ts'
import { openAiAgent, openAiHelper, openAiRunner } from './agents/loops.ts'
import { budgeted, everyWire } from './matrix/gateway.ts'
import { type ChatWire, wires as chatWires } from './matrix/wires.ts'

const { upstream, gateway } = await everyWire()
const wires = [...chatWires, ...budgeted]
/** Their answers go to Messages clients as they came. */
const isOwn = ({ wire }: ChatWire) => wire.startsWith('anthropic.')

const modes: readonly Mode[] = ['whole', 'stream']
const messages = [{ role: 'user', content: 'Hi' }]
const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } }]
const weather = { name: 'weather', args: { city: 'Oslo' } }
const script = (prefix: string, ...steps: Step[]) => upstream.script(prefix, steps)
const sent = async ({ id }: ChatWire) => JSON.stringify((await upstream.record(id)).at(-1)?.body)
const refusals = async () =>
  (await upstream.record()).flatMap(({ prefix, refused }) => (refused ? [[prefix, refused]] : []))
const onEvery = (play: (wire: ChatWire) => Promise<unknown>, some: readonly ChatWire[] = wires) =>
  Promise.all(some.map(play))

/** The content of an answer in the Messages form. */
async function ask(wire: ChatWire, mode: Mode, body: Json): Promise<Json[]> {
  const stream = mode === 'stream' && { stream: true }
  const response = await gateway.post('/v1/messages', {
    model: wire.id,
    max_tokens: 4000,
    messages,
    ...body,
    ...stream,
  })
  if (mode === 'whole') return ((await response.json()) as { content: Json[] }).content
  const { data } = await readEvents<Json & { delta: Json; content_block: Json }>(response)
  const content: Json[] = []
  for (const { type, content_block: block, delta } of data) {
    if (type === 'content_block_start') content.push({ ...block })
    if (type !== 'content_block_delta') continue
    const last = content.at(-1)!
    for (const field of ['text', 'thinking', 'signature']) {
      if (typeof delta[field] === 'string') last[field] = `${last[field] ?? ''}${delta[field]}`
    }
    if (typeof delta.partial_json === 'string') last.json = `${last.json ?? ''}${delta.partial_json}`
  }
  return content.map(({ json, ...block }) =>
    json === undefined ? block : { ...block, input: JSON.parse(String(json)) },
  )
}

t.test('a model that does not reason answers a client that asks it to', async t => {
  await upstream.reset()
  for (const fields of [
    { thinking: { type: 'adaptive' }, output_config: { effort: 'xhigh' } },
    { thinking: { type: 'enabled', budget_tokens: 2000 } },
    { output_config: { effort: 'high' } },
  ]) {
    const answer = await gateway.post('/v1/messages', { model: 'marking', max_tokens: 4000, messages, ...fields })
    t.equal(answer.status, 200, await answer.text())
    t.notMatch((await upstream.record('marking')).at(-1)?.body, { thinking: /./, output_config: /./ })
  }
})

t.test('an output limit above that of the model is lowered to it, on every wire', async t => {
  await upstream.reset()
  const prompt = { role: 'user', content: 'Hi' }
  const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }]
  await onEvery(async wire => {
    const { id: model, efforts } = wire
    const thinking = efforts.length === 0 ? { type: 'enabled', budget_tokens: 31_999 } : undefined
    const [said, answer] = await Promise.all([
      gateway.post('/v1/messages', { model, messages: [prompt], max_tokens: 64_000, thinking }),
      gateway.post('/v1/chat/completions', { model, messages: [prompt], max_tokens: 64_000 }),
      gateway.post('/v1/responses', { model, input: 'Hi', max_output_tokens: 64_000 }),
      gateway.post(`/v1beta/models/${model}:generateContent`, {
        contents,
        generationConfig: { maxOutputTokens: 64_000 },
      }),
    ])
    t.equal(said.status, 200, await said.text())
    t.match(await answer.json(), { metadata: { max_tokens: 4096 } }, wire.id)
    const requests = (await upstream.record(wire.id)).map(({ body }) => JSON.stringify(body))
    t.equal(requests.length, 4, wire.id)
    for (const body of requests) t.match(body, /"max(?:_completion|_output|Output)?(?:_tokens|Tokens)":4096\b/, wire.id)
  })
  t.same(await refusals(), [])
})

for (const mode of modes) {
  t.test(`a Messages client that asks for no thinking reads its answer first, ${mode}`, async t => {
    await upstream.reset()
    for (const body of [{}, { thinking: { type: 'disabled' } }]) {
      await onEvery(async wire => {
        if (isOwn(wire)) return
        await script(wire.id, { reasoning: 'Hm', text: 'Hello' })
        const content = await ask(wire, mode, body)
        t.match(content, [{ type: 'text', text: 'Hello' }], wire.id)
        t.equal(content.length, 1, wire.id)
        t.notMatch(await sent(wire), /"includeThoughts":true|"summary"|"summarized"/, `${wire.id} is asked for none`)
      })
    }
    t.same(await refusals(), [])
  })

  t.test(`and between its calls it holds only what the provider needs back, ${mode}`, async t => {
    await upstream.reset()
    await onEvery(async wire => {
      if (isOwn(wire)) return
      await script(wire.id, { reasoning: 'Hm', text: 'I look.', toolCalls: [weather] }, { text: 'Cold' })
      const tools = [{ name: 'weather', input_schema: { type: 'object' } }]
      const content = await ask(wire, mode, { tools })
      t.match(content[0], { type: 'text', text: 'I look.' }, wire.id)
      const use = content.find(({ type }) => type === 'tool_use')
      const rest = content.filter(block => block !== content[0] && block !== use)
      t.ok(
        rest.every(({ type, thinking = '' }) => /thinking$/.test(String(type)) && thinking === ''),
        wire.id,
      )
      const result = { type: 'tool_result', tool_use_id: use?.id, content: 'cold' }
      const history = [...messages, { role: 'assistant', content }, { role: 'user', content: [result] }]
      t.match(await ask(wire, mode, { tools, messages: history }), [{ type: 'text', text: 'Cold' }], wire.id)
    })
    t.same(await refusals(), [])
  })

  t.test(`a budget of a Messages client reaches every wire in its own words, ${mode}`, async t => {
    await upstream.reset()
    const thinking = { type: 'enabled', budget_tokens: 2000 }
    // The newer models of Claude themselves refuse a budget from clients of their own wire.
    const some = wires.filter(wire => !isOwn(wire) || wire.efforts.length === 0)
    await onEvery(async wire => {
      await script(wire.id, { reasoning: 'Hm', text: 'Hello' })
      const content = (await ask(wire, mode, { thinking })).filter(({ thinking, text }) => thinking || text)
      t.match(
        content,
        [
          { type: 'thinking', thinking: 'Hm' },
          { type: 'text', text: 'Hello' },
        ],
        wire.id,
      )
      t.match(await sent(wire), /"(medium|high)"|_budget":2000|_tokens":2000|Budget":2000/i, wire.id)
    }, some)
    t.same(await refusals(), [])
  })

  t.test(`a budget of a chat client reaches every wire in its own words, ${mode}`, async t => {
    await upstream.reset()
    await onEvery(async wire => {
      await script(wire.id, { reasoning: 'Hm', text: 'Hello' })
      const turn = await chat(gateway, mode, { model: wire.id, messages, reasoning: { max_tokens: 2000 } })
      t.match(turn, { status: 200, message: { reasoning: 'Hm', content: 'Hello' } }, wire.id)
      t.match(await sent(wire), /"(medium|high)"|_budget":2000|_tokens":2000|Budget":2000/i, wire.id)
    })
    t.same(await refusals(), [])
  })

  t.test(`a forced tool is forced on every wire, whatever the effort, ${mode}`, async t => {
    await upstream.reset()
    const named = { type: 'function', function: { name: 'weather' } }
    for (const tool_choice of ['required', named]) {
      await onEvery(async wire => {
        await script(wire.id, { toolCalls: [weather] })
        const turn = await chat(gateway, mode, {
          model: wire.id,
          messages,
          tools,
          tool_choice,
          reasoning_effort: 'high',
        })
        t.equal(turn.message.tool_calls?.[0]?.function.name, 'weather', wire.id)
        const choice = /"(tool_?choice|functionCallingConfig)":("\w+"|\{.*?\})/i.exec((await sent(wire)) ?? '')?.[2]
        t.match(choice, /required|any|tool|function/i, `${wire.id} is forced`)
      })
    }
    t.same(await refusals(), [])
  })

  t.test(`no wire raises the limit of a caller that names an effort, ${mode}`, async t => {
    await upstream.reset()
    for (const max_completion_tokens of [500, 3000]) {
      await onEvery(async wire => {
        await script(wire.id, { text: 'Hello' })
        const asked = { model: wire.id, messages, max_completion_tokens, reasoning_effort: 'high' }
        t.equal((await chat(gateway, mode, asked)).status, 200, wire.id)
        const limits = (await sent(wire)).matchAll(/"(?:max_?\w*tokens|budget_tokens)":(\d+)/gi)
        const [most, ...others] = Array.from(limits, ([, value]) => Number(value)).sort((a, b) => b - a)
        t.equal(most, max_completion_tokens, wire.id)
        const budgets = wire.efforts.length === 0 && wire.model.includes('claude') && max_completion_tokens > 1024
        t.strictSame(others, budgets ? [2000] : [], `${wire.id}: a budget is below it`)
      })
    }
    t.same(await refusals(), [])
  })
}

for (const [name, run] of [
  ['runTools()', openAiRunner],
  ['stream()', openAiHelper],
] as const) {
  t.test(`openai ${name}: a budget does not stop a loop whose client drops the thinking`, async t => {
    await upstream.reset()
    const steps: Step[] = [{ reasoning: 'Hm', toolCalls: [weather] }, { toolCalls: [weather] }, { text: 'Cold' }]
    await onEvery(async wire => {
      await script(wire.id, ...steps)
      t.equal(await run(gateway, wire.id), 'Cold', wire.id)
    }, budgeted)
    t.same(await refusals(), [])
  })
}

t.test('a budget does not stop a loop that another provider began, and thinks again after it', async t => {
  await upstream.reset()
  for (const wire of budgeted) {
    const late = `${wire.id}-late`
    await script('early', { toolCalls: [weather] }, { status: 500 }, { status: 500 })
    const agent = openAiAgent(gateway, late)
    t.equal((await agent.turn()).calls.length, 1)
    await script(late, { reasoning: 'Hm', toolCalls: [weather] }, { text: 'Cold' })
    t.equal((await agent.turn()).calls.length, 1, wire.id)
    t.equal((await agent.turn()).text, 'Cold', wire.id)
    const bodies = (await upstream.record(late)).map(({ body }) => JSON.stringify(body))
    for (const body of bodies) t.notMatch(body, /"thinking"|reasoningContent/, `${wire.id}: the loop stays without`)
  }
  t.same(await refusals(), [])
})

t.test('a budget goes on in a loop that its client keeps whole, though a step had no thought', async t => {
  await upstream.reset()
  await onEvery(async wire => {
    await script(wire.id, { reasoning: 'Hm', toolCalls: [weather] }, { toolCalls: [weather] }, { text: 'Cold' })
    const agent = openAiAgent(gateway, wire.id)
    for (let turn = 0; turn < 3; turn++) await agent.turn()
    t.match(await sent(wire), /"type":"enabled"/, wire.id)
  }, budgeted)
  t.same(await refusals(), [])
})

t.test('a model that always thinks leaves forced tools to another provider, or to a 400', async t => {
  await upstream.reset()
  await script('able', { toolCalls: [weather] })
  const asked = { model: 'always', messages, tools, tool_choice: 'required' }
  const { message, metadata } = await chat(gateway, 'whole', asked)
  t.equal(message.tool_calls?.length, 1)
  t.equal(metadata?.used_provider, 'able')
  t.same(await upstream.record('always'), [])
  const alone = await gateway.chat({ ...asked, model: 'always/always' }, { 'x-no-fallback': 'true' })
  t.match(await alone.json(), { error: { param: 'tool_choice', message: /always thinks/ } })
  t.equal(alone.status, 400)
  await script('always', { text: 'Hello' })
  t.equal((await chat(gateway, 'whole', { model: 'always', messages, tools })).metadata?.used_provider, 'always')
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
