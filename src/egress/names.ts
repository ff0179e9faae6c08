/** Looks names up for connections to providers, each name once at a time. */
import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import type { TcpNetConnectOpts } from 'node:net'

/** The option `lookup` of `net.connect`. */
export type NetLookup = NonNullable<TcpNetConnectOpts['lookup']>
type Found = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void
type Ask = (name: string, options: { all: true }, done: Found) => void

/**
 * A lookup for `net.connect`. Concurrent lookups of one name share one answer: the process has four threads for
 * lookups, and connections to a provider whose name server hangs must not take them all.
 */
export function sharedLookup(ask: Ask = systemLookup): NetLookup {
  const pending = new Map<string, Found[]>()
  return (name, { all }, done) => {
    const take: Found = (error, addresses) => {
      const [first] = addresses
      if (error || !first) done(error ?? new Error(`${name} has no address`), [])
      else if (all) done(null, addresses)
      else done(null, first.address, first.family)
    }
    const waiting = pending.get(name)
    if (waiting) {
      waiting.push(take)
      return
    }
    const takers = [take]
    pending.set(name, takers)
    ask(name, { all: true }, (error, addresses) => {
      pending.delete(name)
      for (const each of takers) each(error, addresses ?? [])
    })
  }
}
