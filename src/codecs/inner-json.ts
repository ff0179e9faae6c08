/** Bounds of texts in a request that are JSON themselves and that many wires parse: arguments and results of tools. */

import type { ChatRequest, Message } from '../core/chat-request.ts'
import type { ExchangeInput } from '../core/exchange-input.ts'
import { MAX_CALL_CHARACTERS } from '../json/answer-bounds.ts'
import { jsonIn } from '../json/json.ts'
import { type Bounds, CALL_BOUNDS, Count, MAX_LEVELS, MAX_NAME_CHARACTERS, MAX_VALUES, Shape } from '../json/shape.ts'
import { errors } from '../lib/error.ts'
import { MAX_PARSED_RESULTS, resultText } from '../wire/results.ts'

/** Depth of such a text in a body. */
const CALL_LEVEL = 6
const RESULT_LEVEL = 3
/** Results may contain long lists, and be no JSON, whose quotes say nothing of names. */
const RESULT_BOUNDS: Bounds = { values: MAX_VALUES, nameLength: Number.POSITIVE_INFINITY }
/** Results that begin like an object; other text is sent as text. */
const OBJECT = /^\s*\{\s*["}]/

/** Throws a 400 for JSON texts beyond the bounds of a body, of which the values of `input` are used, and 529 without memory. */
export function checkTexts({ messages }: ChatRequest, input?: ExchangeInput): void {
  const count = new Count(input?.values)
  let called = 0
  let given = 0
  for (const [i, message] of messages.entries()) {
    for (const [j, call] of message.tool_calls?.entries() ?? []) {
      // The input of a custom tool is free text, and never parsed.
      if (call.type !== 'function') continue
      const { arguments: text } = call.function
      called += text.length
      if (called > MAX_CALL_CHARACTERS) throw tooMuch(`messages[${i}].tool_calls[${j}].function.arguments`)
      measure(text, CALL_BOUNDS, CALL_LEVEL, count)
      if (text.startsWith('"')) measureInner(text, count)
    }
    given += measureResult(message, count, given)
  }
  input?.holds(count)
}

/** Checks the results of tools only. */
export function checkResults({ messages }: ChatRequest, input: ExchangeInput): void {
  const count = new Count(input.values)
  let given = 0
  for (const message of messages) given += measureResult(message, count, given)
  input.holds(count)
}

/** `given`: characters of earlier results; returns the new sum. Beyond the bound results are not parsed. */
function measureResult({ role, content }: Message, count: Count, given: number): number {
  if (role !== 'tool' && role !== 'function') return 0
  const text = resultText(content)
  if (given >= MAX_PARSED_RESULTS || !OBJECT.test(text)) return 0
  measure(text.slice(0, MAX_PARSED_RESULTS - given), RESULT_BOUNDS, RESULT_LEVEL, count)
  return text.length
}

/** Text that was encoded twice is parsed twice (docs/contributing/edge-cases.md#chat-chunks C19). */
function measureInner(text: string, count: Count): void {
  const inner = jsonIn(text)
  if (typeof inner === 'string') measure(inner, CALL_BOUNDS, CALL_LEVEL, count)
}

/** Adds what JSON text at `level` of a body holds. Throws a 400 beyond the bounds. */
export function measure(text: string, bounds: Bounds, level: number, count: Count): void {
  const shape = new Shape(bounds, count, level)
  shape.add(text)
  if (shape.excess === 'levels') throw errors.tooDeep(MAX_LEVELS)
  if (shape.excess === 'values') throw errors.tooManyElements(bounds.values)
  if (shape.excess === 'nameLength') throw errors.nameTooLong(MAX_NAME_CHARACTERS)
  if (shape.excess === 'names') throw errors.tooManyNames(bounds.names!)
}

const tooMuch = (at: string) =>
  errors.invalidField(at, `the arguments of all calls may have at most ${MAX_CALL_CHARACTERS} characters in total`)
