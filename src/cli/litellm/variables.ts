/** Names of variables that take the place of secrets. */

/** Names of variables that a file of ours reads, by what they are for. */
export class Variables {
  /** Variables to set before the start, with what they hold. */
  readonly toSet = new Map<string, string>()
  /** Where the texts stand that are read now, such as `model_list[0]`. */
  place = ''
  readonly #literals = new Map<string, string>()
  readonly #reserved: ReadonlySet<string>

  /** `reserved`: names that no text gets, since the imported file or a packaged manifest has them. */
  constructor(reserved: Iterable<string> = []) {
    this.#reserved = new Set(reserved)
  }

  /** A reference to a variable in place of `written`, which is `os.environ/NAME` or a secret itself. `lacking`: a default. */
  reference(written: string, purpose: string, lacking = ''): string {
    const named = /^os\.environ\/([A-Za-z_]\w*)$/.exec(written)?.[1]
    const name = named ?? this.#literals.get(written) ?? this.#free(purpose)
    if (!named) this.#literals.set(written, name)
    const text = `the text that the imported file holds for ${this.place}`
    this.toSet.set(name, named ? 'as it was before' : (this.toSet.get(name) ?? text))
    return `\${${name}${lacking}}`
  }

  /** The text itself where it is a plain part of an address; a reference for `os.environ/NAME` and anything else. */
  plain(written: string, purpose: string, lacking: string): string {
    return /^[\w.:-]+$/.test(written) ? written : this.reference(written, purpose, lacking)
  }

  #free(purpose: string): string {
    const name = purpose.toUpperCase().replace(/\W/g, '_')
    let free = name
    for (let next = 2; this.toSet.has(free) || this.#reserved.has(free); next++) free = `${name}_${next}`
    return free
  }
}

/** Names of variables in a value, as LiteLLM and shells write them. */
export const variablesIn = (value: unknown): string[] =>
  [...JSON.stringify(value).matchAll(/(?:os\.environ\/|\$\{)([A-Za-z_]\w*)/g)].map(([, name]) => name!)
