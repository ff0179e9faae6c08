/** The workers of a gateway: starts, restarts, calls and ends them. */
import cluster from 'node:cluster'
import type { Log } from '../core/ports.ts'
import { AffinityBoard } from '../stores/workers/affinity.ts'
import { LeaseServer } from '../stores/workers/lease-server.ts'
import { TurnBoard } from '../stores/workers/turns.ts'
import type { WorkerCalls, WorkerInit, WorkerState } from './protocol.ts'
import { WorkerSlot } from './worker-slot.ts'

/** Time limit for a worker's state, in milliseconds; health probes usually wait a second. */
const GLANCE_MS = 500

/** Settings to start workers with, and callbacks for their life. */
interface PoolOptions {
  /** Module that a worker runs. */
  readonly entry: string
  readonly count: number
  /** Initial state for a worker; called at the start of each. */
  begin(): WorkerInit
  /** A restarted worker is ready, with this version of the configuration. */
  onReady(configVersion: string): void
  /** Reads the secrets of a provider again for all workers. */
  renew(provider: string): Promise<unknown>
  /** A worker ended. */
  onEnd(pid: number): void
  readonly log: Log
}

/** Results of a call, by the pid of the worker. */
export interface Answers<Answer> {
  readonly answers: ReadonlyMap<number, Answer>
  /** Includes workers that did not answer in time or ended during the call. */
  readonly errors: ReadonlyMap<number, Error>
}

/** `count` slots of a cluster, with what the workers share: quota leases, affinity and kept turns. */
export class Pool {
  readonly #slots: readonly WorkerSlot[]
  readonly #log: Log
  #address = ''
  #draining = false

  constructor({ entry, count, begin, onReady, onEnd, renew, log }: PoolOptions) {
    this.#log = log
    cluster.setupPrimary({ exec: entry, args: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    const leaseServer = new LeaseServer()
    const board = new AffinityBoard()
    const turns = new TurnBoard()
    const slots: WorkerSlot[] = []
    const others = (than?: WorkerSlot) => slots.filter(slot => slot.ready && slot !== than)
    for (let at = 0; at < count; at++) {
      const slot: WorkerSlot = new WorkerSlot({
        ...{ begin, onEnd, leaseServer, log },
        onReady: ({ listen, configVersion }) => {
          this.#address = listen
          slot.notify('affinity', board.all())
          onReady(configVersion)
        },
        relay: {
          // To the sender too, so that all workers apply affinity in one order.
          affinity: entries => {
            board.note(entries)
            for (const { notify } of others()) notify('affinity', entries)
          },
          cool: circuit => {
            for (const { notify } of others(slot)) notify('cool', circuit)
          },
          renew: async provider => void (await renew(provider)),
          keepTurn: turn => turns.keep(turn),
          findTurns: keys => turns.find(keys),
        },
      })
      slots.push(slot)
    }
    this.#slots = slots
    // A worker too busy to notice the end of its primary would run on for ever.
    process.once('exit', () => {
      for (const slot of slots) slot.abandon()
    })
  }

  /** `host:port` in use; empty until `start` has resolved. */
  get address(): string {
    return this.#address
  }

  /** Whether a worker serves and the pool is not draining. */
  get ready(): boolean {
    return !this.#draining && this.#slots.some(({ ready }) => ready)
  }

  /** Whether a serving worker has this pid. */
  has(pid: number): boolean {
    return this.#slots.some(slot => slot.ready && slot.pid === pid)
  }

  /** Resolves when all workers serve. Rejects with the error of the first that cannot start, after ending all. */
  async start(): Promise<void> {
    try {
      await Promise.all(this.#slots.map(slot => slot.start()))
    } catch (thrown) {
      await Promise.all(this.#slots.map(slot => slot.kill()))
      throw thrown
    }
  }

  /** Calls every serving worker. Errors and timeouts are logged. */
  async callAll<N extends keyof WorkerCalls>(
    name: N,
    argument: Parameters<WorkerCalls[N]>[0],
    timeoutMs?: number,
  ): Promise<Answers<Awaited<ReturnType<WorkerCalls[N]>>>> {
    const running = this.#slots.filter(({ ready }) => ready)
    const answers = new Map<number, Awaited<ReturnType<WorkerCalls[N]>>>()
    const errors = new Map<number, Error>()
    const call = async (slot: WorkerSlot) => {
      const { pid } = slot
      try {
        answers.set(pid, await slot.call(name, argument, timeoutMs))
      } catch (err) {
        this.#log.warn({ worker: pid, err }, 'worker command failed')
        errors.set(pid, err as Error)
      }
    }
    await Promise.all(running.map(call))
    return { answers, errors }
  }

  /** Calls one serving worker. Rejects when there is none. */
  callOne<N extends keyof WorkerCalls>(
    name: N,
    argument: Parameters<WorkerCalls[N]>[0],
  ): Promise<Awaited<ReturnType<WorkerCalls[N]>>> {
    const slot = this.#slots.find(({ ready }) => ready)
    return slot ? slot.call(name, argument) : Promise.reject(new Error('no worker serves'))
  }

  /** One state per worker, including those that are starting or do not answer. */
  async states(): Promise<WorkerState[]> {
    const { answers: known } = await this.callAll('state', null, GLANCE_MS)
    return this.#slots.map(({ pid, uptimeMs }) => {
      return known.get(pid) ?? { pid, ready: false, inFlight: 0, configVersion: '', uptimeMs }
    })
  }

  /** Drains all workers; kills those still running after `limitMs`. Rejects when one did not end with success. */
  async drain(limitMs: number): Promise<void> {
    this.#draining = true
    const ends = await Promise.all(this.#slots.map(slot => slot.end(limitMs)))
    const bad = ends.filter(end => end !== 0)
    if (bad.length > 0) throw new Error(`a worker ended with ${bad.join(', ')}`)
  }

  abortDrain(): void {
    for (const { notify } of this.#slots) notify('abortDrain', null)
  }
}
