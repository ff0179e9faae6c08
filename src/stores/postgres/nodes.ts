/** The processes that work on the database: shows that this one lives, by the store's clock. */
import { hostname } from 'node:os'
import type { NodeReport, NodeState } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import type { Sql } from '../sql/sql.ts'

const HEARTBEAT_MS = 5000
/** A node that has been silent for so long is dead: its holds become orphans. */
const SILENCE_MS = 60_000

/** A node that has been silent for so long takes no requests. */
const ABSENT_MS = 3 * HEARTBEAT_MS

/** Returns how many nodes take requests; at least 1. */
export async function livingNodes(sql: Sql): Promise<number> {
  const text = 'SELECT count(*) AS count FROM nodes WHERE seen_at >= now_ms() - $1::bigint'
  const [row] = await sql.query<{ count: bigint }>(text, [ABSENT_MS])
  return Math.max(1, Number(row!.count))
}

interface NodeRow {
  id: string
  host: string
  pid: bigint
  version: string
  started_at: bigint
  seen_at: bigint
  state: NodeState['state']
  in_flight: bigint
  address: string | null
}

/** Reads the nodes that serve, the oldest first; without workers and processes that have not begun to serve. */
export async function listNodes(sql: Sql, version: string): Promise<NodeState[]> {
  const rows = await sql.query<NodeRow>(
    `SELECT id, host, pid, version, started_at, seen_at, in_flight, address,
      CASE WHEN seen_at < now_ms() - $1::bigint THEN 'silent' WHEN draining THEN 'draining' ELSE 'live' END AS state
    FROM nodes WHERE address IS NOT NULL OR version <> $2 ORDER BY started_at, id`,
    [ABSENT_MS, version],
  )
  return rows.map(({ started_at, seen_at, in_flight, pid, ...row }) => ({
    ...row,
    pid: Number(pid),
    startedAt: Number(started_at),
    seenAt: Number(seen_at),
    inFlight: Number(in_flight),
  }))
}

/** Ids of living nodes, among them the node $1, at the time $2. */
export const LIVING = `SELECT id FROM nodes WHERE id = $1 OR seen_at >= $2::bigint - ${SILENCE_MS}`

const NOTHING_SAID = { address: null, inFlight: 0, draining: false }

/** The clock of presence, and where its failures go. */
export interface NodeOptions {
  /** Unix milliseconds; the store's clock when absent. */
  readonly now?: (() => number) | undefined
  readonly version: string
  /** Receives the error of a failed heartbeat. */
  readonly warn: (error: unknown) => void
}

/** The row of this process in `nodes`, kept fresh until `leave`. */
export class Nodes {
  readonly id = shortId()
  readonly #sql: Sql
  readonly #options: NodeOptions
  #heartbeat: NodeJS.Timeout | undefined
  #left = false
  #read: (() => NodeReport | Promise<NodeReport>) | undefined
  #said: NodeReport | undefined

  constructor(sql: Sql, options: NodeOptions) {
    this.#sql = sql
    this.#options = options
  }

  /** Enters this node. */
  async join(): Promise<void> {
    await this.beat(this.#sql)
    this.#heartbeat = setInterval(() => void this.#tell().catch(this.#options.warn), HEARTBEAT_MS)
    this.#heartbeat.unref()
  }

  /** Tells at once, and with each heartbeat from now on, what `read` returns. */
  report(read: () => NodeReport | Promise<NodeReport>): Promise<void> {
    this.#read = read
    return this.#tell()
  }

  async #tell(): Promise<void> {
    this.#said = await this.#read?.()
    await this.beat(this.#sql)
  }

  /** Shows that this process lives, so that no node takes it for dead. */
  async beat(sql: Sql): Promise<void> {
    if (this.#left) return
    const { now, version } = this.#options
    const { address, inFlight, draining } = this.#said ?? NOTHING_SAID
    await sql.query(
      `INSERT INTO nodes (id, host, pid, version, started_at, seen_at, address, in_flight, draining)
        SELECT $1, $2, $3, $4, at, at, $6, $7::bigint, $8::boolean
        FROM (SELECT coalesce($5::bigint, now_ms()) AS at) AS clock
        ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, address = excluded.address,
          in_flight = excluded.in_flight, draining = excluded.draining`,
      [this.id, hostname(), process.pid, version, now?.() ?? null, address, inFlight, draining],
    )
  }

  /** Ids of living nodes, this one among them. */
  async living(sql: Sql, now: number): Promise<readonly string[]> {
    return (await sql.query<{ id: string }>(LIVING, [this.id, now])).map(({ id }) => id)
  }

  /** Forgets nodes that have been silent for too long. */
  async forgetDead(sql: Sql, now: number): Promise<void> {
    await sql.query(`DELETE FROM nodes WHERE id NOT IN (${LIVING})`, [this.id, now])
  }

  /** Gives up the holds of this process. */
  async leave(): Promise<void> {
    clearInterval(this.#heartbeat)
    this.#left = true
    await this.#sql.query('DELETE FROM nodes WHERE id = $1', [this.id])
  }
}
