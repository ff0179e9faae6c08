/** Names of chat fields in this protocol, so that errors name what the caller wrote. */
import type { Exchange } from '../../core/exchange.ts'
import { addressField } from '../native-body.ts'
import { callOf } from './call.ts'
import { MODEL_HEADER } from './error.ts'
import { OWN } from './options.ts'

/** Call options that are fields of a chat request. */
export const SAME = {
  maxOutputTokens: 'max_tokens',
  temperature: 'temperature',
  topP: 'top_p',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
} as const

const NAMES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(SAME).map(([option, field]) => [field, option])),
  response_format: 'responseFormat',
  tool_choice: 'toolChoice',
  reasoning_effort: 'reasoning',
  messages: 'prompt',
  model: MODEL_HEADER,
  stream: 'ai-language-model-streaming',
}

/** `messages[2].content[0].text` is `prompt[1].content[0].text`; what the gateway's own namespace set is named there. */
export function fieldOf(path: string, ex: Exchange): string {
  const { own, origins, places, addressed } = callOf(ex)
  const address = addressed && addressField(path, addressed, addressed, 'prompt')
  if (address !== undefined) return address
  const [root = ''] = /^\w+/.exec(path) ?? []
  if (own?.has(root)) return `providerOptions.${OWN}.${path}`
  const rest = path.slice(root.length)
  const [head, index, behind] = /^\[(\d+)\](.*)$/.exec(rest)?.slice(0) ?? []
  if (root === 'messages' && head !== undefined) return `prompt[${origins?.[Number(index)] ?? index}]${behind}`
  if (root === 'tools' && head !== undefined) return `tools[${places?.[Number(index)] ?? index}]${behind}`
  return Object.hasOwn(NAMES, root) ? NAMES[root]! + rest : path
}
