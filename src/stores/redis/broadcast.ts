/** Publishes facts to all nodes, and keeps some of them for nodes that start later. */
import { guarded } from '../../lib/guarded.ts'
import { atStart, CLOCK, PREFIX, type RedisClient, type RedisLink, Script } from './link.ts'

/** Facts of a kind that are kept for nodes that start later; those that end first leave first. */
const MAX_FACTS = 5000
/** Facts of one answer. Other commands wait while Redis gathers them. */
const MAX_FACTS_PER_ANSWER = 250

/** A fact in JSON, and for how long it holds; 0 for one that is not kept. */
interface Fact {
  readonly fact: unknown
  readonly ttlMs: number
}

/** Receives facts of one kind, in the order of Redis. `isOwn`: this node published them. */
type Receive = (facts: readonly Fact[], isOwn: boolean) => void

const PUBLISH = new Script(`${CLOCK}
for i = 4, #ARGV, 2 do redis.call('ZADD', KEYS[1], now + tonumber(ARGV[i]), ARGV[i + 1]) end
if #ARGV > 3 then
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -${MAX_FACTS + 1})
  local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  if last[2] then redis.call('PEXPIRE', KEYS[1], math.max(1, math.ceil(last[2] - now))) end
end
return redis.call('PUBLISH', ARGV[2], ARGV[3])`)

const KEPT = new Script(`${CLOCK}
local rows = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', now, 'WITHSCORES', 'LIMIT', ARGV[2], ${MAX_FACTS_PER_ANSWER})
for i = 2, #rows, 2 do rows[i] = string.format('%.0f', rows[i] - now) end
return rows`)

interface Place {
  readonly node: string
  readonly database: number
  readonly failed: (thrown: unknown) => void
}

/** Messages between nodes. Those sent while Redis is away are lost: each node then finds out by itself. */
export class Broadcast {
  readonly #link: RedisLink
  readonly #subscriber: RedisClient
  readonly #node: string
  readonly #channel: string
  readonly #failed: (thrown: unknown) => void
  readonly #receivers = new Map<string, { readonly receive: Receive; readonly isKept: boolean }>()
  /** Facts may have come since the last load while there was no subscription. */
  #hasMissed = false

  /** `failed` gets errors of receivers. */
  constructor(link: RedisLink, subscriber: RedisClient, { node, database, failed }: Place) {
    this.#link = link
    this.#subscriber = subscriber
    this.#node = node
    // The databases of a server share its channels.
    this.#channel = `${PREFIX}:facts${database || ''}`
    this.#failed = failed
    link.onUp(() => void this.#loadKept().catch(failed))
    subscriber.on('error', () => undefined)
    subscriber.on(
      'message',
      guarded((_: string, text: string) => this.#received(text), failed),
    )
  }

  /** Registers the receiver of facts of this kind. `isKept`: also of those published before this node started. */
  receive(kind: string, receive: Receive, isKept: boolean): void {
    this.#receivers.set(kind, { receive, isKept })
  }

  /** Sends facts to all nodes, this one included. */
  publish(kind: string, facts: readonly Fact[]): void {
    if (!this.#link.up) return
    const message = JSON.stringify([this.#node, kind, facts.map(({ fact, ttlMs }) => [fact, ttlMs])])
    const kept = facts.filter(({ ttlMs }) => ttlMs > 0)
    const rows = kept.flatMap(({ fact, ttlMs }) => [Math.ceil(ttlMs), JSON.stringify(fact)])
    // The link counts the failure; other nodes find out by themselves.
    this.#link.run(PUBLISH, [boardOf(kind)], '', this.#channel, message, ...rows).catch(() => undefined)
  }

  /** Resolves when messages arrive, or Redis does not answer; they arrive as soon as it does. */
  async start(): Promise<void> {
    const subscribed = this.#subscriber.connect().then(() => this.#subscriber.subscribe(this.#channel))
    await atStart(subscribed.catch(this.#failed))
    // Before anything else is waited for: a client that has connected anew does not subscribe by itself.
    this.#subscriber.on(
      'ready',
      guarded(() => void this.#subscribe().catch(this.#failed), this.#failed),
    )
    this.#hasMissed = true
    await this.#loadKept().catch(this.#failed)
  }

  /** Finds out whether the subscription still has a connection; a silent one is replaced. */
  check(): void {
    // A command would connect a client that has not been started.
    if (this.#subscriber.status === 'ready') this.#subscriber.ping().catch(() => undefined)
  }

  close(): void {
    this.#subscriber.disconnect()
  }

  async #subscribe(): Promise<void> {
    await this.#subscriber.subscribe(this.#channel)
    this.#hasMissed = true
    await this.#loadKept()
  }

  async #loadKept(): Promise<void> {
    if (!this.#hasMissed || !this.#link.up) return
    for (const [kind, { receive, isKept }] of this.#receivers) {
      if (!isKept) continue
      const facts: Fact[] = []
      // From the last to the first: what comes or ends meanwhile hides no other fact.
      for (let isMore = true; isMore; ) {
        const rows = (await this.#link.run(KEPT, [boardOf(kind)], '', facts.length)) as string[]
        for (let at = 0; at < rows.length; at += 2) {
          facts.push({ fact: JSON.parse(rows[at]!), ttlMs: Number(rows[at + 1]) })
        }
        isMore = rows.length === 2 * MAX_FACTS_PER_ANSWER
      }
      receive(facts.reverse(), false)
    }
    this.#hasMissed = false
  }

  #received(text: string): void {
    const [node, kind, rows] = JSON.parse(text) as [string, string, [unknown, number][]]
    const facts = rows.map(([fact, ttlMs]) => ({ fact, ttlMs }))
    this.#receivers.get(kind)?.receive(facts, node === this.#node)
  }
}

const boardOf = (kind: string): string => `${PREFIX}:board:${kind}`
