/** The connection to Redis: bounded waits, a circuit breaker, and probes while it is open. */
import { createHash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Cluster, Redis } from 'ioredis'
import type { Log, Probe } from '../../core/ports.ts'
import { Circuit } from '../memory/circuit.ts'

/** A client of one server or of a cluster. */
export type RedisClient = Redis | Cluster

/** How long a command may take. */
export const COMMAND_MS = 100
/**
 * Three failures in a row open the breaker. After a timeout nothing is sent until a probe is answered, which is sent at
 * once: so only one wait of a request is lost, and a single slow answer costs no more than that.
 */
const POLICY = { failures: 3, baseMs: 500, maxMs: 2000, jitter: 0.5 }
const BEFORE_FIRST_MS = 1000

/** Begins a script that needs the time: the server's clock, or the first argument where a test gives one. */
export const CLOCK = `local time = redis.call('TIME')
local now = tonumber(ARGV[1]) or (time[1] * 1000 + math.floor(time[2] / 1000))`

/** A Lua script, called by its hash. It runs on Redis from 5 and on Valkey. */
export class Script {
  readonly text: string
  readonly sha: string

  constructor(text: string) {
    this.text = text
    this.sha = createHash('sha1').update(text).digest('hex')
  }
}

/** Fails where Redis refuses what nodes write, and where it lacks the database: a connection works in database 0 then. */
const PROBE = new Script(`if ARGV[1] ~= '0' then redis.call('SELECT', ARGV[1]) end
return redis.call('SET', KEYS[1], '', 'PX', 1000)`)

/** Redis is not used now: the caller decides by itself. */
class RedisAway extends Error {
  override readonly name = 'RedisAway'
}

/** Outcome of a command, for metrics; commands are not sent while the breaker is open. */
export type RedisOutcome = 'ok' | 'timeout' | 'error'

/** Options of a link. */
interface LinkOptions {
  readonly log: Log
  /** Number of the database; 0 when absent. */
  readonly database?: number
  readonly observe?: ((outcome: RedisOutcome, seconds: number) => void) | undefined
  /** Monotonic milliseconds. */
  readonly now?: (() => number) | undefined
  readonly random?: (() => number) | undefined
  /** Runs `work` after a delay; returns what cancels it. */
  readonly later?: ((work: () => void, ms: number) => () => void) | undefined
}

/** Sends commands while Redis answers. Failures never wait longer than `COMMAND_MS`. */
export class RedisLink implements Probe {
  readonly #client: RedisClient
  readonly #database: number
  readonly #log: Log
  readonly #observe: (outcome: RedisOutcome, seconds: number) => void
  readonly #now: () => number
  readonly #random: () => number
  readonly #later: (work: () => void, ms: number) => () => void
  readonly #breaker = new Circuit()
  readonly #onUp: (() => void)[] = []
  #up = false
  /** Whether the log says that Redis is away. */
  #isReportedAway = true
  #closed = false
  #reason = 'not connected yet'
  /** The last error of the connection itself, while there is none. */
  #broken: string | undefined
  #cancelProbe: (() => void) | undefined

  constructor(client: RedisClient, { log, database = 0, observe, now, random, later }: LinkOptions) {
    this.#client = client
    this.#database = database
    this.#log = log
    this.#observe = observe ?? (() => undefined)
    this.#now = now ?? (() => performance.now())
    this.#random = random ?? Math.random
    this.#later = later ?? afterwards
    client.on('error', (error: Error & { readonly lastNodeError?: Error }) => {
      // A cluster's own error does not say why its members could not be used.
      this.#broken = (error.lastNodeError ?? error).message
    })
  }

  /** Whether commands are sent. */
  get up(): boolean {
    return this.#up
  }

  /** Calls `listener` whenever Redis has become reachable. Register before `start`. */
  onUp(listener: () => void): void {
    this.#onUp.push(listener)
  }

