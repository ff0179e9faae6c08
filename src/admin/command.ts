/** Commands of `gatewayctl`: named functions of validated arguments, served at `POST /commands/<name>`. */
import type { Actor } from '../core/ports.ts'
import { type Infer, type Schema, s } from '../core/schema.ts'
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
