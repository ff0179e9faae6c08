/** Fields of chat requests that an operator sets for a virtual model (docs/virtual-models.md). */
import type { ChatBody, PassedParameters } from '../core/chat-request.ts'
import type { PresetFields } from '../core/codec.ts'
import type { Json } from '../json/json.ts'
import { errors } from '../lib/error.ts'
import { isAllowedTools } from './allowed-tools.ts'
import { checkChat } from './chat-rules.ts'
import { passedParameters } from './passed-parameters.ts'

/** Fields of the legacy form, and one that has no effect. */
const IGNORED: ReadonlySet<string> = new Set(['messages', 'functions', 'function_call', 'onboarding'])
/** Fields that the schema leaves unchecked, because clients may send anything in them. */
const UNCHECKED = { stop: 1, seed: 1, logprobs: 1, top_logprobs: 1, logit_bias: 1, top_k: 1 } satisfies Record<
  keyof PassedParameters,
  1
>

/** Reads fields as a canonical request has them. `fields`: those that the schema has. */
export const chatPreset = ({ names, read }: PresetFields): PresetFields => ({
  names: names.filter(name => !IGNORED.has(name)),
  read: fields => canonicalPreset(read(fields)),
  isCanonical: true,
})

function canonicalPreset(given: Readonly<Json>): Readonly<Json> {
  const passed: Readonly<Json> = passedParameters(given)
  const read: Json = {}
  for (const [name, value] of Object.entries(given)) {
    if (IGNORED.has(name)) continue
    if (Object.hasOwn(UNCHECKED, name) && value !== null) read[name] = valid(name, passed)
    else if (name === 'max_completion_tokens') read.max_tokens = value
    else if (name !== 'max_tokens' || given.max_completion_tokens == null) read[name] = value
  }
  const { tool_choice: choice } = given as Pick<ChatBody, 'tool_choice'>
  if (isAllowedTools(choice)) throw errors.invalidField('tool_choice', 'list the allowed tools in tools')
  const { parallel_tool_calls: parallel } = given
  if (parallel != null && typeof parallel !== 'boolean')
    throw errors.invalidField('parallel_tool_calls', 'must be boolean')
  checkChat(Object.assign({ model: '', messages: [] }, read))
  return read
}

function valid(name: string, passed: Readonly<Json>): unknown {
  if (name in passed) return passed[name]
  throw errors.invalidField(
    name,
    name === 'top_logprobs' ? 'must be 0 to 20, beside logprobs: true' : 'has a value of a wrong type',
  )
}
