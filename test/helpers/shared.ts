/** Gateways shared by the files of one process: see `families` in `test/suite.mjs`. */
import root from 'tap'
import type { Scope } from './child.ts'
import type { Gateway } from './gateway.ts'
import type { Upstream } from './upstream.ts'

export interface Pair {
  readonly upstream: Upstream
  readonly gateway: Gateway
}

/** Starts at the first call and ends with the last test of the process; each call resets scripts and record. */
export function shared(start: (t: Scope) => Promise<Pair>): () => Promise<Pair> {
  let started: Promise<Pair> | undefined
  return async () => {
    started ??= start(root)
    const pair = await started
    await pair.upstream.reset()
    return pair
  }
}
