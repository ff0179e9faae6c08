/**
 * Twenty turns as Codex sends them (0.169, with its tools, metadata and ids), over every provider wire: what a provider read
 * once it reads again byte for byte, so that its prompt cache hits. Then the same as responses that a project keeps.
 */
import t, { type Test } from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import type { Step } from '../helpers/upstream.ts'
import { everyWire } from './matrix/gateway.ts'
import { type ChatWire, wires } from './matrix/wires.ts'

type Item = Record<string, unknown>

const { upstream, gateway } = await everyWire()
const TURNS = 20
const KEPT_TURNS = 8
const string = { type: 'string' }
const shape = (properties: Item) => ({ type: 'object', properties, required: Object.keys(properties) })
const tools = [
  { type: 'function', name: 'exec_command', description: 'Runs', strict: false, parameters: shape({ cmd: string }) },
  { type: 'function', name: 'view_image', strict: false, parameters: shape({ path: string }) },
  {
    type: 'namespace',
    name: 'multi_agent_v1',
    description: 'Agents',
    tools: [{ type: 'function', name: 'spawn_agent', strict: false, parameters: shape({ task: string }) }],
  },
  {
    type: 'custom',
    name: 'apply_patch',
    description: 'Edits files',
    format: { type: 'grammar', syntax: 'lark', definition: 'start: "*** Begin Patch"' },
  },
]
/** By turn: a command, two at once, a patch, an agent. */
const rounds = [
  [{ name: 'exec_command', args: { cmd: 'ls' } }],
  ['a', 'b'].map(name => ({ name: 'exec_command', args: { cmd: `cat ${name}` } })),
  [{ name: 'apply_patch', input: '*** Begin Patch\n+"ß"\n*** End Patch', args: { input: '*** Begin Patch\n+"ß"' } }],
  [{ name: 'spawn_agent', args: { task: 'look' } }],
]
const told = (kind: string, role: string, text: string) => ({
  type: 'message',
  id: `msg_01a210a2-${kind}`,
  role,
  content: [{ type: 'input_text', text }],
})
const opening = [
  told('1', 'developer', 'You are a coding agent running in the Codex CLI.'),
  told('2', 'user', '<environment_context>\n  <cwd>/home</cwd>\n</environment_context>'),
  told('3', 'user', 'Do twenty things'),
]

/** The items of the answer to one turn. */
async function ask(
  t: Test,
  id: string,
  turn: number,
  given: Item,
  key: string,
): Promise<{ id: string; output: Item[] }> {
  const body = {
    model: id,
    tools,
    tool_choice: 'auto',
    parallel_tool_calls: true,
    reasoning: { effort: 'low', summary: 'auto' },
    stream: true,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: `session-${id}`,
    client_metadata: { turn_id: String(turn), 'x-codex-window-id': 'a:0' },
    ...given,
  }
  const headers = { authorization: `Bearer ${key}`, 'session-id': `session-${id}`, 'thread-id': `session-${id}` }
  const response = await gateway.post('/v1/responses', body, headers)
  const text = await response.text()
  t.equal(response.status, 200, text.slice(0, 500))
  const last = text.slice(text.lastIndexOf('\ndata: ') + '\ndata: '.length)
  const event = JSON.parse(last) as { type: string; response: { id: string; output: Item[] } }
  t.equal(event.type, 'response.completed')
  return event.response
}

/** As Codex answers calls: by what they are called. */
const resultOf = ({ type, call_id }: Item, turn: number) => ({
  type: `${type}_output`,
  id: `fco_01a210a2-${call_id}`,
  call_id,
  output: `Chunk ID: ${turn}\nProcess exited with code 0\nOutput:\nturn ${turn}\n`,
})

function stepOf(turn: number, last: number, isNative: boolean): Step {
  const usage = { prompt: 100 + turn, completion: 5 }
  if (turn === last) return { text: 'All done', usage }
  const calls = rounds[turn % rounds.length]!.map(({ name, args, ...custom }) => {
    if (name === 'apply_patch') return isNative ? { name, ...custom } : { name, args }
    return { name: name === 'spawn_agent' ? 'multi_agent_v1__spawn_agent' : name, args }
  })
  return { reasoning: `Thought ${turn}`, toolCalls: calls, usage } as Step
}

