/** The processes of stores that several machines share, as they see each other. */

/** State of a process as its heartbeats report it. */
export interface NodeReport {
  /** Address of its public listener. */
  readonly address: string
  readonly inFlight: number
  readonly draining: boolean
}

/** A process that serves with these stores. */
export interface NodeState {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly version: string
  /** Unix milliseconds, by the clock of the stores. */
  readonly startedAt: number
  readonly seenAt: number
  /** `silent`: several heartbeats are missing. */
  readonly state: 'live' | 'silent' | 'draining'
  readonly inFlight: number
  /** Null where the node runs an earlier version. */
  readonly address: string | null
}

/** Connections of this process to the stores. */
export interface PoolState {
  readonly name: string
  readonly inUse: number
  readonly most: number
  /** Callers that wait for a connection. */
  readonly waiting: number
}

/** The processes of stores that several machines share. */
export interface NodeStore {
  list(): Promise<readonly NodeState[]>
  /** Tells at once, and with each heartbeat from now on, what `read` returns. */
  report(read: () => NodeReport | Promise<NodeReport>): Promise<void>
  pools(): readonly PoolState[]
}
