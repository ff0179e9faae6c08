/** Starts `child.ts`, as `test/compile.mjs` has compiled it. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Order } from './child.ts'

interface Scope {
  teardown(end: () => unknown): void
}

export async function startChild(t: Scope): Promise<ChildProcess> {
  const child = fork(join(process.env.COMPILED_TESTS!, 'policy/child.js'))
  t.teardown(() => child.kill('SIGKILL'))
  await once(child, 'message')
  return child
}

/** The next message of the child, which must not end before. */
export async function heard(child: ChildProcess): Promise<unknown> {
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`the other process ended with ${code ?? signal}`)
  })
  const answer = await Promise.race([once(child, 'message'), ended])
  return answer[0]
}

export function tell(child: ChildProcess, order: Order): Promise<unknown> {
  const answer = heard(child)
  child.send(order)
  return answer
}
