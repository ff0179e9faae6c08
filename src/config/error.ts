/** An error in a configuration file, with its position. */

/** Both count from 1; a column is a UTF-16 unit. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** A position still to be found, on demand: finding it in a large text takes long. */
export interface Sought {
  readonly text: string
  readonly path: readonly (string | number)[]
  readonly at: 'key' | 'value'
  find(): Position
}

/** Its text is `file:line:column: message`; the position is found on demand. */
export class ConfigError extends Error {
  /** Relative to the parent of the configuration folder. */
  readonly file: string
  #position: Position | Sought

  constructor(file: string, position: Position | Sought, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'ConfigError'
    this.file = file
    this.#position = position
  }

  /** Undefined once the position is known. */
  get sought(): Sought | undefined {
    return 'find' in this.#position ? this.#position : undefined
  }

  get position(): Position {
    if ('find' in this.#position) this.#position = this.#position.find()
    return this.#position
  }

  set position(found: Position) {
    this.#position = found
  }

  override toString(): string {
    const { line, column } = this.position
    return `${this.file}:${line}:${column}: ${this.message}`
  }
}
