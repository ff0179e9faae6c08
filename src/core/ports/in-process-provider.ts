/** A provider that answers within this process, without a socket. */
import type { MessageSocket } from '../message-socket.ts'

/** A request as it would go over the wire. */
export interface InProcessRequest {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly contentType: string
  readonly body: Buffer
}

export interface InProcessAnswer {
  readonly status: number
  readonly contentType: string
  /** Taken one by one, as fast as the reader takes them. */
  readonly chunks: Iterable<Buffer>
}

/** Answers requests to one origin. */
export interface InProcessProvider {
  /** Never throws: what cannot be answered has a status of 400 or more. */
  answer(request: InProcessRequest): InProcessAnswer
  /** Opens a session; undefined for a path that has none. */
  connect(path: string): MessageSocket | undefined
}

/** The providers of a process by origin, such as `http://demo.localhost`. */
export type InProcessProviders = ReadonlyMap<string, InProcessProvider>
