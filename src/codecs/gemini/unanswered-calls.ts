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
  /** Calls of each id, less the responses that have named it. */
  readonly #left = new Map<string, number>()

  add(id: string, name: string): void {
    const call: AwaitedCall = { id, isAnswered: false }
    const own = textKey(id)
    this.#byId.set(own, call)
    this.#left.set(own, (this.#left.get(own) ?? 0) + 1)
    this.#all.add(call)
    const key = textKey(name)
    let same = this.#byName.get(key)
    if (!same) {
      same = new Queue()
      this.#byName.set(key, same)
    }
    same.add(call)
  }

  /** Whether as many responses as calls have had this id. */
  isRepeated(id: string): boolean {
    return this.#left.get(textKey(id)) === 0
  }

  /** The id of the answered call; undefined when none is left. */
  answer(id: string | undefined, name: string | undefined): string | undefined {
    const own = id ? textKey(id) : ''
    const byId = this.#byId.get(own)
    if (byId) this.#left.set(own, this.#left.get(own)! - 1)
    const call = byId && !byId.isAnswered ? byId : (name ? this.#byName.get(textKey(name)) : this.#all)?.first()
    if (call) call.isAnswered = true
    return call?.id
  }
}
