/** The slot of one worker process: starts another one when it ends. */
import cluster, { type Worker } from 'node:cluster'
import type { Log } from '../core/ports.ts'
import { guarded } from '../lib/guarded.ts'
import { timerMs } from '../lib/timer.ts'
import type { LeaseServer } from '../stores/workers/lease-server.ts'
import { Channel } from './channel.ts'
import type { PrimaryCalls, WorkerCalls, WorkerInit } from './protocol.ts'

/** A worker that ran this long did not fail during its start. */
const STABLE_MS = 10_000
const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 30_000

/** How a process ended: exit code, or the signal that killed it. */
export type End = number | string

/** The parts of a pool that a slot uses. */
interface WorkerSlotOptions {
  begin(): WorkerInit
  onReady(at: Parameters<PrimaryCalls['ready']>[0]): void
  onEnd(pid: number): void
  readonly relay: Pick<PrimaryCalls, 'affinity' | 'cool' | 'keepTurn' | 'findTurns' | 'renew'>
  readonly leaseServer: LeaseServer
  readonly log: Log
}

/** Has at most one live process; a process that ends while the pool serves is replaced. */
export class WorkerSlot {
  readonly #options: WorkerSlotOptions
  #worker: Worker | undefined
  #channel: Channel<WorkerCalls> | undefined
  #exited: Promise<End> = Promise.resolve(0)
  #startedAt = 0
  #ready = false
  #ending = false
  /** Consecutive failures during the start. */
  #failures = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: WorkerSlotOptions) {
    this.#options = options
  }

  /** Whether the worker of this slot serves. */
  get ready(): boolean {
    return this.#ready
  }

  /** Pid of the latest worker; 0 before the first. */
  get pid(): number {
    return this.#worker?.process.pid ?? 0
  }

  get uptimeMs(): number {
    return performance.now() - this.#startedAt
  }

  readonly call: Channel<WorkerCalls>['call'] = (...given) => this.#channel!.call(...given)
  readonly notify: Channel<WorkerCalls>['notify'] = (...given) => this.#channel?.notify(...given)

  /** Resolves when a worker serves; rejects with what prevents it. From then on, a worker that ends is replaced. */
  async start(): Promise<void> {
    try {
      await new Promise<void>((resolve, reject) => this.#fork(resolve, reject))
    } finally {
      void this.#exited.then(end => this.#replace(end))
    }
  }

  /** Resolves when the worker has ended, at the latest by a kill after `limitMs`. */
  async end(limitMs: number): Promise<End> {
    this.#ending = true
    clearTimeout(this.#timer)
    if (this.pid === 0 || this.#worker!.isDead()) return 0
    this.notify('drain', null)
    const timer = setTimeout(() => this.#worker?.process.kill('SIGKILL'), timerMs(limitMs))
    const end = await this.#exited
    clearTimeout(timer)
    return end
  }

  /** Kills the process without waiting for its end. */
  abandon(): void {
    if (this.#worker && !this.#worker.isDead()) this.#worker.process.kill('SIGKILL')
  }

  kill(): Promise<End> {
    return this.end(0)
  }

  #fork(onReady: () => void, onFailure: (why: Error) => void): void {
    const { begin, onReady: report, onEnd, relay, leaseServer, log } = this.#options
    const worker = cluster.fork()
    const failed = (err: unknown) => log.error({ worker: this.pid, err }, 'worker listener failed')
    const wire = {
      // A message that cannot be sent was for a worker that has ended; its exit is handled below.
      send: (message: object) => void worker.process.send(message, () => undefined),
      onMessage: (listener: (message: object) => void) => void worker.process.on('message', guarded(listener, failed)),
      onClose: (listener: () => void) => void worker.process.once('disconnect', guarded(listener, failed)),
    }
    const borrower = leaseServer.borrower((key, windowMs) => channel.call('recall', { key, windowMs }))
    const channel = new Channel<WorkerCalls>(wire, {
      ...relay,
      begin: () => {
        // Messages sent before the process listens are lost.
        if (this.#ending) this.notify('drain', null)
        return begin()
      },
      ready: at => {
        this.#ready = true
        log.info({ worker: this.pid }, 'worker serves')
        report(at)
        onReady()
      },
      failed: ({ message, ...facts }) => onFailure(Object.assign(new Error(message), facts)),
      take: borrower.take,
      peek: borrower.peek,
      giveBack: ({ key, windowMs, unused }) => borrower.giveBack(key, windowMs, unused),
      enter: ({ key, limit }) => borrower.enter(key, limit),
      leave: borrower.leave,
      reserve: borrower.reserve,
      correct: borrower.correct,
    } satisfies PrimaryCalls)
    this.#worker = worker
    this.#channel = channel
    this.#startedAt = performance.now()
    this.#exited = new Promise(resolve => {
      const ended = (end: End) => {
        onFailure(new Error(`a worker ended with ${end} before it served`))
        this.#ready = false
        borrower.end()
        onEnd(this.pid)
        resolve(end)
      }
      worker.once(
        'exit',
        guarded((code: number, signal: string) => ended(signal || code), failed),
      )
      const broken = (error: Error) => {
        onFailure(error)
        // The process could not be created, so no exit event follows.
        if (this.pid === 0) ended(error.message)
      }
      worker.on('error', guarded(broken, failed))
    })
  }

  /** Restarts the worker; each consecutive failure lengthens the delay. */
  #replace(end: End): void {
    if (this.#ending) return
    const { log } = this.#options
    const { pid } = this
    this.#failures = this.uptimeMs < STABLE_MS ? this.#failures + 1 : 0
    const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** this.#failures)
    log.error({ worker: pid, end, delayMs }, 'worker ended; restarting')
    this.#timer = setTimeout(() => {
      this.start().catch((err: unknown) => log.error({ worker: this.pid, err }, 'worker start failed'))
    }, delayMs)
  }
}
