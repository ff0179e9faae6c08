/** What every command starts from: its options, the gateway, and a way to show a result. */
import type { Command } from 'commander'
import { type Admin, connect } from './admin.ts'
import type { Io } from './io.ts'

export interface Session {
  readonly io: Io
  readonly json: boolean
  /** `--config` as given. */
  readonly config: string | undefined
  readonly admin: Admin
  /** Shows `value`: as it is under `--json`, else as the text that `human` makes of it. */
  print<T>(value: T, human: (value: T) => string): void
}

interface GlobalOptions {
  readonly admin?: string
  readonly tokenFile?: string
  readonly config?: string
  readonly json?: boolean
}

export type Open = (command: Command) => Session

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

/** Names that nothing has are taken, because it may come later; they may also be spelt wrong. */
export function warnUnknown({ unknown }: { readonly unknown: readonly string[] }, { io, json }: Session): void {
  if (unknown.length > 0 && !json) io.err(`warning: there is no ${unknown.join(', ')} yet\n`)
}
