/** Unique names in a wire's alphabet for the foreign names of a request. */
export class UniqueNames {
  readonly #spell: (foreign: string, count: number) => string
  readonly #counts = new Map<string, number>()
  readonly #used = new Set<string>()

  /** `spell` writes a name in the wire's alphabet; `count` distinguishes collisions, from 1 on. */
  constructor(spell: (foreign: string, count: number) => string) {
    this.#spell = spell
  }

  /** A longer conversation keeps the names of the shorter one. */
  unique(foreign: string): string {
    const first = this.#spell(foreign, 1)
    let count = this.#counts.get(first) ?? 0
    let name: string
    do {
      count += 1
      name = count === 1 ? first : this.#spell(foreign, count)
    } while (this.#used.has(name))
    this.#counts.set(first, count)
    this.#used.add(name)
    return name
  }
}
