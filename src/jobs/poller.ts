/** Polls claimed jobs, and moves each by the answer or the failure. */
import type { Cancellation } from '../core/cancel.ts'
import { isFinal } from '../core/job.ts'
import type { FinalState, Job, JobError, JobResult } from '../core/ports.ts'
import type { Target } from '../core/translator.ts'
import type { JobReport } from '../core/wire.ts'
import { asError, errors, type GatewayError } from '../lib/error.ts'
import { guessStatus, redactMessage, upstreamError } from '../wire/upstream-error.ts'
import { afterFailure, failureGap, isOurs, MAX_FAILURES, pollGap, shownMessage } from './back-off.ts'
import type { JobsContext } from './context.ts'
import { type Ending, endJob } from './ending.ts'
import { renewing } from './lease.ts'
import type { JobProvider, PollAnswer } from './provider.ts'

/** A provider that keeps results for less than this has them copied. */
const SHORT_LIFE_MS = 86_400_000
const MAX_MESSAGE_CHARACTERS = 1000
const DEFAULT_MESSAGE = 'The job failed. Its provider gave no reason.'

/** One step of a claimed job at a time; a step that fails to be written is repeated when the lease ends. */
export class Poller {
  readonly #context: JobsContext
  readonly #provider: JobProvider

  constructor(context: JobsContext, provider: JobProvider) {
    this.#context = context
    this.#provider = provider
  }

  /** Polls a claimed job. Never rejects. `signal` ends when another process has the job, or this one stops. */
  async poll(job: Job, signal: Cancellation): Promise<void> {
    const { log, metrics } = this.#context
    try {
      await this.#poll(job, signal)
    } catch (err) {
      metrics.poll(job.provider, 'error')
      log.warn({ err, job: job.id }, 'job step failed; retried when the lease ends')
    }
  }

  async #poll(job: Job, signal: Cancellation): Promise<void> {
    const { metrics, now } = this.#context
    const isLate = now() >= job.deadlineAt
    let answer: PollAnswer
    try {
      answer = await this.#provider.poll(job, signal)
    } catch (thrown) {
      if (signal.aborted) return
      metrics.poll(job.provider, 'failed')
      if (isLate) await this.#timedOut(job, signal)
      else await this.#failed(job, asError(thrown))
      return
    }
    const state = answer.report.state ?? job.state
    metrics.poll(job.provider, state)
    if (isFinal(state)) return this.end(job, answer, signal)
    await this.#provider.results.discard(answer.inline)
    if (isLate) await this.#timedOut(job, signal)
    else await this.#running(job, answer.report)
  }

  /** Ends the job with a final report. If its result cannot be stored now, the job stays for a later poll. */
  async end(job: Job, answer: PollAnswer, signal: Cancellation): Promise<void> {
    const { target, report } = answer
    const state = report.state as FinalState
    if (state !== 'completed') {
      await this.#provider.results.discard(answer.inline)
      await endJob(job, { state, error: errorOf(report, state, target) }, this.#context)
      return
    }
    let result: JobResult
    try {
      result = await this.#resultOf(job, answer, signal)
    } catch (thrown) {
      if (!signal.aborted) await this.#withoutResult(job, asError(thrown), target)
      return
    }
    const life = target.translator.job!.lifeMs
    const expiresAt = report.expiresAt ?? (life === undefined ? undefined : this.#context.now() + life)
    const ending: Ending = {
      state,
      result,
      usage: report.usage,
      expiresAt: result.kind === 'blob' ? undefined : expiresAt,
    }
    let isEnded = false
    try {
      isEnded = await endJob(job, ending, this.#context)
    } finally {
      if (!isEnded) await this.#provider.results.discard(result)
    }
  }

  /** Copied where the provider keeps it for a short time only, or where all are; one in the answer is copied already. */
  async #resultOf(job: Job, { target, report, inline }: PollAnswer, signal: Cancellation): Promise<JobResult> {
    const { results } = this.#context.options()
    const { lifeMs = Number.POSITIVE_INFINITY } = target.translator.job!
    const found = report.result ?? { kind: 'own' }
    if (found.kind === 'inline') {
      if (inline) return inline
      throw errors.invalidAnswer('the result that it names is not in it')
    }
    await this.#provider.results.discard(inline)
    if (results === 'proxy' || (results === 'auto' && lifeMs >= SHORT_LIFE_MS)) return found
    return renewing(job, signal, this.#context, async within => {
      const answer = await this.#provider.open(job, target, found, within)
      try {
        // Without room for it, clients read it from the provider.
        if (answer.status === 200) return (await this.#provider.results.keep(job, answer.chunks)) ?? found
        throw errors.invalidAnswer(`its result answers with status ${answer.status}`, answer.status)
      } finally {
        answer.destroy()
      }
    })
  }

  /** A result that is not there yet, or cannot be read now, is tried again; one of the wrong type ends the job. */
  async #withoutResult(job: Job, error: GatewayError, { credential }: Target): Promise<void> {
    const { now, log, random } = this.#context
    const at = now()
    const failures = job.failures + (isOurs(error) ? 0 : 1)
    const isOver = error.upstreamStatus === 200 || failures >= MAX_FAILURES || at >= job.deadlineAt
    if (!isOver) {
      await this.#move(job, {
        nextAt: at + failureGap(Math.max(1, failures), error.retryAfterMs, random()),
        failures,
        at,
      })
      return
    }
    log.warn({ job: job.id, code: error.code }, 'job result not stored')
    const message = redactMessage(shownMessage(error), credential?.secret)
    await endJob(job, { state: 'failed', error: { code: 'upstream_error', message } }, this.#context)
  }

  async #running(job: Job, { state, progress, afterMs }: JobReport): Promise<void> {
    const { options, now, random } = this.#context
    const at = now()
    const gap = pollGap(options(), at - job.createdAt, afterMs, random())
    const nextAt = Math.min(at + gap, Math.max(job.deadlineAt, at))
    await this.#move(job, { state: state as 'queued' | 'in_progress', progress, nextAt, failures: 0, at })
  }

  async #failed(job: Job, error: GatewayError): Promise<void> {
    const { options, now, random } = this.#context
    const at = now()
    const after = afterFailure(job, error, options(), at, random())
    if ('error' in after) await endJob(job, { state: 'failed', error: after.error }, this.#context)
    else await this.#move(job, { ...after, at })
  }

  /** The request to the provider may take longer than the rest of the lease. */
  async #timedOut(job: Job, signal: Cancellation): Promise<void> {
    await renewing(job, signal, this.#context, within => this.#provider.cancel(job, within)).catch(() => undefined)
    if (signal.aborted) return
    const error = { code: 'timeout', message: 'The job did not end in time.' }
    await endJob(job, { state: 'failed', error }, this.#context)
  }

  async #move(job: Job, moved: Parameters<JobsContext['store']['move']>[2]): Promise<void> {
    const { store, metrics } = this.#context
    if (!(await store.move(job.id, job.fence, moved))) metrics.claimLost()
  }
}

function errorOf({ error }: JobReport, state: FinalState, target: Target): JobError {
  const code = state === 'failed' ? (error?.code === 'content_filter' ? 'content_filter' : 'upstream_error') : state
  if (error === undefined) {
    return { code, message: state === 'failed' ? DEFAULT_MESSAGE : `The provider reports the job as ${state}.` }
  }
  const reported = code === 'content_filter' ? { ...error, code } : error
  const { message } = upstreamError(guessStatus(reported, target), reported, target)
  return { code, message: message.slice(0, MAX_MESSAGE_CHARACTERS) }
}
