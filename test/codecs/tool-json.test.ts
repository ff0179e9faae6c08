/** Arguments and results of tools that a body holds as JSON are bounded before they are written. */
import t from 'tap'
import { messagesOf } from '../../src/codecs/ai-sdk/prompt.ts'
import { historyOf as geminiHistory } from '../../src/codecs/gemini/history.ts'
import { historyOf } from '../../src/codecs/messages/history.ts'
import { InputReader } from '../../src/codecs/responses/input.ts'
import { ToolNames } from '../../src/codecs/responses/tool-names.ts'
import { Count } from '../../src/json/shape.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { thrown } from '../core/kit.ts'

const MI = 1024 * 1024

type Wire = 'messages' | 'gemini' | 'AI SDK' | 'responses'

/** Reads a history of calls, and of their results. */
function read(wire: Wire, args: readonly object[], given: readonly object[] = []): unknown {
  const ids = args.map((_, at) => `c${at}`)
  if (wire === 'messages') {
    const content = args.map((input, at) => ({ type: 'tool_use' as const, id: ids[at]!, name: 'f', input }))
    return historyOf([{ role: 'assistant', content }])
  }
  if (wire === 'gemini') {
    const calls = args.map(args => ({ functionCall: { name: 'f', args } }))
    const results = given.map(response => ({ functionResponse: { name: 'f', response } }))
    return geminiHistory(
      [
        { role: 'model', parts: calls },
        { role: 'user', parts: results },
      ],
      new Count(),
    )
  }
  if (wire === 'responses') {
    const reader = new InputReader(new ToolNames(undefined), new Count())
    const type = 'tool_search_call'
    for (const [at, given] of args.entries()) {
      reader.read({ type, execution: 'client', call_id: ids[at]!, arguments: given }, `input[${at}]`)
    }
    return reader.end()
  }
  const named = (type: string, at: number) => ({ type, toolCallId: ids[at], toolName: 'f' })
  const calls = args.map((input, at) => ({ ...named('tool-call', at), input }))
  const results = given.map((value, at) => ({ ...named('tool-result', at), output: { type: 'json', value } }))
  return messagesOf(
    [
      { role: 'assistant', content: calls },
      { role: 'tool', content: results },
    ],
    new Count(),
    () => {},
  ).messages
}

/** Where a refusal says the second call, and the second result, is too much. */
const places: readonly [wire: Wire, args: string, result?: string][] = [
  ['messages', 'messages[0].content[1].input'],
  ['gemini', 'contents[0].parts[1].functionCall.args', 'contents[1].parts[1].functionResponse.response'],
  ['AI SDK', 'prompt[0].content[1].input', 'prompt[1].content[1].output.value'],
  ['responses', 'input[1].arguments'],
]

/** JSON of that many characters. */
const ofLength = (length: number) => ({ a: 'x'.repeat(length - '{"a":""}'.length) })

/** The same, and how often it was written. */
function counted(length: number): { value: object; writes: number } {
  const made = { value: {}, writes: 0 }
  const toJSON = () => {
    made.writes++
    return {}
  }
  made.value = { a: 'x'.repeat(length), toJSON }
  return made
}

t.test('as much as all calls and all results may have is read', async t => {
  for (const [wire, , result] of places) {
    const given = result ? [ofLength(4 * MI), ofLength(4 * MI)] : []
    t.doesNotThrow(() => read(wire, [ofLength(2 * MI), ofLength(2 * MI)], given), wire)
  }
})

t.test('a character more is refused by its name, and what is more by far is not written', async t => {
  const refused = (wire: Wire, at: string, says: string, run: () => unknown) => {
    const { status, param, message } = thrown(run) as GatewayError
    t.strictSame([status, param, message], [400, at, `${at}: ${says}`], wire)
  }
  const calls = `the arguments of all calls may have at most ${4 * MI} characters in total`
  const results = `all results of tools that are JSON may have at most ${8 * MI} characters in total`
  for (const [wire, args, result] of places) {
    refused(wire, args, calls, () => read(wire, [ofLength(2 * MI), ofLength(2 * MI + 1)]))
    const large = counted(4 * MI)
    refused(wire, args, calls, () => read(wire, [{}, large.value]))
    t.equal(large.writes, 0, wire)
    if (!result) continue
    refused(wire, result, results, () => read(wire, [{}, {}], [ofLength(4 * MI), ofLength(4 * MI + 1)]))
    const given = counted(8 * MI)
    refused(wire, result, results, () => read(wire, [{}, {}], [{}, given.value]))
    t.equal(given.writes, 0, wire)
  }
})

t.test('the input of a custom tool, and what a search of the client found, are bounded in the same way', t => {
  const reader = new InputReader(new ToolNames(undefined), new Count())
  const call = { type: 'custom_tool_call', call_id: 'c', name: 'f' }
  const ends = '{"input":""}'.length
  t.doesNotThrow(() => reader.read({ ...call, input: 'x'.repeat(4 * MI - ends) }, 'input[0]'))
  t.match(
    thrown(() => reader.read({ ...call, input: 'x' }, 'input[1]')),
    { status: 400, param: 'input[1].input' },
  )
  const found = { type: 'tool_search_output', execution: 'client', call_id: 'c', tools: [{ name: 'x'.repeat(8 * MI) }] }
  t.match(
    thrown(() => reader.read(found, 'input[2]')),
    { status: 400, param: 'input[2].tools' },
  )
  t.end()
})

t.test('escapes count as they are written', async t => {
  for (const [wire, args] of places) {
    const { param } = thrown(() => read(wire, [{}, { a: '\u0001'.repeat(MI) }])) as GatewayError
    t.equal(param, args, wire)
  }
})
