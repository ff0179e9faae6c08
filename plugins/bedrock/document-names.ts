/** Names of documents in the wire's alphabet: letters, digits, single spaces, hyphens, () and [] (wire/bedrock.md 2). */

const MAX_NAME = 200

/** Gives each document of a request a name of its own; a longer conversation keeps the names of the shorter one. */
export class DocumentNames {
  readonly #counts = new Map<string, number>()
  readonly #used = new Set<string>()

  unique(filename: string | undefined): string {
    const plain = (filename ?? '')
      .replace(/\.[^.]*$/, '')
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
    const words = plain.replace(/[^a-zA-Z0-9\-()[\]]+/g, ' ').trim()
    const base = words || 'document'
    let count = this.#counts.get(base) ?? 0
    let name: string
    do {
      count += 1
      const suffix = count === 1 ? '' : ` (${count})`
      name = base.slice(0, MAX_NAME - suffix.length).trimEnd() + suffix
    } while (this.#used.has(name))
    this.#counts.set(base, count)
    this.#used.add(name)
    return name
  }
}
