/** Says of each key of an imported file what became of it. Values are never repeated: they may be secrets. */

import { ADVICE } from './advice.ts'

export type Fate = 'carried' | 'changed' | 'not carried'

/** A key of the input, such as `model_list[0].litellm_params.model`. */
export interface Line {
  readonly key: string
  readonly fate: Fate
  readonly note: string
}

/** Notes by key, which become one line for each key of the input. */
export class Report {
  readonly #notes = new Map<string, Omit<Line, 'key'>>()

  carried(key: string, note = ''): void {
    this.#notes.set(key, { fate: 'carried', note })
  }

  changed(key: string, note: string): void {
    this.#notes.set(key, { fate: 'changed', note })
  }

  lost(key: string, note: string): void {
    this.#notes.set(key, { fate: 'not carried', note })
  }

  /** A line for each key of `input`. A note about a section holds for all that is in it. */
  lines(input: unknown): Line[] {
    return keysOf(input, '').map(key => ({ key, ...(this.#noteOf(key) ?? adviceOf(key)) }))
  }

  #noteOf(key: string): Omit<Line, 'key'> | undefined {
    for (let part = key; part; part = part.replace(/(?:^|\.)[^.[\]]*$|\[\d+\]$/, '')) {
      const note = this.#notes.get(part)
      if (note) return note
      if (part.replace(/(?:^|\.)[^.[\]]*$|\[\d+\]$/, '') === part) return undefined
    }
    return undefined
  }
}

function adviceOf(key: string): Omit<Line, 'key'> {
  const best = Object.keys(ADVICE)
    .filter(start => key.startsWith(start))
    .sort((a, b) => b.length - a.length)[0]!
  return { fate: 'not carried', note: ADVICE[best]! }
}

/** Keys of values that hold no further keys. */
function keysOf(value: unknown, at: string): string[] {
  const isSection = (one: unknown) => typeof one === 'object' && one !== null
  if (Array.isArray(value)) {
    return value.some(isSection) ? value.flatMap((one, index) => keysOf(one, `${at}[${index}]`)) : [at]
  }
  if (!isSection(value) || Object.keys(value as object).length === 0) return at ? [at] : []
  return Object.entries(value as object).flatMap(([key, one]) => keysOf(one, at ? `${at}.${key}` : key))
}
