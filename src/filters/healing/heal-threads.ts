/** Threads that heal what would keep the event loop busy, shared out among organizations. */
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { HealingSkipped } from '../../core/ports.ts'
import { atMost } from '../../lib/timer.ts'
import { FairShare } from '../../limits/share.ts'

/** Texts that are healed together, one after the other, in one thread. */
interface HealThread {
  /** Rejects when the thread has broken. */
  run(texts: readonly string[]): Promise<readonly string[]>
  stop(): void
}

/** Bounds of healing in the process; times are in milliseconds. */
export interface HealLimits {
  readonly threads: number
  /** Answers that may wait for a thread, and how long. */
  readonly queue: number
  readonly wait: number
  /** How long a thread may take for one answer. */
  readonly work: number
}

/** Share of the threads that an organization may have while another one is active. */
const TENANT_SHARE = 1 / 2
/** Beside the bundle; absent when the code runs from its sources, where everything is healed on the event loop. */
const FILE = new URL('./heal-thread.js', import.meta.url)
const startHere = existsSync(FILE) ? () => new FileThread() : undefined

/**
 * Starts a thread when one is first needed, and keeps it for the next answers. A thread that takes too long is stopped.
 */
export class HealThreads {
  readonly #start: (() => HealThread) | undefined
  readonly #slots = new FairShare(0)
  readonly #idle: HealThread[] = []

  /** `start` is undefined where there is no thread to start. */
  constructor(start: (() => HealThread) | undefined = startHere) {
    this.#start = start
  }

  get available(): boolean {
    return this.#start !== undefined
  }

  /** The texts in their order, or why they could not be healed. The limits hold from now on. Never rejects. */
  async heal(
    tenant: string,
    texts: readonly string[],
    limits: HealLimits,
  ): Promise<readonly string[] | HealingSkipped> {
    this.#slots.resize(limits.threads, TENANT_SHARE)
    const { queue, wait: waitMs } = limits
    return (await this.#slots.during(tenant, { queue, waitMs }, () => this.#work(texts, limits.work))) ?? 'busy'
  }

  async #work(texts: readonly string[], workMs: number): Promise<readonly string[] | HealingSkipped> {
    let thread: HealThread | undefined
    try {
      thread = this.#idle.pop() ?? this.#start!()
      const result = await atMost(workMs, thread.run(texts), 'timeout' as const)
      if (result === 'timeout') thread.stop()
      else this.#idle.push(thread)
      return result
    } catch {
      // A broken thread, out of memory for example, is no reason to lose the answer.
      thread?.stop()
      return 'failed'
    }
  }
}

/** Megabytes of a thread's heap: a text that needs more stays as it is. */
const MAX_HEAP_MB = 128

/** Runs `src/app/heal-thread.ts`. While it is idle, it keeps no process from ending. */
class FileThread implements HealThread {
  readonly #worker = new Worker(FILE, { resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } })
  #ended = false

  constructor() {
    // The event of its end follows.
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
