/** Says of each key of an imported file what became of it. Values are never repeated: they may be secrets. */

import { ADVICE } from './advice.ts'

export type Fate = 'carried' | 'changed' | 'not carried'

/** A key of the input, such as `model_list[0].litellm_params.model`. */
export interface Line {
  readonly key: string
  readonly fate: Fate
  readonly note: string
}

/** A name below the key of a report, or several; an empty one is the key itself. */
type Names = string | readonly string[]

/** Notes by key, which become one line for each key of the input. */
export class Report {
  /** The key below which names are noted; empty for the input. */
  readonly at: string
  readonly #notes: Map<string, Omit<Line, 'key'>>

  constructor(at = '', notes = new Map<string, Omit<Line, 'key'>>()) {
    this.at = at
    this.#notes = notes
  }

  /** Returns this report for names below one of its own. */
  below(name: string): Report {
    return new Report(this.#keyOf(name), this.#notes)
  }

  carried(names: Names, note = ''): void {
    this.#note(names, 'carried', note)
  }

  changed(names: Names, note: string): void {
    this.#note(names, 'changed', note)
  }

  lost(names: Names, note: string): void {
    this.#note(names, 'not carried', note)
  }

  #note(names: Names, fate: Fate, note: string): void {
    for (const name of [names].flat()) this.#notes.set(this.#keyOf(name), { fate, note })
  }

  #keyOf(name: string): string {
    return this.at && name ? `${this.at}.${name}` : this.at + name
  }

  /** A line for each key of `input`, or each that holds something. A note about a section holds for all that is in it. */
  lines(input: unknown, isRecord = false): Line[] {
    const found = keysOf(input, '').filter(([, isEmpty]) => !(isRecord && isEmpty))
    return found.map(([key, isEmpty]) => {
      const note = this.#noteOf(isEmpty ? parentOf(key) : key)
      return { key, ...(note ?? (isEmpty ? EMPTY : adviceOf(key))) }
    })
  }

  #noteOf(key: string): Omit<Line, 'key'> | undefined {
    const note = this.#notes.get(key)
    const parent = parentOf(key)
    return note ?? (parent === key ? undefined : this.#noteOf(parent))
  }
}

const EMPTY = { fate: 'carried', note: 'it is empty' } as const

/** The key of the section or list that a key stands in. Keys of one part are without one. */
const parentOf = (key: string): string => key.replace(/(?:^|\.)[^.[\]]*$|\[\d+\]$/, '')

function adviceOf(key: string): Omit<Line, 'key'> {
  const known = key.replace(/^model_list\[\d+\]\.(?:litellm_params\.|model_info\.)?/, 'deployment.')
  const best = [...ADVICE.keys()].filter(start => known.startsWith(start)).sort((a, b) => b.length - a.length)[0]!
  return { fate: 'not carried', note: ADVICE.get(best)! }
}

/** Keys of values that hold no further keys, and whether they hold nothing at all. */
function keysOf(value: unknown, at: string): (readonly [string, boolean])[] {
  const isSection = (one: unknown) => typeof one === 'object' && one !== null
  if (Array.isArray(value)) {
    return value.some(isSection)
      ? value.flatMap((one, index) => keysOf(one, `${at}[${index}]`))
      : [[at, value.length === 0]]
  }
  if (!isSection(value)) return [[at, value === null]]
  if (Object.keys(value as object).length === 0) return at ? [[at, true]] : []
  return Object.entries(value as object).flatMap(([key, one]) => keysOf(one, at ? `${at}.${key}` : key))
}
