/** The turns of a client's own Messages body, as its provider may have them. */
import { append, type Json, type Target, textIn, unseal } from '../../src/plugin.ts'
import { type Block, isVisible, textBlock } from '../shared/claude/blocks.ts'
import { toWireName } from '../shared/tool-name.ts'

interface Spoken {
  role: 'user' | 'assistant'
  content: string | Block[]
}
/** Without content it only sets what counts from its place on. */
interface Instruction {
  role: 'system'
  content?: string | Block[]
}
export type NativeTurn = Spoken | Instruction

export interface NativeTurns {
  readonly messages: NativeTurn[]
  /** What leading system messages said: the wire has them only further on. */
  readonly system: Block[]
}

/** Roles that the wire lacks become its own; a system message between calls and results moves behind the results. */
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

/** Whether tools were called in it. */
const calls = (turn: NativeTurn | undefined): boolean =>
  turn?.role === 'assistant' && Array.isArray(turn.content) && turn.content.some(({ type }) => type === 'tool_use')

class Turns {
  readonly leading: Block[] = []
  readonly #turns: NativeTurn[] = []
  #held: NativeTurn[] = []
  /** True when the last turn is not as the client wrote it: what follows it in the same role is part of it. */
  #isMade = false
  /** Content of the last turn once it was joined with another. */
  #joined: Block[] = []

  system(turn: Instruction): void {
    if (this.#turns.length === 0) append(this.leading, blocksOf(turn.content ?? []))
    else if (calls(this.#turns.at(-1))) this.#held.push(turn)
    else this.#turns.push(turn)
  }

  /** `isMade` is for a turn that the client did not write so. */
  add(turn: Spoken, isMade = false): void {
    // Nothing is left of a turn that held only another provider's thinking.
    if (turn.role === 'assistant' && turn.content.length === 0) {
      this.#isMade = true
      return
    }
    const last = this.#turns.at(-1)
    if (last?.role === 'user' && turn.role === 'user' && (isMade || this.#isMade)) {
      if (last.content !== this.#joined) this.#joined = [...blocksOf(last.content)]
      last.content = this.#joined
      append(this.#joined, blocksOf(turn.content))
    } else this.#turns.push(turn)
    this.#isMade = isMade
    this.#release()
  }

  end(): NativeTurn[] {
    append(this.#turns, this.#held)
    return this.#turns
  }

  #release(): void {
    if (calls(this.#turns.at(-1))) return
    append(this.#turns, this.#held)
    this.#held = []
  }
}

const blocksOf = (content: string | Block[]): Block[] => (typeof content === 'string' ? [textBlock(content)] : content)

/** In their order: thinking that this provider sealed, unsealed; calls; and all else, unless the gateway made it. */
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
        // Other providers say such; this one refuses it.
        return isVisible(String(block.text)) ? [block] : []
      default:
        return typeof provider === 'string' || isMadeBy(made, block.tool_use_id ?? block.id) ? [] : [block]
    }
  })
}

const isMadeBy = (made: Set<unknown>, id: unknown): boolean => typeof id === 'string' && made.has(id)

/** Ids of searches that stand for the citations of another wire; no provider could read their results. */
function madeSearches(content: readonly Block[]): Set<unknown> {
  const isMade = ({ content: results }: Block) =>
    Array.isArray(results) && results.length > 0 && results.every(result => result?.encrypted_content === '')
  return new Set(content.filter(isMade).map(block => block.tool_use_id))
}

function userContent(content: string | Block[]): string | Block[] {
  if (typeof content === 'string') return content
  return content.map(block => {
    if (block.type !== 'tool_result') return block
    const result = { ...block, tool_use_id: idOf(String(block.tool_use_id)) }
    return Array.isArray(block.content) ? { ...result, content: block.content.map(reference) } : result
  })
}

/** A tool that the client found for the model, by the name under which it is offered. */
const reference = (block: Block): Block =>
  block.type === 'tool_reference' ? { ...block, tool_name: toWireName(String(block.tool_name)) } : block

/** Ids of other wires, in this one's alphabet (R4). */
const idOf = (id: string): string =>
  id.replace(/[^a-zA-Z0-9_-]/gu, character => `_u${character.codePointAt(0)!.toString(16)}_`)
