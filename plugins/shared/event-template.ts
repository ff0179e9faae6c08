/** Most events of a stream are the one before with another text; they need not be parsed as JSON to be read. */

/** What a JSON string cannot hold as it is, or says in another way: quotes, backslashes and control characters. */
const ESCAPED = /["\\\p{Cc}]/u
/** Some providers pad each event with something random: then nothing repeats, and looking for it is waste. */
const MAX_MISSES = 4
/** Behind the text nothing but what closes the event; spaces in there say nothing, and Anthropic pads with them. */
const CLOSING = /^"[}\] ]*$/

/** What stands around the text of the last event that held nothing but text. */
export class EventTemplate {
  readonly #field: string
  #head = ''
  #tail = ''
  /** The tail without its spaces; undefined when they could mean something. */
  #closing: string | undefined
  #misses = 0

  /** `field` is the name of the text. */
  constructor(field: string) {
    this.#field = `"${field}":`
  }

  /**
   * The text of `data`, if `data` is the last event that was learned with another text in its place. Slices, because
   * `startsWith` of a slice, as `data` is one, looks at each character by itself.
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

  /** Call it for an event that meant just this text, once it was parsed. False when the one before stays learned. */
  learn(data: string, text: string): boolean {
    if (this.#misses > MAX_MISSES) return false
    this.#misses++
    const written = this.#field + JSON.stringify(text)
    const at = data.indexOf(this.#field)
    // In a string the quotes would be escaped, so this is a field; two of them could be mistaken for each other.
    if (data.indexOf(this.#field, at + 1) >= 0 || !data.startsWith(written, at)) return false
    this.#head = data.slice(0, at + this.#field.length + 1)
    this.#tail = data.slice(at + written.length - 1)
    this.#closing = CLOSING.test(this.#tail) ? this.#tail.replaceAll(' ', '') : undefined
    return true
  }

  /** Where the text ends if `data` ends as the learned event does; else -1. */
  #endOf(data: string): number {
    const end = data.length - this.#tail.length
    if (end >= 0 && data.slice(end) === this.#tail) return end
    if (this.#closing === undefined) return -1
    const quote = data.lastIndexOf('"')
    return quote >= 0 && data.slice(quote).replaceAll(' ', '') === this.#closing ? quote : -1
  }
}
