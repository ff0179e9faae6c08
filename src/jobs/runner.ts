/** What endpoints and filters see of the engine: see `JobRunner`. */
import { Cancellation } from '../core/cancel.ts'
import { errors } from '../core/error.ts'
import { isFinal } from '../core/job.ts'
import type { ContentAnswer, ContentRequest, Job, JobRunner } from '../core/ports.ts'
import { contentOf } from './content.ts'
import type { JobsContext } from './context.ts'
import { endJob } from './ending.ts'
import { Engine } from './engine.ts'
import { isValidToken } from './token.ts'
import { shown } from './view.ts'

/** How long a cancel waits for a poll that runs. */
const CANCEL_MS = 5_000
const LOOK_MS = 100

export class Jobs implements JobRunner {
  readonly #context: JobsContext
  readonly engine: Engine

  constructor(context: JobsContext) {
    this.#context = context
    this.engine = new Engine(context)
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
    return shown(job, this.#context)
  }

  async byToken(token: string, logId: string): Promise<Job | undefined> {
    if (!isValidToken(this.#context.tokenKeys(), token, logId, this.#context.now())) throw errors.contentToken()
    return this.#context.store.byLogId(logId)
  }

  async cancel(job: Job): Promise<Job> {
    const { store } = this.#context
    const claimed = await this.#claim(job.id)
    const again = async () => (await store.get(job.id)) ?? job
    if (!claimed) return again()
    const { poller } = this.engine
    const signal = new Cancellation()
    const giveBack = () => {
      const at = this.#context.now()
      return store.move(job.id, claimed.fence, { nextAt: at, failures: claimed.failures, at })
    }
    let isTold: boolean
    try {
      isTold = await poller.cancel(claimed, signal)
    } catch (thrown) {
      await giveBack()
      throw thrown
    }
    if (!isTold) {
      await giveBack()
      throw errors.jobNotCancelable(job.kind)
    }
    const answer = await poller.ask(claimed, signal).catch(() => undefined)
    if (answer?.report.state && isFinal(answer.report.state)) await poller.end(claimed, answer, signal)
    else {
      const error = { code: 'canceled', message: 'The job was canceled.' }
      await endJob(claimed, { state: 'canceled', error }, this.#context)
    }
    this.wake()
    return again()
  }

  async remove(job: Job): Promise<void> {
    const removed = await this.#context.store.remove(job.id, this.#context.now())
    if (removed?.result?.kind === 'blob') await this.#context.blobs.remove(removed.result.blob)
  }

  content(job: Job, request: ContentRequest): Promise<ContentAnswer> {
    return contentOf(job, request, this.#context, this.engine.poller)
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
