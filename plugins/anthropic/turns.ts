/** A chat history for the Messages wire: alternating turns, each tool call answered in the next turn. */
import {
  append,
  errors,
  functionCalls,
  type Message,
  objectArguments,
  PendingToolCalls,
  type Target,
  turnOf,
  wellFormed,
} from '../../src/plugin.ts'
import { type Block, contentBlocks, textBlock } from '../shared/claude/blocks.ts'
import { replayThinking } from '../shared/claude/thinking.ts'
import { UniqueNames } from '../shared/claude/unique-names.ts'
import { toWireName } from '../shared/tool-name.ts'

/** A turn of `messages` with its content as blocks. */
export interface MessagesTurn {
  role: 'user' | 'assistant'
  content: Block[]
}

/** Place for the result of a tool call; `block` is unset until a tool message fills it. */
interface Slot {
  readonly id: string
  block: Block | undefined
}

interface Draft extends MessagesTurn {
  readonly slots: Slot[]
}

/**
 * Leading system messages become `system`; a later one stays in place as a reminder, since moving it would change the
 * cached prefix. Throws 400 for a tool result without a call and for arguments that are not a JSON object.
 */
export function historyOf(messages: readonly Message[], target: Target): { system: Block[]; turns: MessagesTurn[] } {
  const system: Block[] = []
  const drafts: Draft[] = []
  const slots = new PendingToolCalls<Slot>(({ block }) => block !== undefined)
  const ids = new UniqueNames(toolId)
  const draft = (role: MessagesTurn['role']): Draft => turnOf(drafts, role, () => ({ role, content: [], slots: [] }))

  messages.forEach((message, i) => {
    const at = `messages[${i}]`
    switch (message.role) {
      case 'system':
      case 'developer': {
        const blocks = systemBlocks(message, at)
        if (drafts.length === 0) append(system, blocks)
        else append(draft('user').content, blocks.map(reminder))
        break
      }
      case 'user': {
        const blocks = contentBlocks(message.content, at)
        if (blocks.length > 0) append(draft('user').content, blocks)
        break
      }
      case 'assistant': {
        const blocks = assistantBlocks(message, at, target)
        // Thinking without text or calls is no turn.
        if (blocks.every(isThought) && !message.tool_calls?.length) break
        const turn = draft('assistant')
        // In a turn with thinking, the first block must be thinking (docs/contract.md#messages).
        const moved = turn.content[0] !== undefined && !isThought(turn.content[0]) ? blocks.filter(isThought) : []
        if (moved.length > 0) turn.content = [...moved, ...turn.content]
        append(turn.content, moved.length > 0 ? blocks.filter(block => !isThought(block)) : blocks)
        for (const call of functionCalls(message, at)) {
          const slot: Slot = { id: ids.unique(call.id), block: undefined }
          turn.slots.push(slot)
          slots.add(call.id, slot, turn)
          const input = objectArguments(call.function.arguments)
          turn.content.push({ type: 'tool_use', id: slot.id, name: toWireName(call.function.name), input })
        }
        break
      }
      case 'tool':
      case 'function': {
        const slot = slots.answeredBy(message, at)
        slot.block = toolResult(slot.id, message, at)
        draft('user')
        break
      }
    }
  })
  return { system, turns: alternate(drafts) }
}

/** True for the blocks of thinking, shown or redacted. */
export const isThought = ({ type }: Block): boolean => type === 'thinking' || type === 'redacted_thinking'
/** True for the block that answers a tool call. */
export const isResult = ({ type }: Block): boolean => type === 'tool_result'

/** Assistant content before the tool calls. Thinking must open the turn. */
function assistantBlocks(message: Message, at: string, target: Target): Block[] {
  const blocks = replayThinking(message, target)
  for (const native of message.provider_native_blocks ?? []) {
    const { provider, ...block } = native as Block
    if (provider === target.provider.id) blocks.push(block as Block)
  }
  const content = contentBlocks(message.content, at)
  append(blocks, content.length > 0 ? content : contentBlocks(message.refusal, at))
  return blocks
}

function systemBlocks(message: Message, at: string): Block[] {
  const blocks = contentBlocks(message.content, at)
  if (blocks.some(block => block.type !== 'text')) {
    throw errors.unsupported(`A ${message.role} message may hold text only.`, `${at}.content`)
  }
  return blocks
}

const reminder = (block: Block): Block => ({
  ...block,
  text: `<system-reminder>${block.text}</system-reminder>`,
})

/** A breakpoint of the whole result takes precedence over those of its parts. */
function toolResult(id: string, message: Message, at: string): Block {
  const mark = message.tool_result_cache_control
  const content =
    typeof message.content === 'string' ? wellFormed(message.content) : contentBlocks(message.content, at, !mark)
  return {
    type: 'tool_result',
    tool_use_id: id,
    ...(content.length > 0 && { content }),
    ...(message.is_error === true && { is_error: true }),
    ...(mark && { cache_control: mark }),
  }
}

/** Moves every result directly after its call and merges adjacent turns of one role. */
function alternate(drafts: readonly Draft[]): MessagesTurn[] {
  const turns: MessagesTurn[] = []
  const add = (role: MessagesTurn['role'], content: Block[]) => {
    if (content.length > 0) append(turnOf(turns, role, () => ({ role, content: [] })).content, content)
  }
  for (const { role, content, slots } of drafts) {
    add(role, content)
    add(
      'user',
      slots.map(({ id, block }) => block ?? { type: 'tool_result', tool_use_id: id, content: 'No result' }),
    )
  }
  if (turns[0]?.role !== 'user') turns.unshift({ role: 'user', content: [textBlock('.')] })
  return turns
}

/** Characters of a foreign tool id that are kept. */
const MAX_ID_CHARACTERS = 256

/** A foreign tool id in the wire's alphabet; for `UniqueNames`. */
function toolId(foreign: string, count: number): string {
  const base = foreign.slice(0, MAX_ID_CHARACTERS).replace(/[^a-zA-Z0-9_-]/g, '_') || 'call'
  return count === 1 ? base : `${base}_${count}`
}
