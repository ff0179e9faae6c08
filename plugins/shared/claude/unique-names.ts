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
    let count = this.#counts.get(first) ?? 0
    let name: string
    let tries = 0
    do {
      count += 1
      tries += 1
      if (count === 1) name = first
      else name = tries <= MAX_TRIES ? this.#spell(foreign, count) : this.#spell(hashOf(`${foreign}#${count}`), 1)
    } while (this.#used.has(name))
    this.#counts.set(first, count)
    this.#used.add(name)
    return name
  }
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 40)
