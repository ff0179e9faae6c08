/** Ids of tool calls, which come from any provider, in the form that the model takes (R4). */
import { createHash } from 'node:crypto'

const MAX_LENGTH = 64
const SHORT = /^[a-zA-Z0-9]{9}$/

/** Gives each call of a request an id of its own; a longer conversation keeps the ids of the shorter one. */
export class ToolIds {
  readonly #spell: (foreign: string, count: number) => string
  readonly #counts = new Map<string, number>()
  readonly #used = new Set<string>()

  /** Models of Mistral take nine letters and digits and nothing else. */
  constructor(short: boolean) {
    this.#spell = short ? shortId : plainId
  }

  unique(foreign: string): string {
    const key = this.#spell(foreign, 1)
    let count = this.#counts.get(key) ?? 0
    let id: string
    do {
      count += 1
      id = this.#spell(foreign, count)
    } while (this.#used.has(id))
    this.#counts.set(key, count)
    this.#used.add(id)
    return id
  }
}

function plainId(foreign: string, count: number): string {
  const base = foreign.replace(/[^a-zA-Z0-9_-]/g, '_') || 'call'
  const suffix = count === 1 ? '' : `_${count}`
  return base.slice(0, MAX_LENGTH - suffix.length) + suffix
}

function shortId(foreign: string, count: number): string {
  if (count === 1 && SHORT.test(foreign)) return foreign
  return createHash('sha256').update(`${foreign}#${count}`).digest('hex').slice(0, 9)
}
