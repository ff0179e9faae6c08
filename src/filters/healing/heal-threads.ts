/** Threads that heal what would keep the event loop busy, shared out among organizations. */
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { FairSlots } from '../../core/fair-slots.ts'
import type { HealingSkipped } from '../../core/ports.ts'

/** Texts that are healed together, one after the other, in one thread. */
interface HealThread {
  /** Rejects when the thread has broken. */
  run(texts: readonly string[]): Promise<readonly string[]>
  stop(): void
}

/** Tests replace `start`; the defaults of the rest are those of the constructor. */
export interface HealThreadsOptions {
  /** Undefined where there is no thread to start. */
  readonly start?: (() => HealThread) | undefined
  readonly threads?: number
  /** Answers that may wait for a thread, and how long. */
  readonly queue?: number
  readonly waitMs?: number
  /** How long a thread may take for one answer. */
  readonly workMs?: number
}

/** Beside the bundle; absent when the code runs from its sources, where everything is healed on the event loop. */
const FILE = new URL('./heal-thread.js', import.meta.url)
const startHere = existsSync(FILE) ? () => new FileThread() : undefined

/**
 * Starts a thread when one is first needed, and keeps it for the next answers. A thread that takes too long is stopped.
 */
export class HealThreads {
  readonly #start: (() => HealThread) | undefined
  readonly #slots: FairSlots
  readonly #queue: number
  readonly #waitMs: number
  readonly #workMs: number
  readonly #idle: HealThread[] = []

  constructor({ start, threads = 2, queue = 64, waitMs = 5000, workMs = 2000 }: HealThreadsOptions = {}) {
    this.#start = start ?? startHere
    this.#slots = new FairSlots(threads)
    this.#queue = queue
    this.#waitMs = waitMs
    this.#workMs = workMs
  }

  get available(): boolean {
    return this.#start !== undefined
  }

  /** The texts in their order, or why they could not be healed. Never rejects. */
  async heal(tenant: string, texts: readonly string[]): Promise<readonly string[] | HealingSkipped> {
    if (!(await this.#enter(tenant))) return 'busy'
    try {
      return await this.#work(texts)
    } finally {
      this.#slots.leave(tenant)
    }
  }

  async #work(texts: readonly string[]): Promise<readonly string[] | HealingSkipped> {
    let timer: NodeJS.Timeout | undefined
    let thread: HealThread | undefined
    try {
      thread = this.#idle.pop() ?? this.#start!()
      const late = new Promise<'timeout'>(resolve => {
        timer = setTimeout(resolve, this.#workMs, 'timeout')
      })
      const result = await Promise.race([thread.run(texts), late])
      if (result === 'timeout') thread.stop()
      else this.#idle.push(thread)
      return result
    } catch {
      // What breaks a thread, its memory for example, is no reason to lose the answer.
      thread?.stop()
      return 'failed'
    } finally {
      clearTimeout(timer)
    }
  }

  /** False when too many wait already, or there is no thread in time. */
  #enter(tenant: string): true | Promise<boolean> {
    if (this.#slots.take(tenant)) return true
    return new Promise(resolve => {
      const go = () => {
        clearTimeout(timer)
        resolve(true)
      }
      const leave = () => {
        this.#slots.ignore(tenant, go)
        resolve(false)
      }
      const timer = setTimeout(leave, this.#waitMs)
      if (!this.#slots.wait(tenant, go, this.#queue)) {
        clearTimeout(timer)
        resolve(false)
      }
    })
  }
}

/** Megabytes of a thread's heap: a text that needs more stays as it is. */
const MAX_HEAP_MB = 128

/** Runs `src/app/heal-thread.ts`. While it is idle, it keeps no process from ending. */
class FileThread implements HealThread {
  readonly #worker = new Worker(FILE, { resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } })
  #ended = false

  constructor() {
    // What follows is its end.
    this.#worker.on('error', () => undefined)
    this.#worker.once('exit', () => {
      this.#ended = true
    })
    this.#worker.unref()
  }

  run(texts: readonly string[]): Promise<readonly string[]> {
    const worker = this.#worker
    return new Promise<readonly string[]>((resolve, reject) => {
      const ended = () => reject(new Error('the thread has ended'))
      if (this.#ended) return ended()
      worker.once('exit', ended)
      worker.once('message', (healed: readonly string[]) => {
        worker.off('exit', ended)
        worker.unref()
        resolve(healed)
      })
      worker.ref()
      worker.postMessage(texts)
    })
  }

  stop(): void {
    void this.#worker.terminate()
  }
}
