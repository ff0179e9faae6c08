/** Jobs: running and ended ones, and the delivery of their callbacks. */

import { formatMoney } from '../../core/money.ts'
import type { Job, JobStore } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { errors } from '../../lib/error.ts'
import { organization, project } from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'

const VIDEO = 'video'
const id = s.string({ minLength: 1, maxLength: 100, description: 'the id of a job, such as "video_…"' })
const event = s.string({ minLength: 1, maxLength: 100, description: 'the id of an event, such as "evt_…"' })
const limit = s.optional(s.integer({ minimum: 1, maximum: 1000 }))
const USUAL = 100

/** A job with times in ISO 8601 and amounts as decimal strings in USD. */
export type ShownJob = ReturnType<typeof shown>
/** `address` is signed and reads the video without a key; null while there is none. */
export type ShownVideo = ShownJob & { readonly address: string | null }
/** Omits the prompt, addresses and the secret. */
const shown = (job: Job) => ({
  id: job.id,
  status: job.state,
  progress: job.progress,
  model: job.model,
  provider: job.provider,
  organization: job.orgId,
  project: job.projectId,
  createdAt: new Date(job.createdAt).toISOString(),
  completedAt: job.completedAt === null ? null : new Date(job.completedAt).toISOString(),
  polls: job.attempts,
  failures: job.failures,
  held: job.completedAt === null ? formatMoney(job.hold.amount) : '0',
  cost: job.cost === null ? null : formatMoney(job.cost),
  error: job.error,
})

async function found(jobs: JobStore, id: string): Promise<Job> {
  const job = await jobs.get(id)
  if (!job || job.deletedAt !== null) throw errors.notFound(`There is no job "${id}".`)
  return job
}

/** `videos.*` and `jobs.*`. */
export const jobCommands: CommandTable = {
  'videos.list': command(
    s.object({ organization: s.optional(organization), project: s.optional(project), limit }),
    async ({ organization, project, limit = USUAL }, { jobs, names }) => {
      const orgId = organization === undefined ? undefined : await names.organization(organization)
      const projectId = project === undefined ? undefined : await names.project(project)
      return (await jobs.list({ orgId, projectId }, VIDEO, { limit })).map(shown)
    },
  ),
  /** → with the signed address of its content; null when there is none. */
  'videos.show': command(s.object({ id }), async ({ id }, { jobs, jobRunner }) => {
    const job = await found(jobs, id)
    const { content = [] } = jobRunner.show(job) as { content?: { url: string }[] }
    return { ...shown(job), address: content[0]?.url ?? null }
  }),
  /** → the job after the cancellation. */
  'videos.cancel': command(s.object({ id }), async ({ id }, { jobs, jobRunner }) => {
    const job = await found(jobs, id)
    return shown(job.completedAt === null ? await jobRunner.cancel(job) : job)
  }),
  'jobs.status': command(s.object({}), async (_, { jobs }) => {
    const { oldest, ...status } = await jobs.status(Date.now())
    return { ...status, oldest: oldest === null ? null : new Date(oldest).toISOString() }
  }),
  'jobs.events': command(s.object({ id }), async ({ id }, { jobs }) => {
    const deliveries = await jobs.deliveries((await found(jobs, id)).id)
    return deliveries.map(({ eventId, type, attempt, state, triedAt, status, response, error }) => ({
      ...{ event: eventId, type, attempt, state, status, response, error },
      triedAt: triedAt === null ? null : new Date(triedAt).toISOString(),
    }))
  }),
  /** A secret is erased once its callback was delivered or given up. */
  'jobs.retry-callback': command(s.object({ event }), async ({ event }, { jobs, jobRunner }) => {
    if (!(await jobs.redeliver(event, Date.now()))) {
      throw errors.badRequest(
        `"${event}" cannot be delivered again: the event does not exist, or its secret is erased.`,
      )
    }
    jobRunner.wake()
    return { event }
  }),
}
