/** Tools in a client's own generateContent body. */
import { type ChatRequest, errors, isObject, type Json, listIn, objectIn, type Target } from '../../src/plugin.ts'
import type { Surface } from './surface.ts'
import { takesLevels } from './thinking.ts'
import { toWireName } from './tool-name.ts'
import type { GeminiTurn } from './turns.ts'

const FUNCTIONS = 'functionDeclarations'
/** Models that take either functions or tools of the provider. */
const OLDER = /gemini-[12]\b/

/**
 * Sets what tools of the provider beside functions need: they stay as they came. Throws a 400 that names the tool for
 * models that take one of the two.
 */
export function combineTools(sent: Json, { mapping }: Target, surface: Surface): void {
  const tools = listIn(sent.tools).map(tool => objectIn(tool))
  if (!tools.some(tool => listIn(tool[FUNCTIONS]).length > 0)) return
  const hosted = tools.map(tool => Object.keys(tool).find(name => name !== FUNCTIONS && isObject(tool[name])))
  const at = hosted.findIndex(name => name !== undefined)
  if (at < 0) return
  if (!takesLevels(mapping) && OLDER.test(mapping.externalId)) {
    const param = `tools[${at}].${hosted[at]}`
    const rule = 'this model takes either functions or tools of its provider'
    throw errors.combination(`${param}: ${rule}; leave one of them out, or choose a newer model.`, param)
  }
  const given = objectIn(sent.toolConfig)
  const calling = objectIn(given.functionCallingConfig)
  const isFree = calling.mode == null || calling.mode === 'AUTO' || calling.mode === 'MODE_UNSPECIFIED'
  const functionCallingConfig = isFree ? Object.assign({}, calling, { mode: 'VALIDATED' }) : calling
  sent.toolConfig = Object.assign({}, given, { functionCallingConfig }, surface.searchBesideFunctions)
}

/**
 * Escapes the names of functions, wherever they stand; answers are decoded from their escapes. Changes `sent`, whose chat
 * form is `input`.
 */
export function spell(sent: Json, input: Readonly<ChatRequest>): void {
  if (isSpelt(input)) return
  const named = (value: unknown): unknown =>
    isObject(value) && typeof value.name === 'string'
      ? Object.assign({}, value, { name: toWireName(value.name) })
      : value
  sent.tools = listIn(sent.tools).map(tool =>
    isObject(tool) && Array.isArray(tool[FUNCTIONS])
      ? Object.assign({}, tool, { [FUNCTIONS]: tool[FUNCTIONS].map(named) })
      : tool,
  )
  const { functionCallingConfig: calling, ...config } = objectIn(sent.toolConfig)
  if (isObject(calling) && Array.isArray(calling.allowedFunctionNames)) {
    const allowedFunctionNames = calling.allowedFunctionNames.map(name => toWireName(String(name)))
    sent.toolConfig = Object.assign(config, {
      functionCallingConfig: Object.assign({}, calling, { allowedFunctionNames }),
    })
  }
  for (const { parts } of sent.contents as GeminiTurn[]) {
    for (const [at, part] of parts.entries()) {
      for (const field of ['functionCall', 'functionResponse']) {
        if (isObject(part[field])) parts[at] = Object.assign({}, parts[at], { [field]: named(part[field]) })
      }
    }
  }
}

const isSpelt = ({ tools, messages }: Readonly<ChatRequest>): boolean =>
  (tools ?? []).every(tool => tool.type !== 'function' || toWireName(tool.function.name) === tool.function.name) &&
  messages.every(({ tool_calls: calls }) =>
    (calls ?? []).every(call => call.type !== 'function' || toWireName(call.function.name) === call.function.name),
  )
