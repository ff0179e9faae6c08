/** One kind of rows, by id: a change can be undone while its transaction may fail. */

interface Placed<R> {
  readonly place: number
  readonly row: R
}

/** Rows in insertion order. */
export class Table<R> {
  readonly #rows = new Map<string, Placed<R>>()
  readonly #undo: (undo: () => void) => void
  #made = 0

  /** `undo` records how to revert a change, while its transaction may fail. */
  constructor(undo: (undo: () => void) => void) {
    this.#undo = undo
  }

  get(id: string): R | undefined {
    return this.#rows.get(id)?.row
  }

  set(id: string, row: R): void {
    const before = this.#rows.get(id)
    this.#rows.set(id, { place: before?.place ?? this.#made++, row })
    this.#undo(() => (before ? this.#rows.set(id, before) : this.#rows.delete(id)))
  }

  /** Returns the deleted row. */
  delete(id: string): R | undefined {
    const before = this.#rows.get(id)
    if (!before) return undefined
    this.#rows.delete(id)
    this.#undo(() => this.#rows.set(id, before))
    return before.row
  }

  all(): R[] {
    return [...this.#rows.values()].sort((a, b) => a.place - b.place).map(({ row }) => row)
  }

  /** In any order. */
  *rows(): Generator<R> {
    for (const { row } of this.#rows.values()) yield row
  }

  filter(test: (row: R) => boolean): R[] {
    return this.all().filter(test)
  }
}
