/** Turns of the event loop for long work that is done in steps: one step a turn, in fair shares. */

/** The queue of a process; tenants take turns. */
export class Turns {
  /** Whose steps wait, by tenant; a tenant that had its turn comes last. */
  readonly #waiting = new Map<string, (() => void)[]>()
  #running = false

  /** All steps of `work`, each in a turn of its own. */
  async run<T>(tenant: string, work: Generator<undefined, T>): Promise<T> {
    for (;;) {
      await this.next(tenant)
      const { done, value } = work.next()
      if (done) return value
    }
  }

  /** Waits for a turn of the tenant; what follows at once is one step. */
  next(tenant: string): Promise<void> {
    return new Promise(resolve => {
      const queue = this.#waiting.get(tenant)
      if (queue) queue.push(resolve)
      else this.#waiting.set(tenant, [resolve])
      if (!this.#running) void this.#serve()
    })
  }

  async #serve(): Promise<void> {
    this.#running = true
    while (this.#waiting.size > 0) {
      await new Promise(resolve => setImmediate(resolve))
      const [next] = this.#waiting
      if (!next) break
      const [tenant, queue] = next
      this.#waiting.delete(tenant)
      queue.shift()!()
      if (queue.length > 0) this.#waiting.set(tenant, queue)
    }
    this.#running = false
  }
}
