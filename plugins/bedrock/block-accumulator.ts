/** Parts of a content block that are usable only together: signatures, hidden reasoning, images. */

/** The state of one content block between its start and its stop. */
export class BlockAccumulator {
  signature = ''
  /** Of an image; other bytes are hidden reasoning. */
  format: unknown = undefined
  readonly #parts: string[] = []

  /** Adds a part of the block's bytes, in base64. */
  addBytes(part: unknown): void {
    if (typeof part === 'string' && part !== '') this.#parts.push(part)
  }

  /** All bytes in base64; a single part stays unchanged. Empty when there are none. */
  get bytes(): string {
    if (this.#parts.length < 2) return this.#parts[0] ?? ''
    return Buffer.concat(this.#parts.map(part => Buffer.from(part, 'base64'))).toString('base64')
  }
}
