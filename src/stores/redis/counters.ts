/** Counters shared by all nodes in Redis; each node takes its share of a limit while Redis is away. */
import type { Counters, Quota, Reservation } from '../../core/ports.ts'
import { MemoryCounters } from '../memory/counters.ts'
import { BUCKETS } from '../memory/window.ts'
import { CLOCK, COMMAND_MS, keyOf, type RedisLink, Script } from './link.ts'
import { RedisPlaces } from './places.ts'
import type { Presence } from './presence.ts'

/**
 * Counts like `SlidingWindow`, by the server's clock: field `b` has the units of bucket b, field `b:t` when its newest
 * was taken. A call that arrives after its deadline counts nothing, since its caller has decided by itself.
 */
const TAKE = new Script(`${CLOCK}
local limit, span, units, deadline = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
if deadline > 0 and now > deadline then return {-1, 0, 0, now, 0} end
local width = math.max(1, math.ceil(span / ${BUCKETS}))
local function field(bucket) return string.format('%.0f', bucket) end
local had = redis.call('HMGET', KEYS[1], 'sum', 'oldest')
local sum, oldest = tonumber(had[1] or 0), tonumber(had[2] or 0)
local bucket = math.max(oldest, math.floor(now / width))
local leaves, changed = 0, false
while sum > 0 do
  local name = field(oldest)
  local at = redis.call('HMGET', KEYS[1], name, name .. ':t')
  if at[1] then
    if tonumber(at[2]) + span > now then
      leaves = tonumber(at[2]) + span
      break
    end
    redis.call('HDEL', KEYS[1], name, name .. ':t')
    sum = sum - tonumber(at[1])
    changed = true
  end
  oldest = oldest + 1
end
if sum == 0 then oldest = bucket end
local allowed = sum < limit
if allowed and units > 0 then
  local name = field(bucket)
  redis.call('HINCRBY', KEYS[1], name, units)
  local newest = math.max(now, tonumber(redis.call('HGET', KEYS[1], name .. ':t') or 0))
  redis.call('HSET', KEYS[1], name .. ':t', string.format('%.0f', newest))
  sum = sum + units
  if oldest == bucket then leaves = newest + span end
  changed = true
end
if changed then
  redis.call('HSET', KEYS[1], 'sum', sum, 'oldest', field(oldest))
  redis.call('PEXPIRE', KEYS[1], span + width)
end
local reset = 0
if sum > 0 then reset = math.min(span, math.max(0, math.ceil(leaves - now))) end
return {allowed and 1 or 0, math.max(0, limit - sum), reset, now, bucket}`)

/** Takes units out of the bucket that they were counted in, unless that has left the window. */
const GIVE = new Script(`${CLOCK}
local name, units = ARGV[2], tonumber(ARGV[3])
local had = redis.call('HMGET', KEYS[1], name, 'sum')
local given = math.min(units, tonumber(had[1] or 0))
if given > 0 then
  if tonumber(had[1]) == given then
    redis.call('HDEL', KEYS[1], name, name .. ':t')
  else
    redis.call('HINCRBY', KEYS[1], name, -given)
  end
  redis.call('HSET', KEYS[1], 'sum', math.max(0, tonumber(had[2]) - given))
end
return given`)

type TakeReply = readonly [allowed: number, remaining: number, resetMs: number, now: number, bucket: number]

type Counted = Quota & { readonly bucket: number }

interface CountersOptions {
  /** Monotonic milliseconds of this process. */
  readonly now?: (() => number) | undefined
  /** Replaces the server's clock, in tests. */
  readonly serverNow?: (() => number) | undefined
}

/**
 * Each decision is one script on one key. While Redis is away a node admits its share: the limit divided by the number
 * of living nodes, of which it counts what it has admitted before.
 */
export class RedisCounters implements Counters {
  readonly #link: RedisLink
  readonly #presence: Presence
  readonly #now: () => number
  readonly #serverNow: (() => number) | undefined
  /** Units that this node has admitted. */
  readonly #own: MemoryCounters
  readonly #places: RedisPlaces
  /** The server's clock less that of this process; undefined before the first answer. */
  #offset: number | undefined

