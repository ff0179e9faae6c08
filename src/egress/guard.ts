/** Connects to addresses that a client gave: to public ones, whatever they are called and wherever names lead. */

import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { isIP, type Socket, type TcpNetConnectOpts } from 'node:net'
import { isPublicHost, parseAddress } from '../core/address.ts'
import type { Egress } from '../lib/egress.ts'
import type { Connector } from './connector.ts'
import { socketConnector } from './socket.ts'

const DNS_TIMEOUT_MS = 2_000
const DNS_TRIES = 2

/** All addresses of a name, of both families; rejects when it has none. */
export type Resolve = (name: string) => Promise<string[]>

/** Whether the whole world can reach an IP address, and finds the same there as we do. */
export function isPublicAddress(address: string): boolean {
  return parseAddress(address) !== undefined && isPublicHost(address)
}

class ForbiddenAddress extends Error {}

/** Addresses of a name: each of a longer list costs the event loop some of its time, and no site has as many. */
const MAX_ADDRESSES = 64

/** Parts of a guarded connector; `build` makes the one that it guards. */
interface GuardOptions {
  readonly timeoutMs: number
  readonly resolve: Resolve
  readonly egress?: Egress | undefined
  readonly build?: typeof socketConnector | undefined
}

/**
 * An undici connector that checks three times: an address that stands in the URL, every address that a name has (one
 * that is not public condemns the name), and the peer of the connection. What was checked is what is connected, so
 * that no second answer of a name server comes between (reliability 0.5). A proxy gets the first address that was checked;
 * its connection has another peer.
 */
export function guardedConnector({ timeoutMs, resolve, egress, build = socketConnector }: GuardOptions): Connector {
  const addressOf = async (hostname: string): Promise<string> => {
    const host = hostname.replace(/^\[|\]$/g, '')
    return isIP(host) === 0 ? (await publicAddresses(resolve, host))[0]! : host
  }
  const connect = build({ timeout: timeoutMs, lookup: publicLookup(resolve), egress, addressOf })
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0 && !isPublicAddress(host)) {
      callback(new ForbiddenAddress(), null)
      return undefined
    }
    const port = options.port || (options.protocol === 'https:' ? '443' : '80')
    const isProxied = egress?.proxyFor(options.hostname, port) !== undefined
    return connect(options, (error, socket) => {
      if (!socket) callback(error ?? new Error('no socket'), null)
      else if (isProxied || isPublicPeer(socket)) callback(null, socket)
      else {
        socket.destroy()
        callback(new ForbiddenAddress(), null)
      }
    })
  }
}

const isPublicPeer = ({ remoteAddress }: Socket): boolean =>
  remoteAddress !== undefined && isPublicAddress(remoteAddress)

/** All addresses of a name, at least one. Rejects unless every one is public. */
async function publicAddresses(resolve: Resolve, name: string): Promise<string[]> {
  const found = await resolve(name)
  if (found.length > MAX_ADDRESSES) throw new Error(`the name has more than ${MAX_ADDRESSES} addresses`)
  if (found.length === 0 || !found.every(isPublicAddress)) throw new ForbiddenAddress()
  return found
}

/** A lookup for `net.connect` that fails unless every address is public. */
function publicLookup(resolve: Resolve): NetLookup {
  return (name, options, done) => {
    publicAddresses(resolve, name).then(
      found => {
        const addresses = found.map(address => ({ address, family: address.includes(':') ? 6 : 4 }))
        const [first] = addresses
        if (options.all) done(null, addresses)
        else done(null, first!.address, first!.family)
      },
      (error: NodeJS.ErrnoException) => done(error, []),
    )
  }
}

/**
 * Resolves names without `getaddrinfo`, which has four threads in the whole process: names chosen by clients must not
 * delay those of providers.
 */
export function nameServers(): Resolve {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES })
  return async name => {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const addresses = answers.flatMap(answer => (answer.status === 'fulfilled' ? answer.value : []))
    if (addresses.length > 0) return addresses
    throw new Error('the name has no address')
  }
}

/** The option `lookup` of `net.connect`. */
type NetLookup = NonNullable<TcpNetConnectOpts['lookup']>
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
