/** Streams on which messages go to MCP clients of the transport of 2024-11-05. */
import type { StreamLimits } from '../mcp.ts'

/** Owner of a stream. */
export interface StreamOwner {
  readonly tenant: string
  /** The id of the key that opened it, or of its session. */
  readonly key: string
}
/** A stream on which messages go to one client that come of its other requests. */
export interface MessageStream {
  /** Cannot be guessed. */
  readonly id: string
  readonly owner: StreamOwner
  /** False when it has ended, as it does where there is no memory for the message. */
  send(message: string): boolean
  /** The messages that wait, none after a while of silence; undefined at the end. Called again when they are written. */
  next(): Promise<readonly string[] | undefined>
  end(): void
}
/** Streams that are open now. Each lasts an hour at most. */
export interface MessageStreams {
  /** Throws 429 where a key or a tenant has too many, 529 where the process has. */
  open(owner: StreamOwner, limits: StreamLimits): MessageStream
  find(id: string): MessageStream | undefined
}