  constructor(link: RedisLink, presence: Presence, { now, serverNow }: CountersOptions = {}) {
    this.#link = link
    this.#presence = presence
    this.#now = now ?? (() => performance.now())
    this.#serverNow = serverNow
    this.#own = new MemoryCounters(this.#now)
    this.#places = new RedisPlaces(link, presence, () => this.#time())
    link.onUp(() => this.refresh())
  }

  take(key: string, limit: number, windowMs: number): Quota | Promise<Quota> {
    return this.#link.up ? this.#take(key, limit, windowMs) : this.#own.take(key, this.#presence.share(limit), windowMs)
  }

  async correct(key: string, windowMs: number, bucket: number, units: number): Promise<void> {
    // It was counted here or in Redis. The clocks differ, so that the other one has no such bucket.
    this.#own.correct(key, windowMs, bucket, units)
    if (!this.#link.up) return
    const name = keyOf(`w${windowMs}`, key)
    // The link counts the failure, and the window forgets what was not corrected.
    await this.#link.run(GIVE, [name], this.#time(), String(bucket), -units).catch(() => undefined)
  }

  peek(key: string, limit: number, windowMs: number): Quota | Promise<Quota> {
    const ofShare = () => this.#own.peek(key, this.#presence.share(limit), windowMs)
    return this.#link.up ? this.#counted(key, limit, windowMs, 0).catch(ofShare) : ofShare()
  }

  reserve(key: string, limit: number, windowMs: number, units: number): Reservation | Promise<Reservation> {
    const byShare = () => this.#own.reserve(key, this.#presence.share(limit), windowMs, units)
    return this.#link.up ? this.#reserve(key, limit, windowMs, units).catch(byShare) : byShare()
  }

  enter(key: string, limit: number): boolean | Promise<boolean> {
    return this.#places.enter(key, limit)
  }

  leave(key: string): void {
    this.#places.leave(key)
  }

  /** Sends all places again, which a flushed or replaced server has lost. */
  refresh(): void {
    void this.#places.refresh()
  }

  async #take(key: string, limit: number, windowMs: number): Promise<Quota> {
    try {
      const quota = await this.#counted(key, limit, windowMs, 1)
      if (quota.allowed) this.#own.take(key, limit, windowMs)
      return quota
    } catch {
      // The link counts the failure, and logs when the breaker opens.
      return this.#own.take(key, this.#presence.share(limit), windowMs)
    }
  }

  async #reserve(key: string, limit: number, windowMs: number, units: number): Promise<Reservation> {
    const { bucket, ...quota } = await this.#counted(key, limit, windowMs, units)
    if (!quota.allowed) return { ...quota, correct: () => undefined }
    const own = this.#own.reserve(key, Number.POSITIVE_INFINITY, windowMs, units)
    const correct = async (actual: number): Promise<void> => {
      own.correct(actual)
      const more = actual - units
      if (more < 0) await this.correct(key, windowMs, bucket, more)
      else if (more > 0 && this.#link.up) {
        await this.#counted(key, Number.MAX_SAFE_INTEGER, windowMs, more).catch(() => undefined)
      }
    }
    return { ...quota, correct }
  }

  async #counted(key: string, limit: number, windowMs: number, units: number): Promise<Counted> {
    const ask = (deadline: number) =>
      this.#link.run(TAKE, [keyOf(`w${windowMs}`, key)], this.#time(), limit, windowMs, units, deadline)
    const asked = this.#offset === undefined ? 0 : this.#now() + this.#offset + COMMAND_MS
    let reply = (await ask(Math.ceil(asked))) as TakeReply
    // It came in time, so the server's clock was set.
    if (reply[0] < 0) reply = (await ask(0)) as TakeReply
    const [allowed, remaining, resetMs, now, bucket] = reply
    if (this.#serverNow === undefined) this.#offset = now - this.#now()
    return { allowed: allowed === 1, remaining, resetMs, bucket }
  }

  #time(): string {
    return this.#serverNow === undefined ? '' : String(Math.floor(this.#serverNow()))
  }
}
