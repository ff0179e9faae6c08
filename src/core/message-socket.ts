/** One end of a WebSocket (RFC 6455) that carries texts, for parts that touch no sockets. */

/** A text; undefined for a binary message. */
export type Message = string | undefined

/** Callbacks of one end of a WebSocket. */
export interface MessageListener {
  /** `bytes` is the length of the message. */
  message(message: Message, bytes: number): void
  /** The other end has sent a ping, which is answered already. */
  pinged(): void
  pong(): void
  /** So many bytes have come, of a message that need not be whole. */
  read(bytes: number): void
  /** All that was sent has been taken. */
  drained(): void
  /** Called once, whichever end closed it; 1006 where the connection just ended. */
  closed(code: number): void
}

/** One end of a WebSocket, without its library: messages of text, flow control, and how it closes. */
export interface MessageSocket {
  /** Begins to read; a later listener takes the place of an earlier one. What has been read when `pause` is called still comes. */
  open(listener: MessageListener): void
  send(text: string): void
  ping(): void
  pause(): void
  resume(): void
  /** Bytes that were sent, and that the other end has not taken. */
  readonly waiting: number
  /** Bytes that came, with the frames around them. */
  readonly received: number
  /** Says so, waits for the other end for a while, and ends. */
  close(code: number, reason: string): void
  /** Ends at once. */
  destroy(): void
}

/** How a request is accepted as a WebSocket. */
export interface UpgradeOptions {
  /** Bytes of a message. */
  readonly limit: number
  /** The subprotocol to choose, where the client offers it. */
  readonly protocol: string
}

/**
 * Accepts a request as a WebSocket: its status is then final, and messages wait until they are read. Throws a GatewayError
 * when the client has left.
 */
export type Upgrade = (options: UpgradeOptions) => MessageSocket
