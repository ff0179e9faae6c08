/** Admits work that outlives its request: a row and a hold before the provider is called, its id there after that. */

import type { Event } from '../../core/event.ts'
import type { Exchange } from '../../core/exchange.ts'
import { credentialName, type JobOperation } from '../../core/job.ts'
import { writtenPrice } from '../../core/money.ts'
import type { Op, Ops } from '../../core/ops.ts'
import { NO_LABELS } from '../../core/policy.ts'
import type { HoldRequest, Job, JobTarget, NewJob, Services } from '../../core/ports.ts'
import { only, type Reply } from '../../core/reply.ts'
import { jsonHash } from '../../json/lossless.ts'
import { Upload } from '../../lib/body.ts'
import { asError, errors, type GatewayError } from '../../lib/error.ts'
import { base62, shortId } from '../../lib/id.ts'
import { persistently } from '../../lib/persistently.ts'
import { scheduler } from '../../limits/scheduler.ts'
import { endUserOf } from '../../policy/owner.ts'
import { sourceOf } from '../source.ts'
import { atLimit, tellPassed } from './at-limit.ts'
import { exhaustedError } from './funding.ts'
import { tagsOf } from './row.ts'

const ID_CHARACTERS = 24
const IDEMPOTENCY = /^[\x21-\x7e]{1,128}$/
/** For so many milliseconds a failing write of a started job is repeated. */
const START_MS = 20_000
const PROVIDER_LOST = {
  code: 'interrupted',
  message: 'The connection to the provider was lost while the job was being created.',
}

/** Jobs by their exchanges: all attempts of one make one job. */
export class JobAdmission {
  readonly #services: Services
  readonly #made = new WeakMap<Exchange, Pick<NewJob, 'id' | 'requestHash'>>()
  readonly #accepted = new WeakSet<Exchange>()

  constructor(services: Services) {
    this.#services = services
  }

  /** Whether this exchange has a job: its request row is written when the job ends. */
  has(ex: Exchange): boolean {
    return this.#accepted.has(ex)
  }

  async handle(ex: Exchange, wanted: HoldRequest, next: () => Promise<Reply>): Promise<Reply> {
    const { jobs, jobRunner } = this.#services
    const operation = ex.operation.job!
    // The row of a job and its result are stored.
    if (ex.caller.policy?.keepsReplies === false) {
      throw errors.forbidden('The organization has zero data retention, but this endpoint stores its results.')
    }
    const job = await this.#jobFor(ex, operation)
    const begun = await jobs.begin(job, targetOf(ex), { ...wanted, least: undefined })
    if ('existing' in begun) return this.#replay(ex, begun.existing, job)
    if ('exhausted' in begun) {
      const instead = atLimit(ex, wanted, begun, this.#services)
      if (instead) return this.handle(ex, instead, next)
      throw exhaustedError(begun, wanted.amount)
    }
    if (begun.passed) tellPassed(ex, wanted.principal, begun.passed, this.#services)
    let started: Job
    try {
      started = await this.#started(job.id, await next())
    } catch (thrown) {
      throw await this.#failed(job.id, operation, asError(thrown))
    }
    this.#accepted.add(ex)
    jobRunner.wake()
    return { status: 200, headers: [], events: only({ type: 'result', value: jobRunner.show(started) }) }
  }

  async #jobFor(ex: Exchange, operation: JobOperation<Ops[Op]>): Promise<NewJob> {
    const { jobRunner, now } = this.#services
    const request = ex.request!
    const endUser = endUserOf(ex.caller.principal!)
    const callback = operation.callback(request)
    if (callback) jobRunner.checkCallback(callback.url)
    const idempotency = ex.header('idempotency-key') ?? null
    if (idempotency !== null && !IDEMPOTENCY.test(idempotency)) {
      throw errors.invalidField('idempotency-key', 'expected 1 to 128 visible ASCII characters')
    }
    const made = this.#made.get(ex) ?? {
      id: operation.prefix + base62(ID_CHARACTERS),
      requestHash: idempotency === null ? null : await hashOf(ex.requested.written ?? request, ex.caller.tenant),
    }
    this.#made.set(ex, made)
    const createdAt = now()
    return {
      id: made.id,
      kind: operation.kind,
      source: sourceOf(ex),
      session: endUser ?? null,
      labels:
        ex.caller.labels === NO_LABELS
          ? undefined
          : { endUser: ex.caller.labels.endUser, tags: tagsOf(ex.caller.labels.tags) },
      params: JSON.stringify(operation.params(request, ex.target!)),
      // A key holds no space: those of one end user are no other one's, and none of the project's.
      idempotency: idempotency !== null && endUser !== undefined ? `${endUser} ${idempotency}` : idempotency,
      requestHash: made.requestHash,
      callback,
      createdAt,
      deadlineAt: createdAt + jobRunner.timeoutMs,
    }
  }

  #replay(ex: Exchange, existing: Job, { requestHash }: NewJob): Reply {
    if (existing.requestHash !== requestHash) throw errors.idempotencyKeyReused()
    if (existing.state === 'creating') throw errors.idempotencyKeyInUse()
    this.#accepted.add(ex)
    const events = only({ type: 'result' as const, value: this.#services.jobRunner.show(existing) })
    return { status: 200, headers: ['x-gateway-replayed', 'true'], events }
  }

  async #started(id: string, reply: Reply): Promise<Job> {
    const { jobs, jobRunner, now } = this.#services
    let reported: Extract<Event, { type: 'job' }> | undefined
    for await (const batch of reply.events) {
      for (const event of batch) {
        if (event.type === 'error') throw event.error
        if (event.type === 'job') reported = event
      }
    }
    if (!reported) throw errors.invalidAnswer('it names no job')
    const { upstreamId, state, progress = null } = reported
    const begun = { upstreamId, state, progress, nextAt: jobRunner.firstPoll(now()) }
    const started = await persistently(() => jobs.start(id, begun), START_MS).catch((thrown: unknown) => {
      // The provider has the job: no other one may be called.
      throw asError(thrown).with({ sent: true })
    })
    if (!started) throw errors.internal(new Error(`the job ${id} was failed as lost while it was being created`))
    return started
  }

  /** Once the provider may have begun, no other provider is called. */
  async #failed(id: string, operation: JobOperation<Ops[Op]>, error: GatewayError): Promise<GatewayError> {
    const { jobs, now } = this.#services
    if (!error.sent) {
      await jobs.drop(id)
      return error
    }
    await jobs.interrupt(id, PROVIDER_LOST, { id: `evt_${shortId()}`, type: operation.event('failed') }, now())
    return error.with({ failover: false, stale: false })
  }
}

function targetOf({ target }: Exchange): JobTarget {
  const { mapping, provider, credential, translator, price, region } = target!
  return {
    mapping: mapping.externalId,
    region: region ?? null,
    credential: credentialName(credential),
    wire: translator.wire,
    owner: provider.owner ?? null,
    price: writtenPrice(price),
    discount: price?.discount ?? 0,
  }
}

/** SHA-256 of the canonical request; files count by theirs. */
async function hashOf(request: Readonly<Ops[Op]>, tenant: string): Promise<string> {
  for (const upload of uploadsIn(request)) await scheduler.run(tenant, () => upload.hash())
  const hash = await scheduler.run(tenant, () => jsonHash(request))
  return hash.digest('hex')
}

function uploadsIn(value: unknown): Upload[] {
  if (value instanceof Upload) return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(uploadsIn)
}
