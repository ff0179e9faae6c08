/** The processes that use the database: shows that this one lives, and which others do. */
import type { Statement } from 'better-sqlite3'
import { type Instance, isAlive, thisProcess } from './instance.ts'
import { atStart, type Sqlite } from './open.ts'
import type { Writer } from './writer.ts'

const HEARTBEAT_MS = 10_000

/** The clock of heartbeats, and where their failures go. */
export interface InstanceOptions {
  /** Wall clock, Unix milliseconds. */
  readonly now: () => number
  /** Receives the error of a failed heartbeat. */
  readonly warn: (error: unknown) => void
}

/** The row of this process in `owners`, kept fresh until `leave`, and those of processes that still live. */
export class Instances {
  readonly #self: Instance = thisProcess()
  readonly #now: () => number
  readonly #beat: Statement
  readonly #all: Statement<[], Instance & { seen_at: number }>
  readonly #forgetAllBut: Statement<[string]>
  readonly #forget: Statement<[string]>
  readonly #heartbeat: NodeJS.Timeout
  #left = false

  /** Closes the database and throws a StoreError when it cannot be written. */
  constructor(db: Sqlite, writer: Writer, { now, warn }: InstanceOptions) {
    this.#now = now
    this.#beat = db.prepare(`
      INSERT INTO owners (id, pid, started, host, seen_at) VALUES (@id, @pid, @started, @host, @now)
      ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`)
    this.#all = db.prepare('SELECT id, pid, started, host, seen_at FROM owners')
    this.#forgetAllBut = db.prepare('DELETE FROM owners WHERE id NOT IN (SELECT value FROM json_each(?))')
    this.#forget = db.prepare('DELETE FROM owners WHERE id = ?')
    const beat = () => this.#beat.run({ ...this.#self, now: now() })
    atStart(db, beat)
    this.#heartbeat = setInterval(() => void writer.run(beat).catch(warn), HEARTBEAT_MS)
    this.#heartbeat.unref()
  }

  /** Id of this process. */
  get id(): string {
    return this.#self.id
  }

  /** Ids of living processes, including this one. */
  living(): string[] {
    const now = this.#now()
    const others = this.#all.all().filter(owner => owner.id !== this.id && isAlive(owner, now))
    return [this.id, ...others.map(owner => owner.id)]
  }

  /** Within a transaction: shows that this process lives, so that a later sweep does not take it for dead. */
  beat(): void {
    if (!this.#left) this.#beat.run({ ...this.#self, now: this.#now() })
  }

  /** Within a transaction. */
  keepOnly(living: readonly string[]): void {
    this.#forgetAllBut.run(JSON.stringify(living))
  }

  stop(): void {
    clearInterval(this.#heartbeat)
  }

  /** Within a transaction: gives up the holds of this process. */
  leave(): void {
    this.#left = true
    this.#forget.run(this.id)
  }
}
