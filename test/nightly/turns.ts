/** How long a gateway's event loop does nothing else. */
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Scope } from '../helpers/child.ts'

export interface Turns {
  /** For a gateway to start with. */
  readonly env: Record<string, string>
  /** The most processor time of one turn of its loop since the last call, in milliseconds. */
  longestMs(): Promise<number>
}

export async function watchTurns(t: Scope): Promise<Turns> {
  const folder = await mkdtemp(join(tmpdir(), 'turns-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const TURNS = join(folder, 'socket')
  const preload = fileURLToPath(new URL('../../test/helpers/turns.cjs', import.meta.url))
  return {
    env: { TURNS, NODE_OPTIONS: `--require=${preload}` },
    longestMs: async () => Number(await text(connect(TURNS))),
  }
}
