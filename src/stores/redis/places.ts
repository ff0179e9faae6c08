/** Places of limits on concurrency, shared by all nodes in Redis. */
import { CLOCK, keyOf, type RedisLink, Script } from './link.ts'
import type { Presence } from './presence.ts'

/** A node that is silent for so long has ended: the places that it held are free. */
const HELD_MS = 15_000

/**
 * Sets how many places a node holds, so that none is ever counted twice or forgotten for long. Then it takes as many more
 * as the node asks for and the limit allows. A field for each node has its places, and when it said so.
 */
const HOLD = new Script(`${CLOCK}
local node, held, asked, limit = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local taken = 0
if asked > 0 then
  local free = limit - held
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    local places, seen = string.match(all[i + 1], '^(%d+) (%d+)$')
    if tonumber(seen) + ${HELD_MS} <= now then
      redis.call('HDEL', KEYS[1], all[i])
    elseif all[i] ~= node then
      free = free - tonumber(places)
    end
  end
  taken = math.max(0, math.min(asked, free))
end
if held + taken > 0 then
  redis.call('HSET', KEYS[1], node, string.format('%.0f %.0f', held + taken, now))
  redis.call('PEXPIRE', KEYS[1], ${2 * HELD_MS})
else
  redis.call('HDEL', KEYS[1], node)
end
return taken`)

interface Waiting {
  readonly limit: number
  readonly decide: (entered: boolean) => void
}

/** State of one key on this node. */
interface Held {
  places: number
  /** Number that Redis counts; below 0 where that is not known. */
  known: number
  isSending: boolean
  waiting: Waiting[]
}

/**
 * Has one command at a time for each key. So Redis counts no place that is only asked for, and no command overtakes
 * another. While Redis is away, a node takes its share of a limit.
 */
export class RedisPlaces {
  readonly #link: RedisLink
  readonly #presence: Presence
  readonly #time: () => string
  /** Loses a key once nothing is held and Redis counts nothing. */
  readonly #held = new Map<string, Held>()

  /** `time`: the clock of the scripts; empty for the server's. */
  constructor(link: RedisLink, presence: Presence, time: () => string) {
    this.#link = link
    this.#presence = presence
    this.#time = time
  }

  enter(key: string, limit: number): boolean | Promise<boolean> {
    const held = this.#held.get(key) ?? { places: 0, known: 0, isSending: false, waiting: [] }
    this.#held.set(key, held)
    if (!this.#link.up) return this.#byShare(held, limit)
    return new Promise(decide => {
      held.waiting.push({ limit, decide })
      void this.#send(key, held)
    })
  }

  leave(key: string): void {
    const held = this.#held.get(key)
    if (!held || held.places === 0) return
    held.places--
    void this.#send(key, held)
  }

  /** Sends all places again, which a flushed or replaced server has lost: one key at a time, since they may be many. */
  async refresh(): Promise<void> {
    for (const held of this.#held.values()) held.known = -1
    for (const [key, held] of this.#held) if (held.known < 0) await this.#send(key, held)
  }

  /** Sends until nothing is left, or a command fails. What could not be sent waits for the next refresh. */
  async #send(key: string, held: Held): Promise<void> {
    if (held.isSending) return
    held.isSending = true
    while (this.#link.up && (held.waiting.length > 0 || held.known !== held.places)) {
      const limit = held.waiting[0]?.limit ?? 0
      const others = held.waiting.findIndex(one => one.limit !== limit)
      const asking = held.waiting.splice(0, others < 0 ? held.waiting.length : others)
      const { places, known } = held
      held.known = places
      try {
        const values = [this.#presence.node, places, asking.length, limit]
        const taken = (await this.#link.run(HOLD, [keyOf('p', key)], this.#time(), ...values)) as number
        held.places += taken
        // A refresh meanwhile asks for another command.
        if (held.known >= 0) held.known += taken
        for (const [at, { decide }] of asking.entries()) decide(at < taken)
      } catch {
        for (const { decide } of asking) decide(this.#byShare(held, limit))
        // Redis forgets the places of a silent node: two attempts suffice.
        held.known = held.places === 0 && known < 0 ? 0 : -1
        break
      }
    }
    for (const { limit, decide } of held.waiting.splice(0)) decide(this.#byShare(held, limit))
    held.isSending = false
    if (held.places === 0 && held.known === 0) this.#held.delete(key)
  }

  #byShare(held: Held, limit: number): boolean {
    if (held.places >= this.#presence.share(limit)) return false
    held.places++
    return true
  }
}
