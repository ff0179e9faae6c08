/** Counts the seconds of audio that the client has sent, until its provider has committed or cleared them. */
export class InputBuffer {
  #seconds = 0
  /** Seconds of the client's commits that wait for their answers, by our ids of their events, the oldest first. */
  readonly #commits = new Map<string, number>()

  /** Commits by the client that wait for their answers. */
  get commits(): number {
    return this.#commits.size
  }

  append(seconds: number): void {
    this.#seconds += seconds
  }

  clear(): void {
    this.#seconds = 0
  }

  /** The client commits what is in the buffer; returns its seconds. */
  commit(eventId: string): number {
    const seconds = this.#seconds
    this.#seconds = 0
    this.#commits.set(eventId, seconds)
    return seconds
  }

  /** The provider has committed: by the oldest commit of the client where one waits, else by itself. */
  committed(): { readonly isByClient: boolean; readonly seconds: number } {
    for (const [eventId, seconds] of this.#commits) {
      this.#commits.delete(eventId)
      return { isByClient: true, seconds }
    }
    const seconds = this.#seconds
    this.#seconds = 0
    return { isByClient: false, seconds }
  }

  /** The provider refused a commit, by default the oldest: its audio is in the buffer again. Returns its seconds. */
  refused(eventId = this.#oldest): number {
    const seconds = (eventId !== undefined && this.#commits.get(eventId)) || 0
    if (eventId !== undefined) this.#commits.delete(eventId)
    this.#seconds += seconds
    return seconds
  }

  get #oldest(): string | undefined {
    for (const eventId of this.#commits.keys()) return eventId
    return undefined
  }
}
