/** A fault of a configuration file, and where it stands. */

export class ConfigError extends Error {
  /** As the operator knows it: relative to the folder that holds the configuration folder. */
  readonly file: string
  /** Both count from 1; a column is a UTF-16 unit. */
  readonly line: number
  readonly column: number

  constructor(file: string, line: number, column: number, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'ConfigError'
    this.file = file
    this.line = line
    this.column = column
  }

  override toString(): string {
    return `${this.file}:${this.line}:${this.column}: ${this.message}`
  }
}
