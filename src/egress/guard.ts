/** Connects to addresses that a client gave: to public ones, whatever they are called and wherever names lead. */
import { Resolver } from 'node:dns/promises'
import { isIP, type Socket } from 'node:net'
import { isPublicHost, parseAddress } from '../core/address.ts'
import type { Connector } from './connector.ts'
import type { NetLookup } from './names.ts'
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

/**
 * An undici connector that checks three times: an address that stands in the URL, every address that a name has (one
 * that is not public condemns the name), and the peer of the connection. What was checked is what is connected, so
 * that no second answer of a name server comes between (reliability 0.5).
 */
export function guardedConnector(
  timeoutMs: number,
  resolve: Resolve,
  build: typeof socketConnector = socketConnector,
): Connector {
  const connect = build({ timeout: timeoutMs, lookup: publicLookup(resolve) })
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0 && !isPublicAddress(host)) {
      callback(new ForbiddenAddress(), null)
      return undefined
    }
    return connect(options, (error, socket) => {
      if (!socket) callback(error ?? new Error('no socket'), null)
      else if (isPublicPeer(socket)) callback(null, socket)
      else {
        socket.destroy()
        callback(new ForbiddenAddress(), null)
      }
    })
  }
}

const isPublicPeer = ({ remoteAddress }: Socket): boolean =>
  remoteAddress !== undefined && isPublicAddress(remoteAddress)

/** A lookup for `net.connect` that fails unless every address is public. */
function publicLookup(resolve: Resolve): NetLookup {
  return (name, options, done) => {
    resolve(name).then(
      found => {
        if (found.length > MAX_ADDRESSES)
          return done(new Error(`the name has more than ${MAX_ADDRESSES} addresses`), [])
        const addresses = found.map(address => ({ address, family: address.includes(':') ? 6 : 4 }))
        const [first] = addresses
        if (!first || !found.every(isPublicAddress)) done(new ForbiddenAddress(), [])
        else if (options.all) done(null, addresses)
        else done(null, first.address, first.family)
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
