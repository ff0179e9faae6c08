/** An answer by a schema that the wire cannot ask for: it is the input of a tool. */
import type { Answer, Raw } from './answer.ts'

/** The tool that the gateway forces a model to call. */
const TOOL = 'json_answer'

/** The answer as a client sees it: the tool's input is its text, out of an envelope that the schema does not know. */
export function answerOf(said: Answer, schema: Raw): Answer {
  const call = said.calls.find(({ name }) => name === TOOL)
  if (!call) return said
  const { form: _, ...answer } = said
  const input = opened(call.args, schema)
  if (input === undefined) return { text: '', reasoning: '', calls: [], urls: [], finish: null, usage: null }
  const finish = answer.finish === 'tool_calls' ? 'stop' : answer.finish
  return { ...answer, text: JSON.stringify(input), calls: [], finish }
}

/** Undefined for an answer that the schema knows neither whole nor opened. */
function opened(input: Raw, schema: Raw): unknown {
  const known = (value: Raw) => (schema.required as string[]).every(name => name in value)
  const names = Object.keys(input)
  if (known(input) || names.length !== 1) return input
  const inner = input[names[0]!]
  const content = typeof inner === 'string' ? JSON.parse(inner) : inner
  return known(content) ? content : undefined
}
