/** Most events of a stream are the one before with another text; they need not be parsed as JSON to be read. */

const FIELD = '"content":'
/** What a JSON string cannot hold as it is, or says in another way: quotes, backslashes and control characters. */
const ESCAPED = /["\\\p{Cc}]/u
/** Some providers pad each event with something random: then nothing repeats, and looking for it is waste. */
const MAX_MISSES = 4

/** What stands around the text of the last event that held nothing but text. */
export class Repeated {
  #head = ''
  #tail = ''
  #misses = 0

  /**
   * The text of `data`, if `data` is the last event that was learned with another text in its place. Slices, because
   * `startsWith` of a slice, as `data` is one, looks at each character by itself.
   */
  textOf(data: string): string | undefined {
    const head = this.#head.length
    const end = data.length - this.#tail.length
    if (head === 0 || end < head || data.slice(0, head) !== this.#head || data.slice(end) !== this.#tail)
      return undefined
    const text = data.slice(head, end)
    if (ESCAPED.test(text)) return undefined
    this.#misses = 0
    return text
  }

  /** Call it for an event that meant just this text, once it was parsed. False when the one before stays learned. */
  learn(data: string, text: string): boolean {
    if (this.#misses > MAX_MISSES) return false
    this.#misses++
    const written = FIELD + JSON.stringify(text)
    const at = data.indexOf(FIELD)
    // In a string the quotes would be escaped, so this is a field; two of them could be mistaken for each other.
    if (data.indexOf(FIELD, at + 1) >= 0 || !data.startsWith(written, at)) return false
    this.#head = data.slice(0, at + FIELD.length + 1)
    this.#tail = data.slice(at + written.length - 1)
    return true
  }
}
