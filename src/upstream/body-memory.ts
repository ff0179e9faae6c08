/** Memory of the bodies of several requests that stand for one: each is a copy of the client's own. */
import { errors } from '../lib/error.ts'
import type { MemoryLease } from '../limits/memory.ts'

/** As many bodies are there at the same time as memory has room for. */
export class BodyMemory {
  readonly #lease: () => MemoryLease
  readonly #sending = new Set<Promise<void>>()

  constructor(lease: () => MemoryLease) {
    this.#lease = lease
  }

  /**
   * Resolves like `send`, which begins once there is room for so many bytes. Throws 529 where there is none although
   * none of these requests is being sent.
   */
  async during<T>(bytes: number, send: () => Promise<T>): Promise<T> {
    const lease = this.#lease()
    while (!lease.grow(bytes)) {
      if (this.#sending.size === 0) throw errors.overloaded()
      await Promise.race(this.#sending)
    }
    const sent = send()
    const ended: Promise<void> = sent.then(ignored, ignored).then(() => {
      lease.release()
      this.#sending.delete(ended)
    })
    this.#sending.add(ended)
    return sent
  }
}

/** The caller of `during` gets it. */
const ignored = () => undefined
