/** The engine as endpoints and filters use it: see `JobRunner`. */
import { Cancellation } from '../core/cancel.ts'
import { isFinal } from '../core/job.ts'
import type { ContentAnswer, ContentRequest, Job, JobRunner } from '../core/ports.ts'
import { errors } from '../lib/error.ts'
import { aloneOf, FairShare } from '../limits/share.ts'
import { contentOf } from './content.ts'
import type { JobsContext } from './context.ts'
import { endJob } from './ending.ts'
import { Engine } from './engine.ts'
import { renewing } from './lease.ts'
import { JobProvider, type PollAnswer } from './provider.ts'
import { isValidToken, jobObject } from './view.ts'

/** How long a cancel waits for a poll that runs. */
const CANCEL_MS = 5_000
const LOOK_MS = 100

/** Share of concurrent result reads that one organization may have beside others. */
const STREAM_SHARE = 1 / 4

/** The `JobRunner` of a process, and its engine. */
export class Jobs implements JobRunner {
  readonly #context: JobsContext
  readonly #provider: JobProvider
  readonly #streams = new FairShare(1)
  readonly engine: Engine

  constructor(context: JobsContext) {
    this.#context = context
    this.#provider = new JobProvider(context)
    this.engine = new Engine(context, this.#provider)
  }

  get timeoutMs(): number {
    return this.#context.options().timeout
  }

  firstPoll(now: number): number {
    return now + this.#context.options().poll
  }

  checkCallback(url: string): void {
    this.#context.poster.check(url, this.#context.options().callback_to)
  }

  wake(): void {
    this.engine.wake()
  }

  show(job: Job): object {
    return jobObject(job, this.#context)
  }

  async byToken(token: string, logId: string): Promise<Job | undefined> {
    if (!isValidToken(this.#context.tokenKeys(), token, logId, this.#context.now())) throw errors.contentToken()
    const { store, policies } = this.#context
    const job = await store.byLogId(logId)
    if (!job || !(await store.isReadable(job))) return undefined
    const policy = await policies.of(job.orgId)
    return policy.keepsReplies ? job : undefined
  }

  async cancel(job: Job): Promise<Job> {
    const { store } = this.#context
    const claimed = await this.#claim(job.id)
    const again = async () => (await store.get(job.id)) ?? job
    if (!claimed) return again()
    try {
      await renewing(claimed, new Cancellation(), this.#context, signal => this.#canceled(claimed, signal))
    } catch (thrown) {
      const at = this.#context.now()
      await store.move(job.id, claimed.fence, { nextAt: at, failures: claimed.failures, at })
      throw thrown
    }
    this.wake()
    return again()
  }

  /**
   * A job that has ended at its provider ends as it did there: some providers drop a result that is canceled. What a
   * provider goes on with is not canceled here, as it is charged for.
   */
  async #canceled(job: Job, signal: Cancellation): Promise<void> {
    const { poller } = this.engine
    const before = await this.#finalAnswer(job, signal)
    if (before) return poller.end(job, before, signal)
    const outcome = await this.#provider.cancel(job, signal)
    const after = outcome === 'unknown' ? undefined : await this.#finalAnswer(job, signal)
    if (after) return poller.end(job, after, signal)
    if (outcome !== 'agreed') throw errors.jobNotCancelable(job.kind)
    const error = { code: 'canceled', message: 'The job was canceled.' }
    await endJob(job, { state: 'canceled', error }, this.#context)
  }

  /** Undefined for a job that goes on, and where its provider does not report it. */
  async #finalAnswer(job: Job, signal: Cancellation): Promise<PollAnswer | undefined> {
    const answer = await this.#provider.poll(job, signal).catch(() => undefined)
    if (answer?.report.state && isFinal(answer.report.state)) return answer
    await this.#provider.results.discard(answer?.inline)
    return undefined
  }

  async remove(job: Job): Promise<void> {
    const removed = await this.#context.store.remove(job.id, this.#context.now())
    if (removed?.result?.kind === 'blob') await this.#context.blobs.remove(removed.result.blob)
  }

  /** Throws 529 where the process has as many open as it may have, or the organization that the job belongs to. */
  async content(job: Job, request: ContentRequest): Promise<ContentAnswer> {
    const slots = this.#streams
    const { streams } = this.#context.options()
    slots.resize(streams, STREAM_SHARE, aloneOf(streams))
    if (!slots.acquire(job.orgId)) throw errors.overloaded()
    try {
      const answer = await contentOf(job, request, this.#context, this.#provider)
      return { ...answer, chunks: withEnd(answer.chunks, () => slots.release(job.orgId)) }
    } catch (thrown) {
      slots.release(job.orgId)
      throw thrown
    }
  }

  /** Undefined for a job that has ended meanwhile. */
  async #claim(id: string): Promise<Job | undefined> {
    const { store, now } = this.#context
    for (const until = now() + CANCEL_MS; ; ) {
      const claimed = await store.claimOne(id, this.engine.lease())
      if (claimed) return claimed
      const job = await store.get(id)
      if (!job || job.completedAt !== null) return undefined
      if (now() >= until) throw errors.jobBusy()
      await new Promise(resolve => setTimeout(resolve, LOOK_MS))
    }
  }
}

/** Calls `end` once: at the end of the chunks, or when their reader stops, even before the first one. */
function withEnd(chunks: AsyncIterable<Buffer>, end: () => void): AsyncIterable<Buffer> {
  const inner = chunks[Symbol.asyncIterator]()
  let isOver = false
  const over = () => {
    if (!isOver) end()
    isOver = true
  }
  const iterator: AsyncIterableIterator<Buffer> = {
    [Symbol.asyncIterator]: () => iterator,
    async next() {
      try {
        const step = await inner.next()
        if (step.done) over()
        return step
      } catch (thrown) {
        over()
        throw thrown
      }
    },
    async return() {
      over()
      await inner.return?.()
      return { done: true, value: undefined }
    },
  }
  return iterator
}
