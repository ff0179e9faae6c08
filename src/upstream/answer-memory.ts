/** Memory for answers that are held: where there is none for more of one, it waits unread, since its provider charges for it. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Cancellation } from '../core/cancel.ts'
import { MAX_ANSWER_BYTES, tooManyBytes } from '../json/answer-bounds.ts'
import { errors } from '../lib/error.ts'
import type { MemoryBudget, MemoryLease } from '../limits/memory.ts'

/** Copies of a held answer in memory: its bytes, and its events. */
const ANSWER_COPIES = 2
/** Bytes of an answer up to which it takes nothing of the memory budget: most are smaller. */
const FREE_BYTES = 64 * 1024
const LOOK_MS = 25
/** Maximum milliseconds of one wait. Providers end sockets that are not read. */
const MAX_WAIT_MS = 30_000

/** The answers that are being read, of one process. */
export class AnswerMemory {
  readonly #budget: MemoryBudget
  /** Large answers by organization, in the order in which they became large. */
  readonly #reading = new Map<string, Set<AnswerLease>>()

  constructor(budget: MemoryBudget) {
    this.#budget = budget
  }

  /**
   * `signal`: of the attempt; `most`: bytes that the answer may have; `others`: of the answers of the same request, which wait
   * for none of each other.
   */
  lease(tenant: string, signal: Cancellation, most = MAX_ANSWER_BYTES, others?: AnswerLease[]): AnswerLease {
    const lease = new AnswerLease(this, tenant, this.#budget.lease(tenant), signal, most, others)
    others?.push(lease)
    return lease
  }

  /** Bytes that the answers of an organization may hold now, where nothing else holds any. */
  most(tenant: string): number {
    return this.#budget.most(tenant)
  }

  begin(tenant: string, answer: AnswerLease): void {
    const reading = this.#reading.get(tenant)
    if (reading) reading.add(answer)
    else this.#reading.set(tenant, new Set([answer]))
  }

  end(tenant: string, answer: AnswerLease): void {
    const reading = this.#reading.get(tenant)
    if (reading?.delete(answer) && reading.size === 0) this.#reading.delete(tenant)
  }

  /**
   * Whether an answer may take so many bytes more, since as many stay free as the first one may still need: that comes to its end
   * whatever the others hold, and those behind it do then.
   */
  leavesRoom(tenant: string, answer: AnswerLease, bytes: number): boolean {
    const [first] = this.#reading.get(tenant) ?? []
    return (
      !first ||
      first === answer ||
      this.#budget.fits(tenant, bytes + Math.max(0, first.most * ANSWER_COPIES - first.held))
    )
  }
}

/** Memory of one answer. */
export class AnswerLease implements MemoryLease {
  readonly #memory: AnswerMemory
  readonly #tenant: string
  readonly #lease: MemoryLease
  readonly #signal: Cancellation
  /** Bytes that the answer may have. */
  readonly most: number
  /** Bytes of the answer that memory was taken for. */
  #covered = 0
  readonly #others: readonly AnswerLease[]
  #isReading = false

  constructor(
    memory: AnswerMemory,
    tenant: string,
    lease: MemoryLease,
    signal: Cancellation,
    most: number,
    others: readonly AnswerLease[] = NONE,
  ) {
    this.#memory = memory
    this.#tenant = tenant
    this.#lease = lease
    this.#signal = signal
    this.most = most
    this.#others = others
  }

  get held(): number {
    return this.#lease.held
  }

  grow(bytes: number, reserved?: number): boolean {
    return this.#lease.grow(bytes, reserved)
  }

  get covered(): number {
    return this.#covered
  }

  /** Takes memory for so many bytes of the answer in all. Throws a 529 where there is none. */
  cover(bytes: number): void {
    const more = this.#more(bytes)
    if (more > 0 && !this.#lease.grow(more)) throw errors.overloaded().with({ excess: 'size' })
  }

  /**
   * Grows as `cover` does, but waits while others hold the missing memory. Answers of the organization that became
   * large earlier go first. Rejects with a 529 after 30 s. Rejects at once when the answer is too large for any wait,
   * and with the reason of the signal.
   */
  coverInTurn(bytes: number): Promise<void> | undefined {
    const more = this.#more(bytes)
    if (more === 0) return undefined
    if (!this.#isReading) {
      this.#isReading = true
      this.#memory.begin(this.#tenant, this)
    }
    return this.#taken(more) ? undefined : this.#wait(more)
  }

  /** Returns the additional memory for so many bytes of the answer. */
  #more(bytes: number): number {
    if (bytes <= FREE_BYTES || bytes <= this.#covered) return 0
    const more = (bytes - this.#covered) * ANSWER_COPIES
    this.#covered = bytes
    return more
  }

  async #wait(bytes: number): Promise<void> {
    const deadline = performance.now() + MAX_WAIT_MS
    do {
      await sleep(LOOK_MS)
      if (this.#signal.reason) throw this.#signal.reason
      if (this.#taken(bytes)) return
      if (this.#isTooLarge(bytes)) throw tooManyBytes(this.#memory.most(this.#tenant) / ANSWER_COPIES)
    } while (performance.now() < deadline)
    throw errors.overloaded().with({ excess: 'size' })
  }

  /** Whether all answers of the request are too large together, whatever becomes free. */
  #isTooLarge(bytes: number): boolean {
    let held = this.#others.length === 0 ? this.held : 0
    for (const lease of this.#others) held += lease.held
    return held + bytes > this.#memory.most(this.#tenant)
  }

  #taken(bytes: number): boolean {
    return this.#memory.leavesRoom(this.#tenant, this, bytes) && this.#lease.grow(bytes)
  }

  /** Nothing more is read of the answer. */
  wasRead(): void {
    if (this.#isReading) this.#memory.end(this.#tenant, this)
    this.#isReading = false
  }

  keep(share: number): void {
    this.#lease.keep(share)
  }

  release(): void {
    this.wasRead()
    this.#lease.release()
  }
}

const NONE: readonly AnswerLease[] = []
