/** The table of operations. */
import type { ChatRequest } from './chat-request.ts'

/** The canonical request of each operation, with its `model`. The folder of an operation adds its own. */
export interface Ops {
  chat: ChatRequest
}
/** The name of an operation, such as `chat`. */
export type Op = keyof Ops
