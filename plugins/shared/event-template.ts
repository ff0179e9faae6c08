/** Recognizes stream events that equal the previous one but for their text, without parsing JSON. */

/** Characters that a JSON string escapes: quotes, backslashes and control characters. */
const ESCAPED = /["\\\p{Cc}]/u
/** Some providers pad each event with random content: nothing repeats, and comparing is wasted. */
const MAX_MISSES = 4
/** After the text only closing characters; spaces among them are insignificant, and Anthropic pads with them. */
const CLOSING = /^"[}\] ]*$/

/** The surroundings of the text in the last event that contained only text. */
export class EventTemplate {
  readonly #field: string
  #head = ''
  #tail = ''
  /** The tail without its spaces; undefined when they could be significant. */
  #closing: string | undefined
  #misses = 0

  /** `field`: name of the text field. */
  constructor(field: string) {
    this.#field = `"${field}":`
  }

  /**
   * The text of `data`, if it equals the learned event otherwise. Compares slices, because `startsWith` on a slice,
   * such as `data`, checks each character separately.
   */
  textOf(data: string): string | undefined {
    const head = this.#head.length
    if (head === 0) return undefined
    const end = this.#endOf(data)
    if (end < head || data.slice(0, head) !== this.#head) return undefined
    const text = data.slice(head, end)
    if (ESCAPED.test(text)) return undefined
    this.#misses = 0
    return text
  }

  /** Call for a parsed event with exactly this text. False when the previous event stays learned. */
  learn(data: string, text: string): boolean {
    if (this.#misses > MAX_MISSES) return false
    this.#misses++
    const written = this.#field + JSON.stringify(text)
    const at = data.indexOf(this.#field)
    // Quotes in a string would be escaped, so this is a field; a second one would be ambiguous.
    if (data.indexOf(this.#field, at + 1) >= 0 || !data.startsWith(written, at)) return false
    this.#head = data.slice(0, at + this.#field.length + 1)
    this.#tail = data.slice(at + written.length - 1)
    this.#closing = CLOSING.test(this.#tail) ? this.#tail.replaceAll(' ', '') : undefined
    return true
  }

  /** End of the text if `data` ends as the learned event does; else -1. */
  #endOf(data: string): number {
    const end = data.length - this.#tail.length
    if (end >= 0 && data.slice(end) === this.#tail) return end
    if (this.#closing === undefined) return -1
    const quote = data.lastIndexOf('"')
    return quote >= 0 && data.slice(quote).replaceAll(' ', '') === this.#closing ? quote : -1
  }
}
