/** Turns of a client's own Messages body, converted for its provider. */
import { createHash } from 'node:crypto'
import { append, type Json, type Target, textIn, unseal, valueKey } from '../../src/plugin.ts'
import { type Block, isVisible, textBlock } from '../shared/claude/blocks.ts'
import { toWireName } from '../shared/tool-name.ts'
import { replayed } from './citations.ts'

interface Spoken {
  role: 'user' | 'assistant'
  content: string | Block[]
}
/** Without content, it only changes settings from its place on. */
interface Instruction {
  role: 'system'
  content?: string | Block[]
}
/** A turn of `messages`, of any role that the wire has. */
export type NativeTurn = Spoken | Instruction

interface NativeTurns {
  readonly messages: NativeTurn[]
  /** Text of leading system messages, which the wire accepts only in `system`. */
  readonly system: Block[]
}

/** Converts roles that the wire lacks; a system message between calls and results moves after the results. */
export function nativeTurns(messages: readonly Json[], target: Target): NativeTurns {
  const turns = new Turns()
  for (const message of messages) {
    const { role, content } = message as { role: string; content: string | Block[] }
    if (role === 'system' || role === 'developer')
      turns.system({ ...(message as Partial<Instruction>), role: 'system' })
    else if (role === 'assistant') {
      const kept = typeof content === 'string' ? (isVisible(content) ? content : []) : assistantBlocks(content, target)
      turns.add({ ...message, role, content: kept })
    } else {
      const isForeign = role !== 'user'
      const id = isForeign ? textIn(message.tool_call_id) : undefined
      const blocks = id ? [{ type: 'tool_result', tool_use_id: idOf(id), content }] : userContent(content)
      turns.add({ ...(!isForeign && message), role: 'user', content: blocks }, isForeign)
    }
  }
  return { messages: turns.end(), system: turns.leading }
}

/** Whether the turn contains tool calls. */
const calls = (turn: NativeTurn): boolean =>
  turn.role === 'assistant' && Array.isArray(turn.content) && turn.content.some(({ type }) => type === 'tool_use')

class Turns {
  readonly leading: Block[] = []
  readonly #turns: NativeTurn[] = []
  #held: NativeTurn[] = []
  /** The last turn contains tool calls. */
  #isCalling = false
  /** True when the gateway made the last turn: following content of the same role is added to it. */
  #isMade = false
  /** Content of the last turn after it was joined with another. */
  #joined: Block[] = []

  system(turn: Instruction): void {
    if (this.#turns.length === 0) append(this.leading, blocksOf(turn.content ?? []))
    else if (this.#isCalling) this.#held.push(turn)
    else this.#turns.push(turn)
  }

  /** `isMade`: the turn was not written by the client. */
  add(turn: Spoken, isMade = false): void {
    // A turn with only another provider's thinking becomes empty.
    if (turn.role === 'assistant' && turn.content.length === 0) {
      this.#isMade = true
      return
    }
    const last = this.#turns.at(-1)
    if (last?.role === 'user' && turn.role === 'user' && (isMade || this.#isMade)) {
      if (last.content !== this.#joined) this.#joined = [...blocksOf(last.content)]
      last.content = this.#joined
      append(this.#joined, blocksOf(turn.content))
    } else {
      this.#turns.push(turn)
      this.#isCalling = calls(turn)
    }
    this.#isMade = isMade
    this.#release()
  }

  end(): NativeTurn[] {
    append(this.#turns, this.#held)
    return this.#turns
  }

  #release(): void {
    if (this.#isCalling) return
    append(this.#turns, this.#held)
    this.#held = []
  }
}

const blocksOf = (content: string | Block[]): Block[] => (typeof content === 'string' ? [textBlock(content)] : content)

/** Blocks in order: thinking sealed by this provider, unsealed; calls; and the rest, unless the gateway made it. */
function assistantBlocks(content: readonly Block[], target: Target): Block[] {
  const made = madeSearches(content)
  return content.flatMap(block => {
    const { provider, extra_content: _, ...rest } = block
    switch (block.type) {
      case 'thinking': {
        const signature = unseal(target, textIn(block.signature))
        return signature === undefined ? [] : [{ ...block, signature }]
      }
      case 'redacted_thinking': {
        const data = unseal(target, textIn(block.data))
        return data === undefined ? [] : [{ ...block, data }]
      }
      case 'tool_use':
        return [{ ...rest, type: block.type, id: idOf(String(block.id)), name: toWireName(String(block.name)) }]
      case 'text':
        // Other providers send empty text; this wire rejects it.
        return isVisible(String(block.text)) ? [replayed(block, target)] : []
      default:
        return typeof provider === 'string' || isMadeBy(made, block.tool_use_id ?? block.id) ? [] : [block]
    }
  })
}

const isMadeBy = (made: Set<unknown>, id: unknown): boolean => typeof id === 'string' && made.has(valueKey(id))

/** Ids of searches that represent another wire's citations; no provider can read their results. */
function madeSearches(content: readonly Block[]): Set<unknown> {
  const isMade = ({ content: results }: Block) =>
    Array.isArray(results) && results.length > 0 && results.every(result => result?.encrypted_content === '')
  return new Set(content.filter(isMade).map(({ tool_use_id: id }) => valueKey(id)))
}

function userContent(content: string | Block[]): string | Block[] {
  if (typeof content === 'string') return content
  return content.map(block => {
    if (block.type !== 'tool_result') return block
    const result = { ...block, tool_use_id: idOf(String(block.tool_use_id)) }
    return Array.isArray(block.content) ? { ...result, content: block.content.map(reference) } : result
  })
}

/** A tool found by the client for the model, under the name that the request offers. */
const reference = (block: Block): Block =>
  block.type === 'tool_reference' ? { ...block, tool_name: toWireName(textIn(block.tool_name) ?? '') } : block

const PLAIN_ID = /^[a-zA-Z0-9_-]*$/
/** Longest id that is spelled character by character. */
const MAX_SPELLED_CHARACTERS = 64

/** Ids of other wires in this wire's alphabet (R4); of long ones their hash. */
function idOf(id: string): string {
  if (PLAIN_ID.test(id)) return id
  if (id.length > MAX_SPELLED_CHARACTERS) return `call_${createHash('sha256').update(id).digest('hex')}`
  return id.replace(/[^a-zA-Z0-9_-]/gu, character => `_u${character.codePointAt(0)!.toString(16)}_`)
}
