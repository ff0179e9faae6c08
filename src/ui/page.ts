/** Visits of pages, and the commands behind them. */
import { commands } from '../admin/commands/index.ts'
import type { AdminContext } from '../admin/context.ts'
import { runCommand } from '../admin/run.ts'
import type { Actor } from '../core/ports.ts'
import type { Content } from './layout.ts'
import type { Session } from './sessions.ts'

/** A request of a browser that is signed in. */
export interface Visit {
  /** Last part of the path, for a page of one record; empty otherwise. */
  readonly id: string
  readonly query: URLSearchParams
  readonly session: Session
  readonly context: AdminContext
  /** A file of the configuration by its name in errors; undefined when it cannot be read. */
  readConfig(name: string): Promise<string | undefined>
}

/** Throws a GatewayError, which is shown in its place. */
export type Page = (visit: Visit) => Content | Promise<Content>

/** The name in the audit log of the admin token's holder; behind it stands that of a person. */
const ACTOR = 'ui'

/** The author of changes in a session. */
export const actorOf = ({ person }: Session): Actor => (person ? `${ACTOR}:${person.name}` : ACTOR)

/** Runs a command as `gatewayctl` does. `Result` is the type that the command states. Changes need their author. */
export const run = async <Result>(
  context: AdminContext,
  name: string,
  args: object = {},
  actor: Actor = ACTOR,
): Promise<Result> => (await runCommand(name, commands[name]!, args, context, actor)) as Result
