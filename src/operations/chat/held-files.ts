/** Files that a provider stores for the account that uploaded them: any request of that account can read them by id. */

import type { ChatRequest } from '../../core/chat-request.ts'
import type { Target } from '../../core/translator.ts'
import { errors } from '../../lib/error.ts'

/** Name in a manifest's `native_fields` that allows it. */
const FIELD = 'file_id'

/**
 * Throws a 400 for a file id of the operator's account: no client can have uploaded it, and no price covers its
 * contents. Another target may use the caller's own key.
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
