/** Input and output of the command line, so that tests can replace the terminal. */
import type { Machine } from '../app/doctor.ts'
import { ConfigError } from '../config/error.ts'
import { printable } from '../lib/printable.ts'

/** The terminal, the environment and the working folder of a command. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Standard output: results only. */
  out(content: string | Buffer): void
  /** Whether standard output is a terminal; false by default. */
  readonly isTerminal?: boolean
  /** Standard error: failures and remarks. */
  err(text: string): void
  /** Shows progress on standard error. Absent where that is no terminal: pipes and files get none. */
  progress?(text: string): void
  /**
   * Runs a command on this terminal to its end; resolves with its exit code. Rejects with the system's error when it
   * cannot start.
   */
  run?(command: string, args: readonly string[], env: Io['env']): Promise<number>
  /** The machine that `doctor` looks at, by default this one. */
  readonly machine?: Machine
  /** All of standard input. */
  in?(): Promise<string>
}

/** A failure, printed as one line, with exit code 1. `body` is the gateway's own error, if it sent one. */
export class Failure extends Error {
  readonly body: unknown

  constructor(message: string, body?: unknown) {
    super(message)
    this.name = 'Failure'
    this.body = body
  }
}

/** Exit code 1 for a command whose printed result says why. */
export class CheckFailed extends Error {}

/** A started command ended with `code` and printed its own reason. */
export class Exited extends Error {
  readonly code: number

  constructor(code: number) {
    super(`the command ended with ${code}`)
    this.code = code
  }
}

/** A thrown value as one line; errors of configuration files begin with `file:line:column`. */
export function oneLine(thrown: unknown): string {
  const message = thrown instanceof Error && !(thrown instanceof ConfigError) ? thrown.message : String(thrown)
  return printable(message.trim().replace(/\s*\n\s*/g, '; '))
}

/** The Failure of a file that cannot be written; `name` is as it was given. */
export const unwritable = (name: string, thrown: unknown): Failure =>
  new Failure(`cannot write ${printable(name)}: ${errorCode(thrown) ?? 'it cannot be opened'}`)

/** The code of a system error (`ENOENT`, `ECONNREFUSED`), or undefined. */
export const errorCode = (thrown: unknown): string | undefined =>
  thrown instanceof Error ? (thrown as NodeJS.ErrnoException).code : undefined
