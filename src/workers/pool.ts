/** The workers of a gateway: started, started again when they end, asked, and ended. */
import cluster from 'node:cluster'
import type { Log } from '../core/ports.ts'
import { AffinityBoard } from '../stores/workers/affinity.ts'
import { LeaseServer } from '../stores/workers/lease-server.ts'
import { TurnBoard } from '../stores/workers/turns.ts'
import type { WorkerCalls, WorkerInit, WorkerState } from './protocol.ts'
import { WorkerSlot } from './worker-slot.ts'

/** How long a worker may take to tell how it is; who probes a gateway gives it a second, usually. */
const GLANCE_MS = 500

export interface PoolOptions {
  /** The module that a worker runs. */
  readonly entry: string
  readonly count: number
  /** Asked by every worker at its start. */
  begin(): WorkerInit
  /** A worker that was started again serves with this version of the configuration. */
  onReady(configVersion: string): void
  /** A worker has ended. */
  onEnd(pid: number): void
  readonly log: Log
}

/** What came of a call, by the pid of the worker. */
export interface Told<Answer> {
  readonly answers: ReadonlyMap<number, Answer>
  /** Also of who did not answer in time, or has ended meanwhile. */
  readonly refusals: ReadonlyMap<number, Error>
}

export class Pool {
  readonly #slots: readonly WorkerSlot[]
  readonly #log: Log
  #address = ''
  #draining = false

  constructor({ entry, count, begin, onReady, onEnd, log }: PoolOptions) {
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
          slot.tell('affinity', board.all())
          onReady(configVersion)
        },
        relay: {
          // To its sender too, so that all of them see affinity in one order.
          affinity: entries => {
            board.note(entries)
            for (const { tell } of others()) tell('affinity', entries)
          },
          cool: circuit => {
            for (const { tell } of others(slot)) tell('cool', circuit)
          },
          keepTurn: turn => turns.keep(turn),
          findTurns: keys => turns.find(keys),
        },
      })
      slots.push(slot)
    }
    this.#slots = slots
    // Who is too busy to hear that its primary has gone would go on for ever.
    process.once('exit', () => {
      for (const slot of slots) slot.abandon()
    })
  }

  /** `host:port` as it came to be; empty until `start` has resolved. */
  get address(): string {
    return this.#address
  }

  /** Whether anybody serves, and goes on to. */
  get ready(): boolean {
    return !this.#draining && this.#slots.some(({ ready }) => ready)
  }

  /** Whether a worker that serves has this pid. */
  has(pid: number): boolean {
    return this.#slots.some(slot => slot.ready && slot.pid === pid)
  }

  /** Resolves when all serve. Rejects with what keeps one of them from it, and then all have ended. */
  async start(): Promise<void> {
    try {
      await Promise.all(this.#slots.map(slot => slot.start()))
    } catch (thrown) {
      await Promise.all(this.#slots.map(slot => slot.kill()))
      throw thrown
    }
  }

  /** Calls all that serve. The log tells of who refused, or did not answer. */
  async ask<N extends keyof WorkerCalls>(
    name: N,
    argument: Parameters<WorkerCalls[N]>[0],
    patienceMs?: number,
  ): Promise<Told<Awaited<ReturnType<WorkerCalls[N]>>>> {
    const asked = this.#slots.filter(({ ready }) => ready)
    const answers = new Map<number, Awaited<ReturnType<WorkerCalls[N]>>>()
    const refusals = new Map<number, Error>()
    const ask = async (slot: WorkerSlot) => {
      const { pid } = slot
      try {
        answers.set(pid, await slot.call(name, argument, patienceMs))
      } catch (err) {
        this.#log.warn({ worker: pid, err }, 'worker command failed')
        refusals.set(pid, err as Error)
      }
    }
    await Promise.all(asked.map(ask))
    return { answers, refusals }
  }

  /** Calls one that serves. Rejects when there is none. */
  askOne<N extends keyof WorkerCalls>(
    name: N,
    argument: Parameters<WorkerCalls[N]>[0],
  ): Promise<Awaited<ReturnType<WorkerCalls[N]>>> {
    const slot = this.#slots.find(({ ready }) => ready)
    return slot ? slot.call(name, argument) : Promise.reject(new Error('no worker serves'))
  }

  /** One for each worker, also for those that start or do not answer. */
  async states(): Promise<WorkerState[]> {
    const { answers: known } = await this.ask('state', null, GLANCE_MS)
    return this.#slots.map(({ pid, uptimeMs }) => {
      return known.get(pid) ?? { pid, ready: false, inFlight: 0, configVersion: '', uptimeMs }
    })
  }

  /**
   * Lets what runs end, and with it the workers; who has not ended after `limitMs` is killed. Rejects when one ended
   * otherwise than well.
   */
  async drain(limitMs: number): Promise<void> {
    this.#draining = true
    const ends = await Promise.all(this.#slots.map(slot => slot.end(limitMs)))
    const bad = ends.filter(end => end !== 0)
    if (bad.length > 0) throw new Error(`a worker ended with ${bad.join(', ')}`)
  }

  abortDrain(): void {
    for (const { tell } of this.#slots) tell('abortDrain', null)
  }
}
