/** Finds names of four letters among bytes. */

const LENGTH = 4

/** Some names. No bytes make a search much slower than others do: `Buffer.indexOf` is, where a first letter is frequent. */
export class LetterNames {
  readonly #words: readonly number[]
  /** By letter: the bit of each place in a name at which it stands. */
  readonly #places = new Uint8Array(256)

  constructor(...names: string[]) {
    const bytes = names.map(name => Buffer.from(name, 'latin1'))
    this.#words = bytes.map(name => name.readInt32BE(0))
    for (const name of bytes) for (const [at, letter] of name.entries()) this.#places[letter]! |= 1 << at
  }

  /** Where the next one begins, at `from` or behind it; -1 where there is none. */
  next(bytes: Buffer, from = 0): number {
    const places = this.#places
    const last = bytes.length - LENGTH
    // Each name covers one of every four bytes.
    for (let at = from + LENGTH - 1; at < bytes.length; at += LENGTH) {
      const found = places[bytes[at]!]!
      if (found === 0) continue
      for (let place = LENGTH - 1; place >= 0; place--) {
        if (found & (1 << place) && at - place <= last && this.#isAt(bytes, at - place)) return at - place
      }
    }
    return -1
  }

  #isAt(bytes: Buffer, at: number): boolean {
    if ((this.#places[bytes[at]!]! & 1) === 0) return false
    const words = this.#words
    const word = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
    for (let name = 0; name < words.length; name++) if (words[name] === word) return true
    return false
  }
}
