/** Replies of the chain, and of endpoints that answer locally. */
import type { Event } from './event.ts'

/** An answer on its way back: one batch is what one upstream chunk held. */
export interface Reply {
  status: number
  /** Names, in lower case, and values in turn: a list is what `node:http` takes, and costs nothing to add to. */
  readonly headers: string[]
  events: AsyncIterable<readonly Event[]>
}

/** An error as one endpoint answers it, where the form of its codec is not all. */
export interface ErrorAnswer {
  /** Defaults to that of the error, by which the request is counted. */
  readonly status?: number
  readonly contentType: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
  readonly body: string
}

/** A reply of one local value. */
export function value(result: unknown, status = 200): Reply {
  return { status, headers: [], events: only({ type: 'result', value: result }) }
}

/** A reply that is JSON already. */
export const written = (bytes: Buffer): Reply => ({ status: 200, headers: [], events: only({ type: 'result', bytes }) })

/** The events of an answer that comes at once. */
export async function* only<T>(...events: T[]): AsyncGenerator<readonly T[]> {
  yield events
}
