/** A Messages body for providers of its wire: only values sealed by this gateway for the organization are sent. */

import { looksSealed, type SealCheck } from '../../core/seals.ts'
import type { Json } from '../../json/json.ts'
import { loose, withOpaque } from '../../json/opaque.ts'
import { UNSEALED } from '../unsealed.ts'

/** Content of the assistant itself; every other block comes from the provider. */
const SPOKEN: ReadonlySet<unknown> = new Set(['text', 'tool_use'])

/** `body` has passed the endpoint's schema. The result shares unchanged parts with it. */
export function unsealedBody(body: Readonly<Json>, seals: SealCheck): Readonly<Json> {
  const messages = (body.messages as Json[]).map(message => {
    const { role, content } = message
    if (role !== 'assistant' || !Array.isArray(content)) return message
    return { ...message, content: content.flatMap((block: Json) => unsealedBlock(block, seals)) }
  })
  return { ...body, messages }
}

/** Citations without a seal that holds are marked: on the operator's credentials they are left out. */
function unsealedText(block: Json, seals: SealCheck): Json {
  if (!Array.isArray(block.citations)) return block
  const open = (value: unknown) =>
    typeof value === 'string' ? (seals.value(value) ?? (looksSealed(value) ? UNSEALED : loose(value))) : value
  return { ...block, citations: block.citations.map(citation => withOpaque(citation, open)) }
}

function unsealedBlock(block: Json, seals: SealCheck): Json | [] {
  const { type, signature, data } = block
  if (type === 'thinking') return { ...block, signature: seals.value(String(signature)) ?? UNSEALED }
  if (type === 'redacted_thinking') return { ...block, data: seals.value(String(data)) ?? UNSEALED }
  if (type === 'text') return unsealedText(block, seals)
  return SPOKEN.has(type) ? block : (seals.block(block) ?? [])
}
