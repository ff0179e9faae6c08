/** Asks a provider how a job is, and moves the job by what it says. */
import type { Cancellation } from '../core/cancel.ts'
import { asError, errors, type GatewayError } from '../core/error.ts'
import { type FoundResult, isFinal, type JobReport } from '../core/job.ts'
import type { FinalState, Job, JobError, JobResult } from '../core/ports.ts'
import type { Target } from '../core/translator.ts'
import { redactText } from '../lib/redact.ts'
import { failureGap, pollGap } from './back-off.ts'
import type { JobsContext, OpenAnswer } from './context.ts'
import { type Ending, endJob } from './ending.ts'
import { targetsOf } from './targets.ts'

const MAX_STATE_BYTES = 1024 * 1024
/** Of an answer that holds a result: base64 of a film that fits into memory. */
const MAX_INLINE_BYTES = 48 * 1024 * 1024
const MAX_FAILURES = 5
/** Providers know a job everywhere after this time. */
const UNKNOWN_MS = 60_000
const MAX_UNKNOWN = 3
/** A provider that keeps results for less than this has them copied. */
const SHORT_LIFE_MS = 86_400_000
const DEFAULT_MESSAGE = 'The provider says that the job has failed.'

interface Answer {
  readonly target: Target
  readonly report: JobReport
}

export class Poller {
  readonly #context: JobsContext

  constructor(context: JobsContext) {
    this.#context = context
  }

  /** Of a claimed job, within two thirds of its lease. Never rejects. */
  async poll(job: Job, signal: Cancellation): Promise<void> {
    const { log, metrics } = this.#context
    try {
      await this.#poll(job, signal)
    } catch (err) {
      metrics.poll(job.provider, 'error')
      log.warn({ err, job: job.id }, 'job step failed; retried when the lease ends')
    }
  }

