/** Commands of `gatewayctl`: functions of validated arguments, served at `POST /commands/<name>`, and tables of results. */
import type { Actor } from '../core/ports.ts'
import { type Infer, type Schema, s } from '../core/schema.ts'
import { printable } from '../lib/printable.ts'
import type { AdminContext } from './context.ts'

/** A command's help in the shell, and its result as text for people. */
interface Shell<Result> {
  readonly about: string
  show(result: Result): string
}

/** A command, with the schema of its arguments. */
export interface Command {
  readonly args: Schema<unknown>
  /** Called only with arguments that `args` accepts. The result is sent as JSON; money in it is a decimal string. */
  run(args: never, context: AdminContext, actor: Actor): unknown
  /** Absent for a command that only programs call. */
  readonly shell: Shell<never> | undefined
}
/** Commands by name. */
export type CommandTable = Readonly<Record<string, Command>>

/** Infers the types of arguments and result. The arguments with a `shell` text are the options of the shell. */
export function command<Args, Result>(
  args: Schema<Args>,
  run: (args: Args, context: AdminContext, actor: Actor) => Result,
  about?: string,
  show?: (result: Awaited<Result>) => string,
): Command {
  return { args, run, shell: about === undefined || !show ? undefined : { about, show } }
}

/**
 * Describes an argument for the shell: `--flag <value>: description` for an option, `<name>: description` or
 * `[name]: description` for a positional argument.
 */
export const shell = <S extends Schema<unknown>>(text: string, schema: S): S => ({
  ...schema,
  json: { ...schema.json, shell: text },
})

/** Describes an argument that may be absent. */
export const option = <S extends Schema<unknown>>(
  text: string,
  schema: S,
): Schema<Infer<S>> & { readonly optional: true } => shell(text, s.optional(schema))

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
