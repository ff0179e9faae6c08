/** HTML that escapes every value. */
import { escaped } from '../lib/html.ts'

/** Markup that `html` made, in which every value is escaped. */
export class Html {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  toString(): string {
    return this.#text
  }
}

/** A value of a template. Absent values and false leave nothing; the elements of a list follow each other. */
export type Value = Html | string | number | bigint | false | null | undefined | readonly Value[]

/** Makes markup. Every value but `Html` is text; attributes stand in quotes. */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(parts.reduce((text, part, index) => text + shown(values[index - 1]) + part))
}

function shown(value: Value): string {
  if (value === null || value === undefined || value === false) return ''
  if (value instanceof Html) return value.toString()
  return typeof value === 'object' ? value.map(shown).join('') : escaped(String(value))
}

/** `path` with the query of those values that are present. */
export function link(path: string, query: Readonly<Record<string, string | number | null | undefined>>): string {
  const present = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '')
  const text = new URLSearchParams(present.map(([name, value]): [string, string] => [name, String(value)])).toString()
  return text === '' ? path : `${path}?${text}`
}
