/** Threads: conversations stored at the provider of this wire, which a gateway cannot route. */

import { isObject } from '../../json/json.ts'
import { errors } from '../../lib/error.ts'

/**
 * Throws a 400 for a body with a thread before any other check: a continued thread has no history in its `messages`.
 * These details make the wire's official clients send the whole history.
 */
export function refuseThread(body: unknown): void {
  if (!isObject(body) || body.thread == null) return
  throw errors
    .unsupported(
      'thread: conversations are not stored here. Send the whole history in "messages", without "thread".',
      'thread',
      'thread_unsupported_request',
    )
    .with({ details: { error_code: 'thread_unsupported_request', unsupported: ['message_threads'] } })
}
