/** The filter contract: policy around the rest of the chain. */
import type { Endpoint } from './endpoint.ts'
import type { Exchange } from './exchange.ts'
import type { Services } from './ports.ts'
import type { Reply } from './reply.ts'
import type { Schema } from './schema.ts'

/** A part of the exchange that one filter sets and the filters below it read. */
export type Facet = 'principal' | 'quota' | 'target' | 'outbound' | 'charge'

/** A filter as one chain holds it, with its options applied. */
export interface Filter {
  /** Throw a GatewayError to refuse; return without `next()` to answer. */
  handle?(ex: Exchange, next: () => Promise<Reply>): Promise<Reply>
  /**
   * Runs once per request, in reverse order, whether it was refused, failed, was aborted or completed. `entered` is
   * true when `handle` was called. Must not throw.
   */
  finish?(ex: Exchange, entered: boolean): void | Promise<void>
  /** When the snapshot's last exchange is gone. */
  dispose?(): void
}

/**
 * Makes filters for the chains of gateway.yaml: reads the options, and creates one filter for each place in a chain.
 */
export interface FilterFactory<O = unknown> {
  readonly name: string
  readonly options: Schema<O>
  readonly needs?: readonly Facet[]
  readonly gives?: readonly Facet[]
  /** May call `next()` more than once: what stands below it runs once per attempt. */
  readonly repeats?: boolean
  /** False for endpoints whose requests it never touches: their chains are compiled without it. */
  readonly appliesTo?: (endpoint: Endpoint) => boolean
  /** `place` identifies the filter across reloads, so that it can serve as a key of counters. */
  create(options: O, services: Services, place?: string): Filter
}
