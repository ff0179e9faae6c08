/**
 * What of an answer has no chat form and comes back in the next request: encrypted reasoning, and items such as
 * `web_search_call`. Both remember where they stood, because the wire wants each behind and before the same items.
 */
import { isObject, type Json, listIn, type Message, seal, type Target, unseal } from '../../src/plugin.ts'

/** Marks reasoning details that only this wire understands. */
export const FORMAT = 'openai-responses-v1'

/** How many messages and calls of the answer stood before an item, and its number among all items. */
export type Position = readonly [spoken: number, item: number]

/** A reasoning item as a client may hold it. Its summary goes along, so that it comes back as it was. */
export function sealReasoning(item: Json, encrypted: string, position: Position, target: Target): string {
  const { id, summary } = item
  return seal(target, JSON.stringify({ id, summary: listIn(summary), encrypted_content: encrypted, position }))
}

/** An item with no chat form, as the block that a client gets. */
export const nativeBlock = (item: Json, position: Position): Json => ({ ...item, position })

/** What a call of a namespace must carry to be told apart from calls of the same name. */
export const sealNamespace = (namespace: string, target: Target): string => seal(target, JSON.stringify({ namespace }))

/** The namespace that `sealNamespace` put away, for the provider that gave it. */
export function namespaceOf(signature: string | undefined, target: Target): string | undefined {
  const namespace = parsed(unseal(target, signature))?.namespace
  return typeof namespace === 'string' ? namespace : undefined
}

/** An item of a provider, and where it stood. */
interface Placed {
  readonly item: Json
  readonly position: Position
}

/**
 * `spoken` (the messages and calls of one turn) with what `target`'s provider gave besides, each in its place. What
 * another provider gave is left out, and so is reasoning that led to nothing: the wire refuses both.
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

/** Those of `target`'s provider, in their order. Their seals have been checked. */
export function replayed(details: readonly Detail[], blocks: readonly Json[], target: Target): Placed[] {
  const placed: Placed[] = []
  for (const { format, data } of details) {
    const sealed = format === FORMAT ? parsed(unseal(target, data)) : undefined
    if (typeof sealed?.encrypted_content !== 'string') continue
    const { position, ...item } = sealed
    placed.push({ item: { type: 'reasoning', ...item }, position: positionIn(position) })
  }
  for (const block of blocks) {
    // The wire names who created an item, and does not take that back.
    const { provider, position, created_by: _, ...item }: Json = block
    if (provider === target.provider.id) placed.push({ item, position: positionIn(position) })
  }
  return placed.sort((a, b) => a.position[0] - b.position[0] || a.position[1] - b.position[1])
}

type Detail = Pick<NonNullable<Message['reasoning_details']>[number], 'format' | 'data'>

/** A sealed value that a client changed is none of ours. */
function parsed(json: string | undefined): Json | undefined {
  if (json === undefined) return undefined
  try {
    const value: unknown = JSON.parse(json)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Without a readable position an item stands first. */
function positionIn(value: unknown): Position {
  const [spoken, item] = listIn(value)
  return [typeof spoken === 'number' ? spoken : 0, typeof item === 'number' ? item : 0]
}
