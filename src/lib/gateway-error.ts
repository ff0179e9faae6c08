/** The one error class. */

/** The parts of an error, and whether another attempt may follow it. */
export interface ErrorInit {
  status: number
  type: string
  code: string | null
  /** Clients read it: it names nothing of the operator's account. */
  message: string
  /** A provider's words about the operator's account. They may repeat a prompt: neither clients nor the log read them. */
  detail?: string | undefined
  /** Remedy for the operator, for the log only: it may name variables and files. */
  remedy?: string | undefined
  param?: string | null | undefined
  headers?: Record<string, string> | undefined
  /** Facts for client programs, on wires whose errors have a place for them. */
  details?: Readonly<Record<string, unknown>> | undefined
  /** Whether another candidate may still answer: true for faults of a provider, false for faults of the caller. */
  failover?: boolean
  /** Status of the upstream's answer; 0 when none came. Unset for errors of the gateway itself. */
  upstreamStatus?: number | undefined
  /** Milliseconds of the upstream's `Retry-After`. */
  retryAfterMs?: number | undefined
  /** The connection had served before and broke before any byte of an answer: a fresh one may do. */
  stale?: boolean | undefined
  /** No whole answer came, and the provider may have the request. */
  sent?: boolean | undefined
  /** The provider has written an answer that cannot be passed on, and charges for it. */
  billed?: boolean | undefined
  excess?: Excess | undefined
  cause?: unknown
}

/**
 * The bound that an answer passes: of how much it may hold, which its caller may have had written; or of its form, such as
 * its levels, which nothing but calls of tools can pass by a caller's doing.
 */
export type Excess = 'size' | 'form'

/** The status of a request whose client has left. */
export const CLIENT_CLOSED = 499
/** The status of all that money keeps from an answer. */
export const PAYMENT_REQUIRED = 402

/** Every error of a request. Clients see `status`, `type`, `code` and `param` (docs/contract.md#errors). */
export class GatewayError extends Error {
  readonly status: number
  readonly type: string
  readonly code: string | null
  readonly detail: string | undefined
  readonly remedy: string | undefined
  readonly param: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly details: Readonly<Record<string, unknown>> | undefined
  readonly failover: boolean
  readonly upstreamStatus: number | undefined
  readonly retryAfterMs: number | undefined
  readonly stale: boolean
  readonly sent: boolean
  readonly billed: boolean
  readonly excess: Excess | undefined

  constructor(init: ErrorInit) {
    // A refusal is an answer, not a defect: taking its stack would cost more than all else that it does.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause })
    Error.stackTraceLimit = stackTraceLimit
    this.name = 'GatewayError'
    this.status = init.status
    this.type = init.type
    this.code = init.code
    this.detail = init.detail
    this.remedy = init.remedy
    this.param = init.param ?? null
    this.headers = init.headers ?? {}
    this.details = init.details
    this.failover = init.failover ?? false
    this.upstreamStatus = init.upstreamStatus
    this.retryAfterMs = init.retryAfterMs
    this.stale = init.stale ?? false
    this.sent = init.sent ?? false
    this.billed = init.billed ?? false
    this.excess = init.excess
  }

  /** Returns a copy of the error with some facts changed. */
  with(changes: Partial<ErrorInit>): GatewayError {
    return new GatewayError({ ...this, message: this.message, cause: this.cause, ...changes } as ErrorInit)
  }
}
