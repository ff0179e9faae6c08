/** Files that a provider holds for the account which uploaded them: any request of that account reads them by their id. */
import { errors } from '../../core/error.ts'
import type { ChatRequest } from '../../core/ops.ts'
import type { Target } from '../../core/translator.ts'

/** A manifest's `native_fields` may list it. */
const FIELD = 'file_id'

/**
 * Throws a 400 where a file of the operator's account is named: no client has uploaded one there, and no price covers
 * what it holds. Another target may have the caller's own key.
 */
export function refuseHeldFiles(
  { messages }: Readonly<ChatRequest>,
  { credential, provider, translator }: Target,
): void {
  const isOwn = credential?.source === 'byok' || provider.owner !== undefined || provider.nativeFields?.includes(FIELD)
  if (isOwn) return
  for (let i = 0; i < messages.length; i++) {
    const { content } = messages[i]!
    if (!Array.isArray(content)) continue
    for (let j = 0; j < content.length; j++) {
      const part = content[j]!
      const id = part.type === 'file' ? part.file.file_id : undefined
      if (!id || translator.publicFiles?.test(id)) continue
      throw errors.ownKeyOnly(`messages[${i}].content[${j}].file.${FIELD}`).with({ failover: true })
    }
  }
}
