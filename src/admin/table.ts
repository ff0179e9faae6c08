/** Aligned text for terminals. */
import { printable } from '../lib/printable.ts'

type Cell = string | number | null | undefined

const show = (cell: Cell): string =>
  cell === null || cell === undefined || cell === '' ? '-' : printable(String(cell))
/** Characters two columns wide, and zero-width ones (Unicode annex 11). */
const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uff01-\uff60]/u
const MARK = /\p{M}/u
const columns = (character: string): number => (WIDE.test(character) ? 2 : MARK.test(character) ? 0 : 1)
const width = (text: string): number => [...text].reduce((sum, character) => sum + columns(character), 0)

/** Columns two spaces apart; columns without words are right-aligned. Empty cells show as `-`. */
export function table(headers: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const cells = [headers, ...rows].map(row => headers.map((_, column) => show(row[column])))
  const widths = headers.map((_, column) => Math.max(...cells.map(row => width(row[column]!))))
  const right = headers.map(
    (_, column) => rows.length > 0 && rows.every(row => /^(?:[\d.]+|-)$/.test(show(row[column]))),
  )
  const line = (row: string[]) =>
    row
      .map((text, column) => pad(text, widths[column]!, right[column]!))
      .join('  ')
      .trimEnd()
  return `${cells.map(line).join('\n')}\n`
}

function pad(text: string, to: number, right: boolean): string {
  const space = ' '.repeat(to - width(text))
  return right ? space + text : text + space
}

/** `name  value` lines with aligned values. */
export function facts(entries: readonly (readonly [string, Cell])[]): string {
  const widest = Math.max(...entries.map(([name]) => width(name)))
  return entries.map(([name, value]) => `${pad(name, widest, false)}  ${show(value)}\n`).join('')
}

/** Formats one record or several as a table; `none` is the text for none. `headers` are separated by commas. */
export const rows =
  <T>(headers: string, cells: (record: T) => readonly Cell[], none?: string) =>
  (found: T | readonly T[]): string => {
    const records = ([] as T[]).concat(found)
    return records.length === 0 && none !== undefined ? none : table(headers.split(', '), records.map(cells))
  }

/** `2026-01-31T10:20:30.000Z` → `2026-01-31`. */
export const day = (time: string): string => time.slice(0, 10)
/** Joins names in one cell. */
export const list = (entries: readonly string[]): string => entries.join(', ')
