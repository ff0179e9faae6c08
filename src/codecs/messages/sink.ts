/** How an answer's content blocks are written, whether they stream or not. */

/** Name of this wire: native content of providers of the same wire passes unchanged. */
export const WIRE = 'anthropic.messages'
/** Header in which clients expect the request id. */
export const ID_HEADER = 'request-id'

/** Receives blocks. At most one is open at a time; `whole` blocks are never open. */
export interface BlockSink {
  open(block: OpenBlock): void
  text(piece: string): void
  cite(citation: unknown): void
  thinking(piece: string): void
  signature(value: string): void
  json(piece: string): void
  close(): void
  whole(block: Record<string, unknown>): void
}

/** The block as its start event has it, before any content. */
export type OpenBlock =
  | { type: 'text'; text: '' }
  | { type: 'thinking'; thinking: ''; signature: '' }
  | { type: 'tool_use'; id: string; name: string; input: object; extra_content?: object }
