/** Makes clients of Redis whose commands fail at once while there is no connection. */
import { Cluster, Redis } from 'ioredis'
import { parseAddress } from '../../core/address.ts'
import type { RedisAddress } from './address.ts'
import type { RedisClient } from './link.ts'

/** Limits of connecting and of the handshake. */
const CONNECT_MS = 500
const HANDSHAKE_MS = 1000
/** A socket that is silent for so long after a command is replaced. */
const SILENCE_MS = 1000
const MAX_RECONNECT_MS = 500

const reconnectMs = (times: number): number => Math.min(MAX_RECONNECT_MS, 50 * times)

/** Queues nothing without a connection, and sends nothing twice: a counter would be raised twice. */
const options = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  // The client would ignore its failure, which ends the process: see `Broadcast`.
  autoResubscribe: false,
  maxRetriesPerRequest: 0,
  connectTimeout: CONNECT_MS,
  commandTimeout: HANDSHAKE_MS,
  socketTimeout: SILENCE_MS,
  retryStrategy: reconnectMs,
  // A replica that was promoted, or a server that is being loaded: connects anew.
  reconnectOnError: ({ message }: Error) => /^(?:READONLY|LOADING|MASTERDOWN)/.test(message),
  connectionName: 'model-gateway',
  disableClientInfo: true,
}

/** Makes a client that is not connected yet. */
export function redisClient(address: RedisAddress): RedisClient {
  const { kind, servers, path, master, username, password, database, tls } = address
  // Servers with several certificates, and proxies, go by the name. Node sends none unless it is given.
  const named = kind === 'server' && !parseAddress(servers[0]!.host) ? { servername: servers[0]!.host } : {}
  const login = {
    ...options,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls ? { tls: named } : {}),
  }
  switch (kind) {
    case 'socket':
      return new Redis({ ...login, path })
    case 'server':
      return new Redis({ ...login, ...servers[0]!, db: database })
    case 'sentinel':
      return new Redis({
        ...login,
        ...{ sentinels: [...servers], name: master, db: database },
        ...{ sentinelRetryStrategy: reconnectMs, sentinelCommandTimeout: HANDSHAKE_MS, failoverDetector: true },
        enableTLSForSentinelMode: tls,
        ...(tls ? { sentinelTLS: {} } : {}),
      })
    default: {
      const { lazyConnect, enableOfflineQueue, retryStrategy, ...redisOptions } = login
      return new Cluster([...servers], {
        // A certificate has the name of a member, not its address.
        ...(tls ? { dnsLookup: (name, found) => found(null, name) } : {}),
        ...{ redisOptions, lazyConnect, enableOfflineQueue, maxRedirections: 3, slotsRefreshTimeout: HANDSHAKE_MS },
        ...{ clusterRetryStrategy: retryStrategy, retryDelayOnFailover: 0, retryDelayOnClusterDown: 0 },
      })
    }
  }
}
