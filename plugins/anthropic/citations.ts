/**
 * Citations of answers, and those of a client's own body. On the operator's credentials an encrypted member goes to the
 * provider that made it alone, and only in a turn of the assistant.
 */
import { isObject, type Json, looseIn, seal, type Target, unseal, withOpaque } from '../../src/plugin.ts'
import type { Block } from '../shared/claude/blocks.ts'
import { paysItself } from '../shared/operator-pays.ts'

type Change = (value: unknown) => unknown

/** A citation of an answer, bound to its provider. */
export const bound = (citation: unknown, target: Target): unknown =>
  withOpaque(citation, value => (typeof value === 'string' ? seal(target, value) : value))

/** A text of the assistant, without citations of another provider or, if the operator pays, of none. */
export function replayed(block: Block, target: Target): Block {
  const isOwn = paysItself(target)
  return recited(block, value => {
    if (typeof value !== 'string') return isOwn ? value : undefined
    return unseal(target, value) ?? (isOwn ? looseIn(value) : undefined)
  })
}

/** `body` without encrypted members in what the client wrote. The result shares unchanged parts with it. */
export function unsourced(body: Readonly<Json>): Readonly<Json> {
  const messages = mapped(body.messages as unknown[], turn => {
    return isObject(turn) && turn.role !== 'assistant' ? withMember(turn, 'content', listed) : turn
  })
  const plain = messages === body.messages ? body : { ...body, messages }
  return withMember(plain, 'system', listed)
}

const listed = (content: unknown): unknown => (Array.isArray(content) ? mapped(content, written) : content)

/** Texts may stand in a result, and in a source. */
function written(block: unknown): unknown {
  if (!isObject(block)) return block
  return withMember(withMember(recited(block, nothing), 'content', listed), 'source', written)
}

const nothing = () => undefined

function recited<B extends Json>(block: B, change: Change): B {
  const { citations } = block
  if (!Array.isArray(citations)) return block
  const changed = mapped(citations, citation => withOpaque(citation, change))
  if (changed === citations) return block
  const kept = changed.filter(citation => citation !== undefined)
  if (kept.length > 0) return { ...block, citations: kept }
  const { citations: _, ...rest } = block
  return rest as unknown as B
}

/** Returns the same object when the member is unchanged. */
function withMember<B extends Readonly<Json>>(holder: B, name: string, change: Change): B {
  const value = change(holder[name])
  return value === holder[name] ? holder : { ...holder, [name]: value }
}

/** Returns the same list when nothing changes. */
function mapped(list: readonly unknown[], change: Change): readonly unknown[] {
  const made = list.map(change)
  return made.every((value, at) => value === list[at]) ? list : made
}
