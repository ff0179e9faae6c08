/** Starts a command on this terminal: only what `launch-tools.ts` names, and never through a shell. */
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Io } from './io.ts'

export const startTool: NonNullable<Io['run']> = (command, args, env) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', env })
    const pass = (signal: NodeJS.Signals) => {
      // The terminal tells both of an interrupt; what it means is the command's own matter.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
    }
    // For good: what is done behind the command is not interrupted either.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, pass)
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)))
  })
