/** Names of one wire for those of others. */
import { createHash } from 'node:crypto'

/** Spellings of a name that are tried. Names that are long and alike may have all of them: then a hash is spelled. */
const MAX_TRIES = 16

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
    const known = this.#counts.get(first) ?? 0
    let count = known
    let name: string
    do {
      count += 1
      if (count === 1) name = first
      else if (count - known <= MAX_TRIES) name = this.#spell(foreign, count)
      else name = this.#spell(hashOf(`${foreign}#${count}`), 1)
    } while (this.#used.has(name))
    this.#counts.set(first, count)
    this.#used.add(name)
    return name
  }
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 40)