  /** What the provider says now. Throws a GatewayError. */
  async ask(job: Job, signal: Cancellation): Promise<Answer> {
    const targets = await targetsOf(job, this.#context)
    if (targets.length === 0) throw errors.unreachable('the provider of the job is not configured any more')
    let failure: GatewayError | undefined
    for (const target of targets.slice(0, 2)) {
      try {
        return { target, report: await this.#report(job, target, signal) }
      } catch (thrown) {
        failure ??= asError(thrown)
        // Another credential of the same account may do.
        if (failure.upstreamStatus !== 401 && failure.upstreamStatus !== 403) throw thrown
      }
    }
    throw failure
  }

  /** Tells the provider that the job is not wanted any more; false where its wire has no word for that. */
  async cancel(job: Job, signal: Cancellation): Promise<boolean> {
    const [target] = await targetsOf(job, this.#context)
    const form = target?.translator.job
    if (!target || !form?.cancel) return false
    const answer = await this.#call(job, target, form.cancel(upstreamOf(job), target), signal)
    answer.destroy()
    return true
  }

  async #poll(job: Job, signal: Cancellation): Promise<void> {
    const { store, metrics, random } = this.#context
    const options = this.#context.options()
    const isLate = this.#context.now() >= job.deadlineAt
    let answer: Answer
    try {
      answer = await this.ask(job, signal)
    } catch (thrown) {
      if (signal.aborted) return
      metrics.poll(job.provider, 'failed')
      await this.#failed(job, asError(thrown), isLate, signal)
      return
    }
    const { report } = answer
    const state = report.state ?? job.state
    metrics.poll(job.provider, state)
    const now = this.#context.now()
    if (isFinal(state)) {
      await this.end(job, answer, signal)
      return
    }
    if (isLate) {
      await this.#timedOut(job, signal)
      return
    }
    const gap = pollGap(options, now - job.createdAt, report.afterMs, random())
    const nextAt = Math.min(now + gap, Math.max(job.deadlineAt, now))
    const moved = {
      state: report.state as 'queued' | 'in_progress',
      progress: report.progress,
      nextAt,
      failures: 0,
      at: now,
    }
    if (!(await store.move(job.id, job.fence, moved))) metrics.claimLost()
  }

  /** By a report that is final. */
  async end(job: Job, { target, report }: Answer, signal: Cancellation): Promise<boolean> {
    const state = report.state as FinalState
    if (state !== 'completed') return endJob(job, { state, error: errorOf(report, state, target) }, this.#context)
    let result: JobResult
    try {
      result = await this.#resultOf(job, target, report.result ?? { kind: 'own' }, signal)
    } catch (thrown) {
      const { code, message, upstreamStatus } = asError(thrown)
      const isLost = signal.aborted
      if (isLost) return false
      if (upstreamStatus === 0 && job.failures < MAX_FAILURES - 1) throw thrown
      const error = { code: 'upstream_error', message: redactText(message, target.credential?.secret) }
      this.#context.log.warn({ job: job.id, code }, 'job result not stored')
      return endJob(job, { state: 'failed', error }, this.#context)
    }
    const { lifeMs } = target.translator.job!
    const life = lifeMs === undefined ? undefined : this.#context.now() + lifeMs
    const expiresAt = result.kind === 'blob' ? undefined : (report.expiresAt ?? life)
    const ending: Ending = { state, result, usage: report.usage, expiresAt }
    const done = await endJob(job, ending, this.#context)
    if (!done && result.kind === 'blob') await this.#context.blobs.remove(result.blob)
    return done
  }

  async #report(job: Job, target: Target, signal: Cancellation): Promise<JobReport> {
    const form = target.translator.job!
    const answer = await this.#call(job, target, form.poll(upstreamOf(job), target), signal)
    const text = await textOf(answer, form.inlineResults ? MAX_INLINE_BYTES : MAX_STATE_BYTES)
    if (answer.status === 200) return form.read(text, target)
    if (answer.status < 400) throw errors.invalidAnswer(`its status is ${answer.status}`, answer.status)
    const seconds = Number(answer.header('retry-after') ?? Number.NaN)
    const error = target.translator.error(answer.status, text, target).with({ upstreamStatus: answer.status })
    throw Number.isFinite(seconds) ? error.with({ retryAfterMs: seconds * 1000 }) : error
  }

  #call(job: Job, target: Target, request: Parameters<JobsContext['caller']['own']>[1], signal: Cancellation) {
    const ms = Math.floor((this.#context.options().lease * 2) / 3)
    const options = { requestId: job.requestId, tenant: job.orgId, signal, headMs: ms, idleMs: ms }
    return this.#context.caller.own(target, request, options)
  }

  /** Kept where the provider would not keep it, or where all are; bytes are kept in any case. */
  async #resultOf(job: Job, target: Target, found: FoundResult, signal: Cancellation): Promise<JobResult> {
    const { results } = this.#context.options()
    const { lifeMs = Number.POSITIVE_INFINITY } = target.translator.job!
    if (found.kind !== 'bytes' && (results === 'proxy' || (results === 'auto' && lifeMs >= SHORT_LIFE_MS))) return found
    const chunks = found.kind === 'bytes' ? once(found.bytes) : await this.#chunksOf(job, target, found, signal)
    const lease = setInterval(() => void this.#renew(job, signal), this.#context.options().lease / 3)
    try {
      const { max_result: most } = this.#context.options()
      const tooLarge = () => errors.invalidAnswer(`its result is larger than ${most} bytes`)
      const { blob, bytes, etag, head } = await this.#context.blobs.write(chunks, most, tooLarge)
      const type = this.#context.kinds.get(job.kind)!.resultType(head)
      if (type !== undefined) return { kind: 'blob', blob, bytes, etag, type }
      await this.#context.blobs.remove(blob)
      throw errors.invalidAnswer('its result is not of the type that was asked for')
    } finally {
      clearInterval(lease)
    }
  }

  async #chunksOf(job: Job, target: Target, found: Exclude<FoundResult, { kind: 'bytes' }>, signal: Cancellation) {
    const answer = await openResult(job, target, found, this.#context, signal)
    if (answer.status === 200) return answer.chunks
    answer.destroy()
    throw errors.invalidAnswer(`its result answers with status ${answer.status}`, answer.status)
  }

  async #renew(job: Job, signal: Cancellation): Promise<void> {
    const { store, options, now } = this.#context
    const isOurs = await store.renew(job.id, job.fence, now() + options().lease).catch(() => true)
    if (!isOurs) signal.abort(errors.aborted())
  }

  async #failed(job: Job, error: GatewayError, isLate: boolean, signal: Cancellation): Promise<void> {
    const { store, metrics, random } = this.#context
    const now = this.#context.now()
    if (isLate) return this.#timedOut(job, signal)
    const { upstreamStatus: status = 0 } = error
    const isUnknown = status === 404
    if (isUnknown && now - job.createdAt < UNKNOWN_MS) {
      const nextAt = now + pollGap(this.#context.options(), 0, undefined, random())
      await store.move(job.id, job.fence, { nextAt, failures: 0, at: now })
      return
    }
    const isThrottled = status === 429 || status === 503
    const failures = job.failures + (isThrottled ? 0 : 1)
    if (failures >= (isUnknown ? MAX_UNKNOWN : MAX_FAILURES)) {
      const last_error = redactText(error.message).slice(0, 500)
      const details = { reason: 'poll_error_limit', error_count: failures, last_error }
      const message = 'The provider could not be asked how the job is.'
      await endJob(job, { state: 'failed', error: { code: 'poll_error', message, details } }, this.#context)
      return
    }
    const nextAt = Math.min(now + failureGap(Math.max(1, failures), error.retryAfterMs, random()), job.deadlineAt)
    const isMoved = await store.move(job.id, job.fence, { nextAt: Math.max(nextAt, now + 1), failures, at: now })
    if (!isMoved) metrics.claimLost()
  }

  async #timedOut(job: Job, signal: Cancellation): Promise<void> {
    await this.cancel(job, signal).catch(() => undefined)
    const error = { code: 'timeout', message: 'The job did not end in time.' }
    await endJob(job, { state: 'failed', error }, this.#context)
  }
}

const HEAD_MS = 30_000
const IDLE_MS = 60_000

/** Opens the result of a job at its provider. */
export function openResult(
  job: Job,
  target: Target,
  found: Exclude<FoundResult, { kind: 'bytes' }>,
  { caller }: JobsContext,
  signal: Cancellation,
  headers: Readonly<Record<string, string>> = {},
): Promise<OpenAnswer> {
  const options = { requestId: job.requestId, tenant: job.orgId, signal, headers, headMs: HEAD_MS, idleMs: IDLE_MS }
  if (found.kind === 'url') return caller.at(target, found.url, options)
  const request = target.translator.job!.result?.(upstreamOf(job), target)
  if (!request) throw errors.invalidAnswer('it names no result')
  return caller.own(target, request, options)
}

export const upstreamOf = ({ upstreamId, params }: Job) => ({
  upstreamId: upstreamId ?? '',
  params: JSON.parse(params) as unknown,
})

function errorOf({ error }: JobReport, state: FinalState, { credential }: Target): JobError {
  const code = state === 'failed' ? (error?.code === 'content_filter' ? 'content_filter' : 'upstream_error') : state
  const said = error?.message ?? (state === 'failed' ? DEFAULT_MESSAGE : `The provider says that the job is ${state}.`)
  return { code, message: redactText(said, credential?.secret).slice(0, 1000) }
}

async function textOf(answer: OpenAnswer, most: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of answer.chunks) {
      size += chunk.length
      if (size > most) throw errors.invalidAnswer(`it is larger than ${most} bytes`)
      chunks.push(chunk)
    }
  } finally {
    answer.destroy()
  }
  return Buffer.concat(chunks).toString('utf8')
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}
