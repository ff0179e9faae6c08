/** The response cache and kept turns, shared by all nodes in Redis. */
import type { CachedReply, ReplyCache, TurnStore } from '../../core/ports.ts'
import { CLOCK, PREFIX, type RedisLink, Script } from './link.ts'

/** Larger entries stay with their node. */
const MAX_ENTRY_BYTES = 1024 * 1024

/**
 * Keeps an entry within the bytes of its organization: those that end first make room. The keys are the ids by end,
 * the bytes by id with their sum under '', and the entry; all in the slot of the organization.
 */
const KEEP = new Script(`${CLOCK}
local id, bytes, ttl, most, prefix = ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local function drop(gone)
  local had = tonumber(redis.call('HGET', KEYS[2], gone) or 0)
  redis.call('ZREM', KEYS[1], gone)
  redis.call('HDEL', KEYS[2], gone)
  redis.call('DEL', prefix .. gone)
  if had > 0 then redis.call('HINCRBY', KEYS[2], '', -had) end
end
drop(id)
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 100)) do drop(gone) end
if ttl <= 0 or bytes > most then return 0 end
while tonumber(redis.call('HGET', KEYS[2], '') or 0) + bytes > most do
  local first = redis.call('ZRANGE', KEYS[1], 0, 0)
  if not first[1] then
    redis.call('DEL', KEYS[2])
    break
  end
  drop(first[1])
end
redis.call('SET', KEYS[3], ARGV[3], 'PX', ttl)
redis.call('ZADD', KEYS[1], now + ttl, id)
redis.call('HSET', KEYS[2], id, bytes)
redis.call('HINCRBY', KEYS[2], '', bytes)
for i = 1, 2 do
  if redis.call('PTTL', KEYS[i]) < ttl then redis.call('PEXPIRE', KEYS[i], ttl) end
end
return 1`)

interface RepliesOptions {
  /** Bytes of one organization in Redis. */
  readonly perOrganization: number
  readonly maxEntryBytes?: number
  /** Wall clock, Unix milliseconds. */
  readonly now?: () => number
}

/** An entry as Redis keeps it; `until` is Unix milliseconds. */
interface Kept {
  readonly reply: CachedReply
  readonly bytes: number
  readonly until: number
}

/** Looks in this process first, then in Redis; without Redis each node has its own entries. */
export class RedisReplies implements ReplyCache, TurnStore {
  readonly #link: RedisLink
  readonly #own: ReplyCache
  readonly #perOrganization: number
  readonly #maxEntry: number
  readonly #now: () => number

  constructor(link: RedisLink, own: ReplyCache, { perOrganization, maxEntryBytes, now = Date.now }: RepliesOptions) {
    this.#link = link
    this.#own = own
    this.#perOrganization = perOrganization
    this.#maxEntry = Math.min(MAX_ENTRY_BYTES, maxEntryBytes ?? MAX_ENTRY_BYTES)
    this.#now = now
  }

  get(key: string, tenant: string): Promise<CachedReply | undefined> | CachedReply | undefined {
    const own = this.#own.get(key, tenant)
    return own === undefined && this.#link.up ? this.#fetch(key, tenant) : own
  }

  async find(keys: readonly string[], tenant: string): Promise<ReadonlyMap<string, CachedReply>> {
    const replies = await Promise.all(keys.map(key => this.get(key, tenant)))
    const found = new Map<string, CachedReply>()
    for (const [at, key] of keys.entries()) if (replies[at]) found.set(key, replies[at])
    return found
  }

  set(key: string, reply: CachedReply, bytes: number, ttlMs: number, tenant: string): void {
    void this.#own.set(key, reply, bytes, ttlMs, tenant)
    if (!this.#link.up || bytes > this.#maxEntry) return
    const until = this.#now() + ttlMs
    const [ids, sizes, entries] = namesOf(tenant)
    const kept: Kept = { reply, bytes, until }
    const values = [key, JSON.stringify(kept), Math.ceil(bytes), Math.ceil(ttlMs), this.#perOrganization, entries]
    // The link counts the failure; the entry is in this process.
    this.#link.run(KEEP, [ids, sizes, entries + key], '', ...values).catch(() => undefined)
  }

  async #fetch(key: string, tenant: string): Promise<CachedReply | undefined> {
    const [, , entries] = namesOf(tenant)
    // Without Redis this is a miss, and the link counts the failure.
    const text = await this.#link.call(client => client.get(entries + key)).catch(() => null)
    if (text === null) return undefined
    const { reply, bytes, until } = JSON.parse(text) as Kept
    const ttlMs = until - this.#now()
    if (ttlMs <= 0) return undefined
    void this.#own.set(key, reply, bytes, ttlMs, tenant)
    return reply
  }
}

/** Names of the ids, of the sizes, and the beginning of those of entries. */
const namesOf = (tenant: string): [ids: string, sizes: string, entries: string] => {
  const name = `${PREFIX}:{${tenant}}:reply`
  return [`${name}:ids`, `${name}:bytes`, `${name}:`]
}
