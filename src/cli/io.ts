/** What the command line reads and writes, so that tests can stand in for a terminal. */
import { ConfigError } from '../config/error.ts'

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Standard output: results only. */
  out(content: string | Buffer): void
  /** Whether standard output is a terminal; false by default. */
  readonly isTerminal?: boolean
  /** Standard error: why something failed, and remarks. */
  err(text: string): void
  /**
   * Runs a command on this terminal to its end; resolves with its exit code. Rejects with the system's error when it cannot
   * be started.
   */
  run?(command: string, args: readonly string[], env: Io['env']): Promise<number>
  /** All of standard input. */
  in?(): Promise<string>
}

/** A refusal or failure, told in one line and exit code 1. `body` is the gateway's own error, when it sent one. */
export class Failure extends Error {
  readonly body: unknown

  constructor(message: string, body?: unknown) {
    super(message)
    this.name = 'Failure'
    this.body = body
  }
}

/** Ends a command whose result is printed with exit code 1, and says nothing more. */
export class CheckFailed extends Error {}

/** A command that was run has ended with `code`, and has said why itself. */
export class Exited extends Error {
  readonly code: number

  constructor(code: number) {
    super(`it ended with ${code}`)
    this.code = code
  }
}

/** Names come from databases, files and servers: nothing in them may steer the terminal or break its line. */
export const printable = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it removes
  text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, ' ')

/** What was thrown, as one line; faults of a configuration file begin with `file:line:column`. */
export function oneLine(thrown: unknown): string {
  const message = thrown instanceof Error && !(thrown instanceof ConfigError) ? thrown.message : String(thrown)
  return printable(message.trim().replace(/\s*\n\s*/g, '; '))
}

/** The code of a system error (`ENOENT`, `ECONNREFUSED`), or undefined. */
export const errorCode = (thrown: unknown): string | undefined =>
  thrown instanceof Error ? (thrown as NodeJS.ErrnoException).code : undefined
