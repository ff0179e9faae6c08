/** Bounds of what every attempt of a chat request writes anew for its provider, in one step. */

import type { ChatRequest, Message } from '../core/chat-request.ts'
import { MAX_CALLS } from '../json/answer-bounds.ts'
import { errors } from '../lib/error.ts'

/** Maximum characters in the arguments of all calls. */
const MAX_ALL_CALLS = 5 * MAX_CALLS
/** Maximum characters in the names and ids of all calls, with the ids in their results. Most wires rewrite them. */
const MAX_NAME_CHARACTERS = 2 * 1024 * 1024
/** In strict schemas, which Claude's wires rewrite: OpenAI takes 5,000 properties, each of which has a few keywords. */
const MAX_SCHEMA_NAMES = 16_384

/** Throws a 400 for a request beyond the bounds, whose body holds so many JSON `values`. */
export function checkCounts(request: ChatRequest, values: number): void {
  checkCalls(request.messages)
  // Each name has a value.
  if (values > MAX_SCHEMA_NAMES) checkSchemas(request)
}

function checkCalls(messages: readonly Message[]): void {
  let calls = 0
  let characters = 0
  for (const { tool_calls: made, tool_call_id: answered } of messages) {
    if (answered) characters += answered.length
    if (!made) continue
    calls += made.length
    for (const call of made) {
      const { name } = call.type === 'function' ? call.function : call.custom
      characters += call.id.length + name.length
    }
  }
  if (calls > MAX_ALL_CALLS) throw errors.tooManyElements(MAX_ALL_CALLS, 'tool calls')
  if (characters <= MAX_NAME_CHARACTERS) return
  const most = `${MAX_NAME_CHARACTERS} characters together`
  throw errors.invalidParameters(`The names and ids of tool calls and their results may have ${most}.`)
}

function checkSchemas(request: ChatRequest): void {
  const names = namesOf(strictSchemas(request), MAX_SCHEMA_NAMES)
  if (names > MAX_SCHEMA_NAMES)
    throw errors.tooManyElements(MAX_SCHEMA_NAMES, 'names in the schemas of strict tools and of the answer')
}

/** Returns the strict schemas of the tools and of the response format. */
function strictSchemas({ tools, response_format: format }: ChatRequest): unknown[] {
  const schemas: unknown[] = []
  for (const tool of tools ?? []) {
    if (tool.type === 'function' && tool.function.strict) schemas.push(tool.function.parameters)
  }
  if (format?.type === 'json_schema') schemas.push(format.json_schema.schema)
  return schemas
}

/** Names of members in a JSON value, counted up to one more than `most`. */
function namesOf(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return 0
  let names = 0
  const isList = Array.isArray(value)
  for (const member of isList ? value : Object.values(value)) {
    if (!isList) names++
    names += namesOf(member, most - names)
    if (names > most) return names
  }
  return names
}
