/** Commands of `gatewayctl`: named functions of validated arguments, served at `POST /commands/<name>`. */
import type { Actor } from '../core/ports.ts'
import type { Schema } from '../core/schema.ts'
import type { AdminContext } from './context.ts'

/** A command, with the schema of its arguments. */
export interface Command {
  readonly args: Schema<unknown>
  /** Called only with arguments that `args` accepts. The result is sent as JSON; money in it is a decimal string. */
  run(args: never, context: AdminContext, actor: Actor): unknown
}
/** Commands by name. */
export type CommandTable = Readonly<Record<string, Command>>

/** Infers the type of `run`'s arguments from their schema. */
export function command<Args>(
  args: Schema<Args>,
  run: (args: Args, context: AdminContext, actor: Actor) => unknown,
): Command {
  return { args, run }
}
