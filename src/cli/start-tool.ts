/** Starts a command on this terminal: only what `launch-tools.ts` names, and never through a shell. */
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Io } from './io.ts'

export const startTool: NonNullable<Io['run']> = (command, args, env) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', env })
    // The terminal tells both of an interrupt; what it means is the command's own matter.
    const ignore = () => {}
    const pass = (signal: NodeJS.Signals) => void child.kill(signal)
    process.on('SIGINT', ignore).on('SIGTERM', pass).on('SIGHUP', pass)
    child.once('error', reject)
    child.once('close', (code, signal) => {
      process.off('SIGINT', ignore).off('SIGTERM', pass).off('SIGHUP', pass)
      resolve(code ?? 128 + (signal ? constants.signals[signal] : 0))
    })
  })
