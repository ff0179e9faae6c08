/** Starts the processes of clients that take their time. */
import { fileURLToPath } from 'node:url'
import { Child, type Scope } from '../helpers/child.ts'

/** How many connections a process had at its end, and how many were closed on it. */
export interface Connections {
  open: number
  closed: number
}

const script = fileURLToPath(new URL('connections.mjs', import.meta.url))

/** Resolves once they are open, with what ends them. See `connections.mjs` for the modes. */
export async function startConnections(
  t: Scope,
  mode: 'idle' | 'headers' | 'body' | 'read',
  port: number,
  count: number,
  key = '',
): Promise<() => Promise<Connections>> {
  const child = new Child(script, [mode, String(port), String(count), key], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  await child.firstLine(1, 60_000)
  return async () => {
    child.closeInput()
    await child.exited
    return JSON.parse(child.stdout.trim().split('\n').at(-1)!) as Connections
  }
}
