/** Requests to the providers of jobs: polls, cancels and results. */

import type { Cancellation } from '../core/cancel.ts'
import type { Job, JobAnswer, JobResult } from '../core/ports.ts'
import type { Target } from '../core/translator.ts'
import type { FoundResult, JobReport, WireRequest } from '../core/wire.ts'
import { checkAnswer, STATE_BOUNDS } from '../json/answer-bounds.ts'
import { ByteBuffer } from '../lib/byte-buffer.ts'
import { asAnswerError, asError, errors, type GatewayError } from '../lib/error.ts'
import { scheduler } from '../limits/scheduler.ts'
import { blamesCredential, MAX_ERROR_BYTES, upstreamErrorOf } from '../wire/upstream-error.ts'
import type { JobsContext } from './context.ts'
import { pollMs, renewing, within } from './lease.ts'
import { ResultKeeper } from './results.ts'
import { targetsOf } from './targets.ts'

const MAX_STATE_BYTES = 1024 * 1024
/** Characters of a job's error that are read; fewer are shown. */
const MAX_MESSAGE_CHARACTERS = 4000
const HEAD_MS = 30_000
const IDLE_MS = 60_000

/** Result of a poll, with the target that answered. */
export interface PollAnswer {
  readonly target: Target
  readonly report: JobReport
  /** The result contained in the answer. The receiver removes it when no row names it. */
  readonly inline?: Extract<JobResult, { kind: 'blob' }> | undefined
}

/** `refused`: the provider goes on with the job. `unknown`: its wire has no request for it. */
type Canceled = 'agreed' | 'refused' | 'unknown'

/** Calls the provider that has a job, with the credential of its creation first. */
export class JobProvider {
  readonly #context: JobsContext
  readonly results: ResultKeeper

  constructor(context: JobsContext) {
    this.#context = context
    this.results = new ResultKeeper(context)
  }

