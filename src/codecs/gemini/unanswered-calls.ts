/** Calls of one turn that await results: clients of this wire match them by id, or by name and order. */
import { textKey } from '../../json/text-key.ts'

interface AwaitedCall {
  readonly id: string
  isAnswered: boolean
}

/** Consumed from its beginning, so that each call is visited once. */
class Queue {
  readonly #calls: AwaitedCall[] = []
  #next = 0

  add(call: AwaitedCall): void {
    this.#calls.push(call)
  }

  first(): AwaitedCall | undefined {
    while (this.#calls[this.#next]?.isAnswered) this.#next++
    return this.#calls[this.#next]
  }
}

/** The calls of one turn without results. */
export class UnansweredCalls {
  readonly #byId = new Map<string, AwaitedCall>()
  readonly #byName = new Map<string, Queue>()
  readonly #all = new Queue()

  add(id: string, name: string): void {
    const call: AwaitedCall = { id, isAnswered: false }
    this.#byId.set(textKey(id), call)
    this.#all.add(call)
    const key = textKey(name)
    let same = this.#byName.get(key)
    if (!same) {
      same = new Queue()
      this.#byName.set(key, same)
    }
    same.add(call)
  }

  /** The id of the answered call; undefined when none is left. */
  answer(id: string | undefined, name: string | undefined): string | undefined {
    const byId = id ? this.#byId.get(textKey(id)) : undefined
    const call = byId && !byId.isAnswered ? byId : (name ? this.#byName.get(textKey(name)) : this.#all)?.first()
    if (call) call.isAnswered = true
    return call?.id
  }
}
