/** Counts living nodes: every serving process reports to Redis at intervals. */
import { CLOCK, PREFIX, type RedisLink, Script } from './link.ts'

/** Interval of reports. */
export const BEAT_MS = 2000
const GONE_MS = 15_000
const NODES = `${PREFIX}:nodes`

const BEAT = new Script(`${CLOCK}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ${GONE_MS})
if ARGV[2] ~= '' then redis.call('ZADD', KEYS[1], now, ARGV[2]) end
redis.call('PEXPIRE', KEYS[1], ${2 * GONE_MS})
return redis.call('ZCARD', KEYS[1])`)

/** The number of living nodes, as Redis said last, or as the stores say while it is away. */
export class Presence {
  /** Names this process; unique. */
  readonly node: string
  readonly #link: RedisLink
  readonly #isMember: boolean
  readonly #inStores: () => Promise<number>
  #living = 1

  /** A process that serves no requests is no member. `inStores` tells how many processes work on the stores. */
  constructor(link: RedisLink, node: string, isMember = true, inStores = async () => 1) {
    this.#link = link
    this.node = node
    this.#isMember = isMember
    this.#inStores = inStores
  }

  /** At least 1. */
  get living(): number {
    return this.#living
  }

  /** This node's part of a limit while it decides alone; at least 1 of a limit that admits any. */
  share(limit: number): number {
    return limit <= 0 ? 0 : Math.max(1, Math.floor(limit / this.#living))
  }

  /** Shows that this node lives, and counts the others; the count stays as it was where it cannot be read. */
  async beat(): Promise<void> {
    if (!this.#link.up) {
      this.#living = Math.max(1, await this.#inStores())
      return
    }
    const count = Number(await this.#link.run(BEAT, [NODES], '', this.#isMember ? this.node : ''))
    this.#living = Math.max(1, count)
  }

  /** Removes this node. */
  async leave(): Promise<void> {
    await this.#link.call(client => client.zrem(NODES, this.node))
  }
}