  /** Polls the provider of a claimed job. Throws a GatewayError. */
  async poll(job: Job, parent: Cancellation): Promise<PollAnswer> {
    const isLong = this.#context.wires.get(job.wire)?.job?.inlineResult !== undefined
    const poll = (signal: Cancellation) => this.#pollTargets(job, signal)
    if (isLong) return renewing(job, parent, this.#context, poll)
    return within(pollMs(this.#context), parent, errors.upstreamTimeout('its answer takes too long'), poll)
  }

  async #pollTargets(job: Job, signal: Cancellation): Promise<PollAnswer> {
    const targets = await targetsOf(job, this.#context)
    if (targets.length === 0) {
      const missing = errors.unreachable('the provider of the job is not configured any more')
      // It is no failure of the provider: another node may have a configuration that names it.
      throw missing.with({ upstreamStatus: undefined })
    }
    let failure: GatewayError | undefined
    for (const target of targets.slice(0, 2)) {
      try {
        const answer = await this.#report(job, target, signal)
        this.#context.health.polled(target, job.orgId)
        return answer
      } catch (thrown) {
        const error = asError(thrown)
        // An answer with a result in it may be no more than too large for what its organization may keep.
        const holdsResult = error.upstreamStatus === 200 && target.translator.job!.inlineResult !== undefined
        if (!holdsResult) this.#context.health.polled(target, job.orgId, error)
        failure ??= error
        // Another credential of the same account may be accepted.
        if (!blamesCredential(failure.code)) throw thrown
      }
    }
    throw failure
  }

  /** Throws a GatewayError where no answer came. */
  async cancel(job: Job, parent: Cancellation): Promise<Canceled> {
    const [target] = await targetsOf(job, this.#context)
    const form = target?.translator.job
    if (!target || !form?.cancel) return 'unknown'
    const request = form.cancel(upstreamOf(job), target)
    const late = errors.upstreamTimeout('the job could not be canceled in time')
    return within(pollMs(this.#context), parent, late, async signal => {
      const answer = await this.#call(job, target, request, signal)
      answer.destroy()
      return answer.status < 300 || answer.status === 404 || answer.status === 410 ? 'agreed' : 'refused'
    })
  }

  /** Opens the result of a job, whatever the status of the answer is. */
  async open(
    job: Job,
    target: Target,
    found: Extract<FoundResult, { kind: 'url' | 'own' }>,
    signal: Cancellation,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<JobAnswer> {
    const { caller } = this.#context
    const options = { requestId: job.requestId, tenant: job.orgId, signal, headers, headMs: HEAD_MS, idleMs: IDLE_MS }
    if (found.kind === 'url') return caller.at(target, found.url, options)
    const request = target.translator.job!.result?.(upstreamOf(job), target)
    if (!request) throw errors.invalidAnswer('it names no result')
    return caller.own(target, request, options)
  }

  async #report(job: Job, target: Target, signal: Cancellation): Promise<PollAnswer> {
    const form = target.translator.job!
    const answer = await this.#call(job, target, form.poll(upstreamOf(job), target), signal)
    try {
      if (answer.status !== 200) throw await failureOf(answer, target)
      const { inlineResult: name } = form
      if (name === undefined) return { target, report: await reportIn(await stateOf(answer), job, target, answer) }
      const { kept, blob } = await this.results.readInline(job, answer.chunks, name, MAX_STATE_BYTES)
      try {
        return { target, report: await reportIn(kept, job, target, answer), inline: blob }
      } catch (thrown) {
        await this.results.discard(blob)
        throw thrown
      }
    } finally {
      answer.destroy()
    }
  }

  #call(job: Job, target: Target, request: WireRequest, signal: Cancellation): Promise<JobAnswer> {
    const ms = pollMs(this.#context)
    const options = { requestId: job.requestId, tenant: job.orgId, signal, headMs: ms, idleMs: ms }
    return this.#context.caller.own(target, request, options)
  }
}

const upstreamOf = ({ upstreamId, params }: Job) => ({
  upstreamId: upstreamId ?? '',
  params: JSON.parse(params) as unknown,
})

/** Reads the state of a job. Fails with a GatewayError where it cannot be read. */
const reportIn = (state: Buffer, { orgId }: Job, target: Target, answer: JobAnswer): JobReport | Promise<JobReport> =>
  scheduler.run(orgId, () => report(state, target, answer))

function report(state: Buffer, target: Target, answer: JobAnswer): JobReport {
  try {
    const text = state.toString('utf8')
    checkAnswer(text, STATE_BOUNDS)
    const report = target.translator.job!.read(text, target)
    if (!report.error) return report
    const said = report.error.message.slice(0, MAX_MESSAGE_CHARACTERS)
    return { ...report, error: { ...report.error, message: answer.masked?.(said) ?? said } }
  } catch (thrown) {
    throw withoutCredential(asAnswerError(thrown), answer)
  }
}

const withoutCredential = (error: GatewayError, { masked }: JobAnswer): GatewayError =>
  masked ? error.with({ message: masked(error.message), detail: error.detail && masked(error.detail) }) : error

async function failureOf(answer: JobAnswer, target: Target): Promise<GatewayError> {
  const { status } = answer
  if (status < 400) return errors.invalidAnswer(`its status is ${status}`, status)
  const seconds = Number(answer.header('retry-after') ?? Number.NaN)
  const body = await bytesOf(answer, MAX_ERROR_BYTES)
  const reported = upstreamErrorOf(target, status, body)
  const error = withoutCredential(reported.with({ upstreamStatus: status }), answer)
  return Number.isFinite(seconds) ? error.with({ retryAfterMs: seconds * 1000 }) : error
}

async function stateOf(answer: JobAnswer): Promise<Buffer> {
  const state = await bytesOf(answer, MAX_STATE_BYTES)
  if (state.length > MAX_STATE_BYTES) throw errors.invalidAnswer(`it is larger than ${MAX_STATE_BYTES} bytes`)
  return state
}

/** All bytes of an answer, or more than `most` of one that has more. */
async function bytesOf(answer: JobAnswer, most: number): Promise<Buffer> {
  const kept = new ByteBuffer()
  for await (const chunk of answer.chunks) {
    kept.add(chunk)
    if (kept.size > most) break
  }
  return kept.take()
}
