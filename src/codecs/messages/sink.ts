/** How an answer's content blocks are written, whether they stream or not. */

/** The wire that is spoken here: what a provider's wire of that name says goes through as it came. */
export const WIRE = 'anthropic.messages'
/** Where its clients look for the id of a request. */
export const ID_HEADER = 'request-id'

/** Where blocks go. At most one is open at a time; `whole` blocks are never open. */
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

export type OpenBlock =
  | { type: 'text'; text: '' }
  | { type: 'thinking'; thinking: ''; signature: '' }
  | { type: 'tool_use'; id: string; name: string; input: object; extra_content?: object }
