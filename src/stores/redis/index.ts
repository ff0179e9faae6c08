/** Shares through Redis or Valkey: rates, places, cached replies and the memory of routing. Never money. */
import type {
  AffinityStore,
  Circuits,
  Counters,
  Log,
  Measurements,
  Probe,
  ReplyCache,
  TurnStore,
} from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { knowSecrets } from '../../secrets/known.ts'
import { type AffinityEntry, SharedAffinity } from '../workers/affinity.ts'
import { SharedCircuits } from '../workers/circuits.ts'
import { readRedisAddress } from './address.ts'
import { Broadcast } from './broadcast.ts'
import { redisClient } from './client.ts'
import { RedisCounters } from './counters.ts'
import { RedisLink, type RedisOutcome } from './link.ts'
import { type PublishedSample, SharedMeasurements } from './measurements.ts'
import { BEAT_MS, Presence } from './presence.ts'
import { RedisReplies } from './replies.ts'

/** Changes of keys and policies within this time are announced together. */
const GATHER_MS = 20
/** Beats between two reports of places, which a flushed Redis has lost. */
const REFRESH_BEATS = 2

/** Options of opening Redis. */
export interface RedisOptions {
  readonly log: Log
  readonly observe?: ((outcome: RedisOutcome, seconds: number) => void) | undefined
  /** False for a process that serves no requests, and so takes no share of limits. */
  readonly serves: boolean
  /** Returns how many processes work on the stores: they share limits while Redis is away. */
  readonly living: () => Promise<number>
  /** Keeps replies of this process. */
  readonly replies: ReplyCache
  /** Bytes of replies that one organization may have in Redis. */
  readonly repliesPerOrganization: number
}

/** The ports that all nodes share. `ping` rejects while Redis is away. */
export interface RedisStores extends Probe {
  readonly counters: Counters
  readonly cache: ReplyCache
  readonly turns: TurnStore
  readonly circuits: Circuits
  readonly affinity: AffinityStore
  readonly measurements: Measurements
  /** Whether commands are sent: false while the breaker is open. */
  readonly up: boolean
  /** Living nodes, as Redis said last; this one included. */
  readonly nodes: number
  /** Makes all other nodes look for changes of keys and policies now. */
  changed(): void
  /** Calls `look` when another node has changed a key or a policy. */
  onChanged(look: () => void): void
  close(): Promise<void>
}

/** Rejects with the reason where the Redis at `address` cannot be used. */
export async function pingRedis(address: string): Promise<void> {
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const place = readRedisAddress(address)
  const link = new RedisLink(redisClient(place), { log, database: place.database })
  try {
    await link.start()
    await link.ping()
  } finally {
    link.close()
  }
}

/** Throws a StoreError for a wrong address. An unreachable Redis keeps no node from starting. */
export async function openRedis(address: string, options: RedisOptions): Promise<RedisStores> {
  const { log, observe, serves, living, replies, repliesPerOrganization } = options
  const place = readRedisAddress(address)
  knowSecrets('redis password', place.password === undefined ? [] : [place.password])
  const node = shortId()
  const link = new RedisLink(redisClient(place), { log, database: place.database, observe })
  const presence = new Presence(link, node, serves, living)
  const counters = new RedisCounters(link, presence)
  const failed = (err: unknown) => {
    const isRefused = err instanceof Error && err.message.startsWith('NOPERM')
    log[isRefused ? 'warn' : 'debug']({ err }, 'redis message dropped')
  }
  const broadcast = new Broadcast(link, redisClient(place), { node, database: place.database, failed })
  const shared = sharedRouting(broadcast)
  const kept = new RedisReplies(link, replies, { perOrganization: repliesPerOrganization })
  let beats = 0
  const beat = () => {
    broadcast.check()
    presence.beat().catch(failed)
    if (link.up && ++beats % REFRESH_BEATS === 0) counters.refresh()
  }
  link.onUp(beat)
  let gathering: NodeJS.Timeout | undefined
  let looks: () => void = () => undefined
  broadcast.receive('changed', (_, isOwn) => isOwn || looks(), false)
  await link.start()
  if (!link.up) await presence.beat().catch(failed)
  await broadcast.start()
  const timer = setInterval(beat, BEAT_MS).unref()
  return {
    ...shared,
    counters,
    cache: kept,
    turns: kept,
    get up() {
      return link.up
    },
    get nodes() {
      return presence.living
    },
    ping: () => link.ping(),
    changed() {
      gathering ??= setTimeout(() => {
        gathering = undefined
        broadcast.publish('changed', [{ fact: null, ttlMs: 0 }])
      }, GATHER_MS).unref()
    },
    onChanged(look) {
      looks = look
    },
    async close() {
      clearInterval(timer)
      clearTimeout(gathering)
      if (serves && link.up) await presence.leave().catch(failed)
      broadcast.close()
      link.close()
    },
  }
}

/** Makes the ports of routing: every node has its copy, and publishes what it finds out. */
function sharedRouting(broadcast: Broadcast) {
  const circuits = new SharedCircuits(({ key, ms, org }) =>
    broadcast.publish('circuits', [{ fact: [key, org], ttlMs: ms }]),
  )
  broadcast.receive(
    'circuits',
    (facts, isOwn) => {
      if (isOwn) return
      for (const { fact, ttlMs } of facts) {
        const [key, org] = fact as [string, string | null]
        circuits.learn({ key, ms: ttlMs, org })
      }
    },
    true,
  )
  const affinity = new SharedAffinity(entries =>
    broadcast.publish(
      'affinity',
      entries.map(([key, offer, ttlMs, tenant]) => ({ fact: [key, offer, tenant], ttlMs })),
    ),
  )
  // The order of Redis counts, so that a node learns its own entries, too.
  broadcast.receive(
    'affinity',
    facts =>
      affinity.learn(
        facts.map(({ fact, ttlMs }): AffinityEntry => {
          const [key, offer, tenant] = fact as [string, string, string]
          return [key, offer, ttlMs, tenant]
        }),
      ),
    true,
  )
  const measurements = new SharedMeasurements(samples => broadcast.publish('samples', [{ fact: samples, ttlMs: 0 }]))
  broadcast.receive(
    'samples',
    (facts, isOwn) => {
      if (!isOwn) for (const { fact } of facts) measurements.learn(fact as PublishedSample[])
    },
    false,
  )
  return { circuits, affinity, measurements }
}