  /** Resolves when Redis has answered, or after a second without an answer: the node starts without it then. */
  async start(): Promise<void> {
    await atStart(this.#client.connect().catch((thrown: unknown) => this.#note(thrown)))
    this.#isReportedAway = false
    await this.probe()
  }

  /** Rejects with RedisAway at once while the breaker is open, and after `COMMAND_MS` at the latest. */
  async call<T>(work: (client: RedisClient) => Promise<T>): Promise<T> {
    if (!this.#up) throw new RedisAway(this.#reason)
    try {
      return await this.#attempt(work)
    } catch (thrown) {
      this.#note(thrown)
      if (thrown instanceof RedisAway) {
        this.#pause(0)
        throw thrown
      }
      if (this.#breaker.failed(this.#now(), POLICY, this.#random())) this.#goDown()
      throw new RedisAway(this.#reason)
    }
  }

  /** Runs a script on keys of one slot. */
  run(script: Script, keys: readonly string[], ...values: readonly (string | number)[]): Promise<unknown> {
    return this.call(client => evaluated(client, script, keys, values))
  }

  /** Asks Redis once, whatever the breaker says, and closes or opens it. */
  async probe(): Promise<void> {
    this.#cancelProbe?.()
    this.#cancelProbe = undefined
    if (this.#closed) return
    try {
      // A client that has given up, as it does where no Sentinel answers, is started anew.
      if (this.#client.status === 'end') await this.#client.connect()
      await this.#attempt(client => evaluated(client, PROBE, [`${PREFIX}:probe`], [this.#database]))
    } catch (thrown) {
      this.#note(thrown)
      this.#breaker.trip(this.#now(), POLICY, this.#random())
      this.#goDown()
      return
    }
    this.#breaker.succeeded(this.#now())
    if (this.#up || this.#closed) return
    this.#up = true
    this.#broken = undefined
    if (this.#isReportedAway) this.#log.info({}, 'redis reachable')
    this.#isReportedAway = false
    for (const listener of this.#onUp) listener()
  }

  /** Rejects with the reason while Redis is not used. */
  async ping(): Promise<void> {
    await this.call(client => client.ping())
  }

  close(): void {
    this.#closed = true
    this.#up = false
    this.#reason = 'closed'
    this.#cancelProbe?.()
    this.#client.disconnect()
  }

  async #attempt<T>(work: (client: RedisClient) => Promise<T>): Promise<T> {
    const start = this.#now()
    let late: NodeJS.Timeout | undefined
    let outcome: RedisOutcome = 'error'
    try {
      const timeout = new Promise<never>((_, reject) => {
        const fail = () => {
          outcome = 'timeout'
          reject(new RedisAway(`no answer within ${COMMAND_MS} ms`))
        }
        // An answer may have arrived while this process was busy: it is read before the check.
        late = setTimeout(() => setImmediate(fail), COMMAND_MS)
      })
      const answer = await Promise.race([work(this.#client), timeout])
      this.#breaker.succeeded(this.#now())
      outcome = 'ok'
      return answer
    } finally {
      clearTimeout(late)
      this.#observe(outcome, (this.#now() - start) / 1000)
    }
  }

  #note(thrown: unknown): void {
    const said = thrown instanceof Error ? thrown.message : String(thrown)
    this.#reason = /^Stream isn't writeable|^Connection is closed|^Cluster isn't ready/.test(said)
      ? (this.#broken ?? 'no connection')
      : said
  }

  #goDown(): void {
    if (!this.#isReportedAway) this.#log.warn({ reason: this.#reason }, 'redis unreachable')
    this.#isReportedAway = true
    this.#pause(this.#breaker.openMs(this.#now()))
  }

  /** Sends nothing until a probe, after this time, is answered. */
  #pause(ms: number): void {
    this.#up = false
    if (this.#closed || this.#cancelProbe) return
    this.#cancelProbe = this.#later(() => void this.probe(), ms)
  }
}

/** Resolves with `connected`, or after a second. Clients of Sentinels, and of a cluster that is down, try to connect for ever. */
export const atStart = (connected: Promise<unknown>): Promise<unknown> =>
  Promise.race([connected, wait(BEFORE_FIRST_MS, undefined, { ref: false })])

async function evaluated(
  client: RedisClient,
  { sha, text }: Script,
  keys: readonly string[],
  values: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await client.evalsha(sha, keys.length, ...keys, ...values)
  } catch (thrown) {
    // A restarted or flushed server has forgotten its scripts.
    if (!(thrown instanceof Error && thrown.message.startsWith('NOSCRIPT'))) throw thrown
    return await client.eval(text, keys.length, ...keys, ...values)
  }
}

function afterwards(work: () => void, ms: number): () => void {
  const timer = setTimeout(work, ms).unref()
  return () => clearTimeout(timer)
}

/** Every key and channel begins with this. */
export const PREFIX = 'gw'

/**
 * The key of a counter. Its hash tag is all but the last word, which is the organization: all counters of one stand in
 * one slot of a cluster.
 */
export const keyOf = (kind: string, counter: string): string => {
  const owner = counter.slice(0, Math.max(0, counter.lastIndexOf(' ')))
  return `${PREFIX}:{${owner}}:${kind}:${counter}`
}
