/**
 * Limits a client's own body on the operator's credentials: only features that are free, or counted in tokens and
 * searches, which mappings price. The operator may allow more with `native_fields` and `native_tools` of a manifest. A
 * caller with its own key is not limited.
 */
import {
  definitionIn,
  errors,
  isObject,
  isReference,
  type Json,
  listIn,
  type Target,
  textIn,
  toolsAdded,
  toolsIn,
} from '../../src/plugin.ts'
import { only } from '../shared/answer.ts'
import { dropUnpaid, fits } from '../shared/operator-pays.ts'

/** Fields of the body. Fields that only the gateway uses are not sent at all. */
const FIELDS: ReadonlySet<string> = new Set([
  'cache_control',
  'compaction',
  'context_management',
  'diagnostics',
  'max_tokens',
  'messages',
  'metadata',
  'model',
  'output_config',
  'service_tier',
  'speed',
  'stop_sequences',
  'stream',
  'system',
  'temperature',
  'thinking',
  'tool_choice',
  'tools',
  'top_k',
  'top_p',
])

/** Types of tools: client tools, and provider tools paid in tokens or searches. */
const TOOLS = [
  'custom',
  'bash_*',
  'computer_*',
  'memory_*',
  'text_editor_*',
  'tool_search_tool_*',
  'web_fetch_*',
  'web_search_*',
]

/** Types of blocks that a client may write into its own turns. */
const BLOCKS: ReadonlySet<string> = new Set([
  'compaction',
  'document',
  'image',
  'search_result',
  'text',
  'tool_addition',
  'tool_reference',
  'tool_removal',
  'tool_result',
])

/**
 * `sent` without disallowed fields that have no effect. Throws a 400 that names a disallowed field with an effect; a
 * target with the caller's own key may still accept it.
 */
export function onOperator(sent: Json, target: Target): Json {
  const allowed = { ...sent }
  // The wire takes no other member; the gateway reads the rest as tags.
  if (isObject(sent.metadata)) allowed.metadata = only(sent.metadata, ['user_id'])
  dropUnpaid(allowed, FIELDS, target)
  return allowed
}

/** Throws the same for tools of the client's body, declared or defined by a turn; a turn may also refer to one by name. */
export function checkTools(body: Readonly<Json>, { provider: { nativeTools = [] } }: Target): void {
  const unread = toolsAdded(body).find(added => !definitionIn(added) && !isReference(added))
  if (unread) throw errors.ownKeyOnly(unread.at)
  const types = [...TOOLS, ...nativeTools]
  const isAllowed = (type: string) => types.some(entry => fits(entry, type))
  for (const { tool, at } of toolsIn(body)) {
    if (!isObject(tool)) continue
    if (!isAllowed(textIn(tool.type) ?? 'custom')) throw errors.ownKeyOnly(`${at}.type`)
    const callers = listIn(tool.allowed_callers)
    // Code that calls tools runs at the provider.
    if (!callers.every(caller => caller === 'direct' || isAllowed(textIn(caller) ?? ''))) {
      throw errors.ownKeyOnly(`${at}.allowed_callers`)
    }
  }
}

/** Throws the same for blocks of the client's own turns. Provider blocks in assistant turns are sealed. */
export function checkTurns(messages: readonly Json[], { provider: { nativeFields = [] } }: Target): void {
  for (const [i, { role, content }] of messages.entries()) {
    if (role !== 'assistant') checkBlocks(content, `messages[${i}].content`, nativeFields)
  }
}

function checkBlocks(content: unknown, at: string, more: readonly string[]): void {
  for (const [i, block] of listIn(content).entries()) {
    if (!isObject(block)) continue
    const type = textIn(block.type) ?? ''
    if (!BLOCKS.has(type) && !more.some(entry => fits(entry, type))) throw errors.ownKeyOnly(`${at}[${i}].type`)
    if (type === 'tool_result') checkBlocks(block.content, `${at}[${i}].content`, more)
  }
}