/** Where the request of a turn is not that of the turn before with more at its end. */
function breaks(bodies: readonly Item[], turns: ChatWire['turns']): string[] {
  const parts = bodies.map(({ [turns]: conversation, client_metadata: _, ...rest }) => ({
    conversation: JSON.stringify(conversation).slice(0, -1),
    rest: JSON.stringify(rest),
  }))
  return parts.slice(1).flatMap(({ conversation, rest }, at) => {
    const before = parts[at]!
    return [
      ...(conversation.startsWith(before.conversation) ? [] : [`turn ${at + 1}: ${turns}`]),
      ...(rest === before.rest ? [] : [`turn ${at + 1}: ${rest}`]),
    ]
  })
}

const command = commandsOf(gateway)
const { id: organization } = await command<{ id: string }>('orgs.create', { name: 'codex', account: 'open' })
const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'p', responses: '1d' })
const { key } = await command<{ key: string }>('keys.create', { project })

for (const { id, turns } of wires) {
  for (const kept of [false, true]) {
    const last = kept ? KEPT_TURNS : TURNS
    t.test(
      `${id}: turns ${kept ? 'that go on from kept responses' : 'as Codex sends them'} keep their prefix`,
      async t => {
        await upstream.reset()
        await upstream.script(
          id,
          Array.from({ length: last + 1 }, (_, turn) => stepOf(turn, last, id === 'responses')),
        )
        let input: Item[] = opening
        let previous: string | undefined
        for (let turn = 0; turn <= last; turn++) {
          const given = kept ? { input, previous_response_id: previous } : { input, store: false }
          const { id: response, output } = await ask(t, id, turn, given, kept ? key : gateway.key)
          const calls = output.filter(({ type }) => /_call$/.test(String(type)))
          t.equal(calls.length, turn === last ? 0 : rounds[turn % rounds.length]!.length)
          if (turn % rounds.length === 3 && turn < last) {
            t.match(calls, [{ name: 'spawn_agent', namespace: 'multi_agent_v1' }])
          }
          const results = calls.map(call => resultOf(call, turn))
          input = kept ? results : [...input, ...output, ...results]
          previous = response
        }
        const record = await upstream.record(id)
        t.equal(record.length, last + 1)
        const bodies = record.map(({ body }) => body as Item)
        t.strictSame(breaks(bodies, turns), [])
        t.ok(JSON.stringify(bodies.at(-1)).includes('Do twenty things'))
      },
    )
  }
}

/** As Codex sends it for models that it knows. */
const search = {
  type: 'tool_search',
  execution: 'client',
  description: 'Searches for tools',
  parameters: { type: 'object', properties: { query: string, limit: { type: 'number' } }, required: ['query'] },
}
const calendar = {
  type: 'namespace',
  name: 'calendar',
  description: 'Appointments',
  tools: [
    { type: 'function', name: 'create', strict: false, defer_loading: true, parameters: shape({ title: string }) },
  ],
}

for (const { id } of wires) {
  t.test(`${id}: tools that the client searches for are called`, async t => {
    await upstream.reset()
    await upstream.script(id, [
      { reasoning: 'Which?', toolCalls: [{ name: 'tool_search', args: { query: 'calendar', limit: 2 } }] },
      { toolCalls: [{ name: 'calendar__create', args: { title: 'Tea' } }] },
      { text: 'All done' },
    ])
    const given = { tools: [...tools, search], store: false }
    const first = await ask(t, id, 0, { ...given, input: opening }, gateway.key)
    const call = first.output.at(-1)!
    t.match(call, { type: 'tool_search_call', execution: 'client', arguments: { query: 'calendar', limit: 2 } })
    const found = { type: 'tool_search_output', call_id: call.call_id, execution: 'client', status: 'completed' }
    const searched = [...opening, ...first.output, { ...found, tools: [calendar] }]
    const second = await ask(t, id, 1, { ...given, input: searched }, gateway.key)
    const made = second.output.at(-1)!
    t.match(made, { type: 'function_call', name: 'create', namespace: 'calendar', arguments: '{"title":"Tea"}' })
    const input = [...searched, ...second.output, resultOf(made, 1)]
    const last = await ask(t, id, 2, { ...given, input }, gateway.key)
    t.ok(last.output.some(({ type }) => type === 'message'))
    const record = await upstream.record(id)
    t.strictSame(
      record.map(({ refused }) => refused),
      [null, null, null],
    )
    const native = id === 'responses'
    t.match(JSON.stringify(record[1]?.body), native ? '"type":"tool_search_output"' : 'calendar__create')
    t.match(JSON.stringify(record[2]?.body), native ? '"type":"tool_search_call"' : 'calendar__create')
  })
}
