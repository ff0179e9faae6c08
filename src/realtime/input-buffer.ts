/** Audio that the client has sent, until its provider has committed or cleared it. */

/** Clearings that wait for their answers; of more, the oldest counts as refused. */
const MAX_CLEARINGS = 256

/** A commit or a clearing by the client. */
interface Pending {
  readonly isCommit: boolean
  /** When it was sent. */
  readonly sent: number
  /** What the buffer may have held, which grows by what is refused before. */
  seconds: number
}

/** A commit that the provider has made; `more`: seconds that did not count when the client sent it. */
interface Committed {
  readonly isByClient: boolean
  readonly seconds: number
  readonly more: number
}

/** Seconds in the input buffer of the provider, and of what the client has done with it that is not answered. */
export class InputBuffer {
  #seconds = 0
  /** By our ids of their events, in their order. */
  readonly #pending = new Map<string, Pending>()
  #commits = 0
  /** A clearing that waits may be one that was refused: its audio may be in the buffer with what was sent later. */
  #isUnsure = false

  /** Commits by the client that wait for their answers. */
  get commits(): number {
    return this.#commits
  }

  append(seconds: number): void {
    this.#seconds += seconds
  }

  /** The client commits what is in the buffer; returns its seconds. */
  commit(eventId: string): number {
    this.#commits++
    return this.#send(eventId, true)
  }

  clear(eventId: string): void {
    if (this.#clearings >= MAX_CLEARINGS) this.refused(this.oldest(false))
    this.#send(eventId, false)
  }

  #send(eventId: string, isCommit: boolean): number {
    const seconds = this.#seconds
    this.#seconds = 0
    this.#pending.set(eventId, { isCommit, sent: seconds, seconds })
    return seconds
  }

  /**
   * The provider has committed: by the oldest commit of the client where one waits, else by itself, before what waits. That an
   * answer is missing is possible as well: no less counts than what the buffer may hold then.
   */
  committed(): Committed {
    const id = this.oldest(true)
    const commit = id === undefined ? undefined : this.#pending.get(id)
    let most = this.#seconds
    for (const pending of this.#pending.values()) {
      most = this.#isUnsure ? most + pending.seconds : Math.max(most, pending.seconds)
      if (pending === commit) break
    }
    if (id !== undefined && commit) {
      this.#delete(id, commit)
      return { isByClient: true, seconds: most, more: most - commit.sent }
    }
    // How much of what waits it was is unknown: all of it counts until the answer.
    if (this.#pending.size === 0) this.#seconds = 0
    return { isByClient: false, seconds: most, more: most }
  }

  /** The provider has done the oldest clearing. */
  cleared(): void {
    const oldest = this.oldest(false)
    if (oldest !== undefined) this.#pending.delete(oldest)
    this.#isUnsure &&= this.#clearings > 0
  }

  get #clearings(): number {
    return this.#pending.size - this.#commits
  }

  /**
   * The provider refused a commit or a clearing: its audio is in the buffer still, for what was sent next. Returns the
   * seconds that a commit had counted. `isNamed`: the refusal said which one it is of; else it may be of any clearing.
   */
  refused(eventId: string | undefined, isNamed = true): number {
    const refused = eventId === undefined ? undefined : this.#pending.get(eventId)
    if (eventId === undefined || !refused) return 0
    const ids = [...this.#pending.keys()]
    const next = this.#pending.get(ids[ids.indexOf(eventId) + 1] ?? '')
    if (next) next.seconds += refused.seconds
    else this.#seconds += refused.seconds
    this.#delete(eventId, refused)
    this.#isUnsure = this.#clearings > 0 && (this.#isUnsure || !isNamed)
    return refused.isCommit ? refused.sent : 0
  }

  /** The id of the oldest commit or clearing. */
  oldest(isCommit: boolean): string | undefined {
    for (const [id, pending] of this.#pending) if (pending.isCommit === isCommit) return id
    return undefined
  }

  #delete(id: string, { isCommit }: Pending): void {
    this.#pending.delete(id)
    if (isCommit) this.#commits--
  }
}
