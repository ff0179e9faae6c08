/** Start of every command: its options, the admin client, and the output of its result. */
import type { Command } from 'commander'
import { type Admin, connect } from './admin.ts'
import type { Io } from './io.ts'

/** Services of a command. The admin listener is called only on demand. */
export interface Session {
  readonly io: Io
  readonly json: boolean
  /** `--config` as given. */
  readonly config: string | undefined
  readonly admin: Admin
  /** Prints `value`: as JSON under `--json`, else as `human` formats it. */
  print<T>(value: T, human: (value: T) => string): void
}

interface GlobalOptions {
  readonly admin?: string
  readonly tokenFile?: string
  readonly config?: string
  readonly json?: boolean
}

/** Reads the global options of a command. */
export type Open = (command: Command) => Session

/** Sessions on this terminal. */
export const openSession =
  (io: Io): Open =>
  command => {
    const options: GlobalOptions = command.optsWithGlobals()
    const json = options.json === true
    return {
      io,
      json,
      config: options.config,
      get admin() {
        return connect(options, io)
      },
      print: (value, human) => io.out(json ? `${JSON.stringify(value, null, 2)}\n` : human(value)),
    }
  }
