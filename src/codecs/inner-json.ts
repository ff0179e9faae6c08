/** Text of a request that is JSON itself, which many wires parse: what tools are called with, and what they give. */
import { errors } from '../core/error.ts'
import type { ChatRequest, Message } from '../core/ops.ts'
import { resultText } from '../core/results.ts'
import { type Excess, MAX_LEVELS, MAX_VALUES, Shape } from '../core/shape.ts'

/** Of all calls of a request; no model reads as much, and to parse it holds nobody up. In characters. */
const MAX_CALLED = 8 * 1024 * 1024
/** How deep such a text stands in a body. */
const CALL_LEVEL = 6
const RESULT_LEVEL = 3
/** Results that begin like an object; other text is sent as text. */
const OBJECT = /^\s*\{\s*["}]/

/** Throws a 400 for texts that are JSON and pass the bounds of a body, of which `values` are used. */
export function checkTexts({ messages }: ChatRequest, values?: number): void {
  const shape = new Shape(MAX_VALUES, values)
  let called = 0
  for (const [i, message] of messages.entries()) {
    for (const [j, call] of message.tool_calls?.entries() ?? []) {
      // The input of a custom tool is any text, and never parsed.
      if (call.type !== 'function') continue
      const { arguments: text } = call.function
      called += text.length
      if (called > MAX_CALLED) throw tooMuch(`messages[${i}].tool_calls[${j}].function.arguments`)
      refuse(shape.add(text, CALL_LEVEL) ?? twice(text, shape))
    }
    checkResult(message, shape)
  }
}

/** The same, of results of tools alone. */
export function checkResults({ messages }: ChatRequest, values: number): void {
  const shape = new Shape(MAX_VALUES, values)
  for (const message of messages) checkResult(message, shape)
}

function checkResult({ role, content }: Message, shape: Shape): void {
  if (role !== 'tool' && role !== 'function') return
  const text = resultText(content)
  if (OBJECT.test(text)) refuse(shape.add(text, RESULT_LEVEL))
}

/** Text that was encoded twice is parsed twice (edge case C19). */
function twice(text: string, shape: Shape): Excess | undefined {
  if (!text.startsWith('"')) return undefined
  try {
    return shape.add(String(JSON.parse(text)), CALL_LEVEL)
  } catch {
    // No JSON: nobody gets any further with it.
    return undefined
  }
}

function refuse(excess: Excess | undefined): void {
  if (excess === 'levels') throw errors.tooDeep(MAX_LEVELS)
  if (excess === 'values') throw errors.tooManyElements(MAX_VALUES)
}

const tooMuch = (at: string) =>
  errors.invalidParameters(`${at}: the arguments of all calls may have ${MAX_CALLED} characters together`, at)
