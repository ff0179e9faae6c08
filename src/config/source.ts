/** The text of one configuration file, and positions of values in it. */
import { type Document, isAlias, isMap, isScalar, isSeq, parseDocument } from 'yaml'
import { ConfigError, type Position } from './error.ts'

/** Keys and indexes from the root of a file to one value. */
export type Path = readonly (string | number)[]
/** Whether two paths lead to one value. */
export const samePath = (a: Path, b: Path): boolean => a.join('\0') === b.join('\0')

/** Parses values and positions. `parseYamlFile` finds duplicate keys: here that would be quadratic. */
export const parseYaml = (text: string): Document.Parsed =>
  parseDocument(text, {
    prettyErrors: false,
    stringKeys: true,
    uniqueKeys: false,
    resolveKnownTags: false,
  })

/** Makes errors with positions; `name` is the file as errors show it. */
export class Source {
  readonly name: string
  readonly text: string
  /** Positions that are looked for in one turn share it. */
  #parsed: WeakRef<Document.Parsed> | undefined

  constructor(name: string, text: string) {
    this.name = name
    this.text = text
  }

  /** An error at the character `offset`. */
  errorAt(offset: number, message: string): ConfigError {
    return new ConfigError(this.name, this.#positionOf(offset), message)
  }

  /**
   * An error at the value of `path`, at its key, or at its nearest parent when it is absent. Finding the position
   * parses the text again, on demand: few errors are reported, and keeping all positions would cost memory.
   */
  error(message: string, path: Path = [], at: 'key' | 'value' = 'value'): ConfigError {
    const { text } = this
    return new ConfigError(this.name, { text, path, at, find: () => this.find(path, at) }, message)
  }

  find(path: Path, at: 'key' | 'value'): Position {
    const document = this.#parsed?.deref() ?? parseYaml(this.text)
    this.#parsed = new WeakRef(document)
    return this.#positionOf(offsetOf(document, path, at))
  }

  #positionOf(offset: number): Position {
    const before = this.text.slice(0, offset).split('\n')
    return { line: before.length, column: before.at(-1)!.length + 1 }
  }
}

function offsetOf(document: Document.Parsed, path: Path, at: 'key' | 'value'): number {
  let node: unknown = document.contents
  let offset = startOf(node) ?? 0
  for (const [index, step] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document)
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && key.value === String(step))
      if (!pair) break
      const key = startOf(pair.key) ?? offset
      offset = at === 'key' && index === path.length - 1 ? key : (startOf(pair.value) ?? key)
      node = pair.value
    } else if (isSeq(node) && node.items[Number(step)] !== undefined) {
      node = node.items[Number(step)]
      offset = startOf(node) ?? offset
    } else break
  }
  return offset
}

/** Start of a node's text; undefined for an unwritten value, as in `key:`. */
function startOf(node: unknown): number | undefined {
  if (!isAlias(node) && !isMap(node) && !isScalar(node) && !isSeq(node)) return undefined
  const range = node.range
  return range && range[1] > range[0] ? range[0] : undefined
}
