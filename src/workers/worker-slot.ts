/** The place of one worker: who sits there serves until it ends, and then another one takes it. */
import cluster, { type Worker } from 'node:cluster'
import type { Log } from '../core/ports.ts'
import { timerMs } from '../lib/timer.ts'
import type { LeaseServer } from '../stores/workers/lease-server.ts'
import { Channel } from './channel.ts'
import type { PrimaryCalls, WorkerCalls, WorkerInit } from './protocol.ts'

/** Who lived for so long did not fail at its start. */
const STABLE_MS = 10_000
const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 30_000

/** How a process ended: its exit code, or the signal that killed it. */
export type End = number | string

export interface WorkerSlotOptions {
  begin(): WorkerInit
  onReady(at: Parameters<PrimaryCalls['ready']>[0]): void
  onEnd(pid: number): void
  readonly relay: Pick<PrimaryCalls, 'affinity' | 'cool' | 'keepTurn' | 'findTurns'>
  readonly leaseServer: LeaseServer
  readonly log: Log
}

export class WorkerSlot {
  readonly #options: WorkerSlotOptions
  #worker: Worker | undefined
  #channel: Channel<WorkerCalls> | undefined
  #exited: Promise<End> = Promise.resolve(0)
  #startedAt = 0
  #ready = false
  #ending = false
  /** Early ends in a row. */
  #failures = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: WorkerSlotOptions) {
    this.#options = options
  }

  /** Whether its worker serves. */
  get ready(): boolean {
    return this.#ready
  }

  /** Of its last worker; 0 when there was none. */
  get pid(): number {
    return this.#worker?.process.pid ?? 0
  }

  get uptimeMs(): number {
    return performance.now() - this.#startedAt
  }

  readonly call: Channel<WorkerCalls>['call'] = (...given) => this.#channel!.call(...given)
  readonly tell: Channel<WorkerCalls>['tell'] = (...given) => this.#channel?.tell(...given)

  /** Resolves when a worker serves. Rejects with what keeps it from that. From then on, who ends is replaced. */
  async start(): Promise<void> {
    try {
      await new Promise<void>((resolve, reject) => this.#fork(resolve, reject))
    } finally {
      void this.#exited.then(end => this.#replace(end))
    }
  }

  /** Resolves when the worker has ended by itself, or was killed after `limitMs`. */
  async end(limitMs: number): Promise<End> {
    this.#ending = true
    clearTimeout(this.#timer)
    if (this.pid === 0 || this.#worker!.isDead()) return 0
    this.tell('drain', null)
    const timer = setTimeout(() => this.#worker?.process.kill('SIGKILL'), timerMs(limitMs))
    const end = await this.#exited
    clearTimeout(timer)
    return end
  }

  /** Leaves no process behind; nobody waits for it. */
  abandon(): void {
    if (this.#worker && !this.#worker.isDead()) this.#worker.process.kill('SIGKILL')
  }

  kill(): Promise<End> {
    return this.end(0)
  }

  #fork(onReady: () => void, onFailure: (why: Error) => void): void {
    const { begin, onReady: report, onEnd, relay, leaseServer } = this.#options
    const worker = cluster.fork()
    const wire = {
      // What cannot be sent any more was meant for a worker that has ended, which is seen to below.
      send: (message: object) => void worker.process.send(message, () => undefined),
      onMessage: (listener: (message: object) => void) => void worker.process.on('message', listener),
      onClose: (listener: () => void) => void worker.process.once('disconnect', listener),
    }
    const borrower = leaseServer.borrower((key, windowMs) => channel.call('recall', { key, windowMs }))
    const channel = new Channel<WorkerCalls>(wire, {
      ...relay,
      begin: () => {
        // What is told to a process before it listens is lost.
        if (this.#ending) this.tell('drain', null)
        return begin()
      },
      ready: at => {
        this.#ready = true
        report(at)
        onReady()
      },
      failed: ({ message, ...facts }) => onFailure(Object.assign(new Error(message), facts)),
      take: borrower.take,
      giveBack: ({ key, windowMs, unused }) => borrower.giveBack(key, windowMs, unused),
      enter: ({ key, limit }) => borrower.enter(key, limit),
      leave: borrower.leave,
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
      worker.once('exit', (code, signal) => ended(signal || code))
      worker.on('error', error => {
        onFailure(error)
        // There was no room for another process, so that none will exit.
        if (this.pid === 0) ended(error.message)
      })
    })
  }

  /** The longer it waits, the oftener the workers of this place have failed. */
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
