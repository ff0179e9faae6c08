/**
 * Sends calls of one kind together. One batch is under way; calls that come meanwhile form the next one. So batches grow
 * by themselves under load, and a single call waits for nothing.
 */
import { isDataError } from '../sql/postgres.ts'

/** Maximum calls of a batch. */
const MAX_BATCH_CALLS = 256

interface PendingCall<In, Out> {
  readonly input: In
  resolve(output: Out): void
  reject(error: unknown): void
}

/** The result of one call of a batch: an error is that call's own. */
export type Outcome<Out> = { readonly value: Out } | { readonly error: unknown }

/** Returns an outcome for each input; rejects when the whole batch has failed. */
type Run<In, Out> = (inputs: readonly In[]) => Promise<readonly Outcome<Out>[]>

/** Calls of one kind. Where the database refuses a batch, each of its calls is sent again alone. */
export class Batches<In, Out> {
  readonly #key: (input: In) => string
  readonly #run: Run<In, Out>
  #waiting: PendingCall<In, Out>[] = []
  #running: Promise<void> | undefined

  /** `key` names what two calls of one batch may not both touch. */
  constructor(key: (input: In) => string, run: Run<In, Out>) {
    this.#key = key
    this.#run = run
  }

  add(input: In): Promise<Out> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ input, resolve, reject })
      this.#running ??= this.#drain()
    })
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    while (this.#running) await this.#running
  }

  async #drain(): Promise<void> {
    // The batch includes all items of this turn of the event loop.
    await Promise.resolve()
    while (this.#waiting.length > 0) await this.#send(this.#next())
    this.#running = undefined
  }

  #next(): readonly PendingCall<In, Out>[] {
    const taken: PendingCall<In, Out>[] = []
    const left: PendingCall<In, Out>[] = []
    const keys = new Set<string>()
    for (const call of this.#waiting) {
      const name = this.#key(call.input)
      if (taken.length === MAX_BATCH_CALLS || keys.has(name)) left.push(call)
      else taken.push(call)
      keys.add(name)
    }
    this.#waiting = left
    return taken
  }

  async #send(calls: readonly PendingCall<In, Out>[]): Promise<void> {
    try {
      const outcomes = await this.#run(calls.map(({ input }) => input))
      for (const [i, call] of calls.entries()) {
        const outcome = outcomes[i]!
        if ('error' in outcome) call.reject(outcome.error)
        else call.resolve(outcome.value)
      }
    } catch (error) {
      if (calls.length > 1 && isDataError(error)) for (const call of calls) await this.#send([call])
      else for (const call of calls) call.reject(error)
    }
  }
}
