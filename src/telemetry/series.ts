/** A bounded set of series: one child per tuple of label values, found without building a label object. */

/** Prometheus lines that one metric may have; a histogram's child counts with all of its lines. */
export const MAX_SERIES = 2000

const FOLDED = 'other'

interface Node<Child> {
  readonly next: Map<string, Node<Child>>
  child: Child | undefined
}
const node = <Child>(): Node<Child> => ({ next: new Map(), child: undefined })

/**
 * Children of one metric. Above nine tenths of `limit` a new tuple keeps only its first `closed` values and the rest
 * become `other`; above `limit` all become `other`. Client-chosen names therefore cannot add series without end.
 */
export class Series<Child> {
  readonly #root: Node<Child> = node()
  readonly #children: Child[] = []
  readonly #make: (values: readonly string[]) => Child
  readonly #closed: number
  readonly #limit: number

  constructor(make: (values: readonly string[]) => Child, closed: number, limit = MAX_SERIES) {
    this.#make = make
    this.#closed = closed
    this.#limit = limit
  }

  get children(): readonly Child[] {
    return this.#children
  }

  of(...values: string[]): Child {
    return this.#find(values) ?? this.#add(values)
  }

  #find(values: readonly string[]): Child | undefined {
    let at = this.#root
    // Runs for each metric of each request: an iterator would allocate one object per label.
    for (let place = 0; place < values.length; place++) {
      const next = at.next.get(values[place]!)
      if (!next) return undefined
      at = next
    }
    return at.child
  }

  #add(values: readonly string[]): Child {
    const size = this.#children.length
    if (size < this.#limit * 0.9) return this.#keep(values)
    const folded = values.map((value, index) => (index < this.#closed && size < this.#limit ? value : FOLDED))
    return this.#find(folded) ?? this.#keep(folded)
  }

  #keep(values: readonly string[]): Child {
    let at = this.#root
    for (const value of values) {
      let next = at.next.get(value)
      if (!next) {
        next = node()
        at.next.set(value, next)
      }
      at = next
    }
    const child = this.#make(values)
    at.child = child
    this.#children.push(child)
    return child
  }
}
