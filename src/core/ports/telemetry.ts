/** Reports about the gateway itself: metrics and log lines. */
import type { GatewayError } from '../../lib/error.ts'
import type { Exchange } from '../exchange.ts'
import type { GrantType } from './oauth.ts'

/**
 * Too long or too deep to be healed at all, or of too many names or values; no thread or no memory for it now; a thread
 * that took too long, or that broke.
 */
export type HealingSkipped = 'too_long' | 'busy' | 'timeout' | 'failed'

/** Provider, model and code are open sets, which `Series` bounds; all other labels are closed. */
export interface Metrics {
  request(
    labels: { endpoint: string; provider: string; model: string; outcome: string },
    at: {
      seconds: number
      firstTokenSeconds?: number | undefined
      overheadSeconds?: number | undefined
    },
  ): void
  tokens(provider: string, model: string, kind: string, count: number): void
  cost(provider: string, model: string, usd: number): void
  attempt(provider: string, model: string, outcome: string): void
  refusal(filter: string, code: string): void
  /** A request failed without having tried all that is left, since retries at failing targets are bounded. */
  retryBudgetSpent(model: string): void
  /** A rule has moved, refused or copied a request, or a bound has prevented its copy. */
  ruleApplied(rule: string, action: 'use' | 'deny' | 'mirror' | 'mirror_skipped'): void
  inFlight(delta: 1 | -1): void
  /** Requests that wait for a place. */
  waiting(delta: 1 | -1): void
  unpriced(provider: string, model: string): void
  /** The response cache was asked for an answer. */
  cacheLookup(result: 'hit' | 'miss'): void
  /** An answer was passed on as it came, though the request wanted its JSON repaired. */
  unhealed(reason: HealingSkipped): void
  /** A tool of the MCP server was called. */
  mcpCall(tool: string, outcome: 'ok' | 'error'): void
  /** A step of an OAuth client was taken, or was not. */
  oauth(step: OAuthStep, outcome: 'ok' | 'refused' | 'denied'): void
}

/** Steps of the authorization server that metrics count. */
type OAuthStep = GrantType | 'register' | 'document' | 'page' | 'consent' | 'client' | 'revoke'

/** The ids that log lines share with the trace of their request. */
export interface TraceIds {
  readonly trace_id: string
  readonly span_id: string
}

/** Traces requests, and measures them by the conventions of OpenTelemetry. No method throws or waits. */
export interface Tracing {
  /** An attempt begins: sets the headers that name its span to the provider. */
  began(ex: Exchange): void
  /** The attempt that has begun has failed. */
  failed(ex: Exchange, error: GatewayError): void
  /** Undefined where the request is not traced. */
  ids(ex: Exchange): TraceIds | undefined
  /** The request is over. */
  ended(ex: Exchange): void
}

/** Structured log lines. Secrets in fields and texts are redacted. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}
