/** Starts a command on this terminal: only those of `src/ui/launch-tools.ts`, and never through a shell. */
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Io } from './io.ts'

/** Resolves with the exit code, 128 and the signal's number for a signal; rejects when it cannot start. */
export const startTool: NonNullable<Io['run']> = (command, args, env) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', env })
    const pass = (signal: NodeJS.Signals) => {
      // A terminal sends its interrupt to the tool as well.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
    }
    // The handlers stay installed, so that the removal of the tool's key is not interrupted.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, pass)
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)))
  })
