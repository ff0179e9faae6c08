/**
 * Content of an answer without a chat form that the next request returns: reasoning, and items such as
 * `web_search_call`. Each records its position, because the wire requires the same neighbours.
 */
import { type Json, listIn, type Message, seal, type Target, textIn, unseal } from '../../src/plugin.ts'
import { parsedSeal } from '../shared/chat-completions/reasoning-details.ts'

/** Marks reasoning details that only this wire can read. */
export const FORMAT = 'openai-responses-v1'

/** The number of messages and calls before an item, and its index among all items. */
export type Position = readonly [spoken: number, item: number]

/**
 * A reasoning item sealed for a client, including its summary. Open models do not encrypt: their item is its text.
 * Undefined for an item that the provider could not read again.
 */
export function sealReasoning(item: Json, position: Position, target: Target): string | undefined {
  const { id, summary: given } = item
  const encrypted = textIn(item.encrypted_content)
  if (encrypted === undefined && !hasText(item)) return undefined
  const summary = listIn(given)
  const own = encrypted === undefined ? { content: item.content } : { encrypted_content: encrypted }
  return seal(target, JSON.stringify({ id, summary, ...own, position }))
}

/** Whether a reasoning item has its text, which a provider can read again without encrypted content. */
export const hasText = ({ content }: Json): boolean => listIn(content).length > 0

/** An item without a chat form, as the client's block. */
export const nativeBlock = (item: Json, position: Position): Json => ({ ...item, position })

/** Namespace of a call, needed to distinguish it from calls with the same name. */
export const sealNamespace = (namespace: string, target: Target): string => seal(target, JSON.stringify({ namespace }))

/** The namespace sealed by `sealNamespace`, for the provider that gave it. */
export function namespaceOf(signature: string | undefined, target: Target): string | undefined {
  const namespace = parsedSeal(unseal(target, signature))?.namespace
  return typeof namespace === 'string' ? namespace : undefined
}

/** A provider's item with its position. */
interface Placed {
  readonly item: Json
  readonly position: Position
}

/**
 * `spoken` (messages and calls of one turn) with the other items of `target`'s provider in place. Omits items of other
 * providers and reasoning that led to nothing: the wire rejects both.
 */
export function withReplayed(spoken: readonly Json[], message: Message, target: Target): Json[] {
  const placed = replayed(message.reasoning_details ?? [], message.provider_native_blocks ?? [], target)
  const items: Json[] = []
  let next = 0
  for (const [before, said] of spoken.entries()) {
    for (; next < placed.length && placed[next]!.position[0] <= before; next++) items.push(placed[next]!.item)
    items.push(said)
  }
  for (; next < placed.length; next++) items.push(placed[next]!.item)
  while (items.at(-1)?.type === 'reasoning') items.pop()
  return items
}

/** Items of `target`'s provider, in order. Their seals have been verified. */
export function replayed(details: readonly Detail[], blocks: readonly Json[], target: Target): Placed[] {
  const placed: Placed[] = []
  for (const { format, data } of details) {
    const sealed = format === FORMAT ? parsedSeal(unseal(target, data)) : undefined
    if (!sealed || (typeof sealed.encrypted_content !== 'string' && !hasText(sealed))) continue
    const { position, ...item } = sealed
    placed.push({ item: { type: 'reasoning', ...item }, position: positionIn(position) })
  }
  for (const block of blocks) {
    // The wire reports the creator of an item and does not accept it back.
    const { provider, position, created_by: _, ...item }: Json = block
    if (provider === target.provider.id) placed.push({ item, position: positionIn(position) })
  }
  return placed.sort((a, b) => a.position[0] - b.position[0] || a.position[1] - b.position[1])
}

type Detail = Pick<NonNullable<Message['reasoning_details']>[number], 'format' | 'data'>

/** An item without a readable position comes first. */
function positionIn(value: unknown): Position {
  const [spoken, item] = listIn(value)
  return [typeof spoken === 'number' ? spoken : 0, typeof item === 'number' ? item : 0]
}
