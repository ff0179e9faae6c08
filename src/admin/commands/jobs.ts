/** Jobs, and videos among them. */
import { formatMoney } from '../../core/money.ts'
import type { Delivery, Job, JobStore } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { errors } from '../../lib/error.ts'
import { ofOrganization, ofProject, scopeOf } from '../arguments.ts'
import { type CommandTable, command, facts, rows, shell } from '../command.ts'

const VIDEO = 'video'
const id = s.string({ minLength: 1, maxLength: 100, description: 'the id of a job, such as "video_…"' })
const video = shell('<id>: id of the video: video_…', id)
const event = shell(
  '<event>: id of the event: evt_…',
  s.string({ minLength: 1, maxLength: 100, description: 'the id of an event, such as "evt_…"' }),
)
const limit = s.optional(s.integer({ minimum: 1, maximum: 1000 }))
const DEFAULT_JOBS = 100

/** A job with times in ISO 8601 and amounts as decimal strings in USD. */
export type ShownJob = ReturnType<typeof shownJob>
/** `address` is signed and reads the video without a key; null while there is none. */
export type ShownVideo = ShownJob & { readonly address: string | null }
/** Omits the prompt, addresses and the secret. */
const shownJob = (job: Job) => ({
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

/** A delivery of a callback, with its time in ISO 8601. */
export type ShownDelivery = ReturnType<typeof shownDelivery>
const shownDelivery = ({ eventId, type, attempt, state, triedAt, status, response, error }: Delivery) => ({
  ...{ event: eventId, type, attempt, state, status, response, error },
  triedAt: triedAt === null ? null : new Date(triedAt).toISOString(),
})

/** Counts of jobs and callbacks, with the time of the oldest job in ISO 8601. */
export type ShownCounts = Awaited<ReturnType<typeof countsIn>>
async function countsIn(jobs: JobStore) {
  const { oldest, ...status } = await jobs.status(Date.now())
  return { ...status, oldest: oldest === null ? null : new Date(oldest).toISOString() }
}

async function found(jobs: JobStore, id: string): Promise<Job> {
  const job = await jobs.get(id)
  if (!job || job.deletedAt !== null) throw errors.notFound(`There is no job "${id}".`)
  return job
}

const showJobs = rows<ShownJob>('id, status, progress, model, provider, created, cost USD', one => {
  return [one.id, one.status, one.progress, one.model, one.provider, one.createdAt.slice(0, 19), one.cost]
})

const counts = (all: Readonly<Record<string, number>>): string =>
  Object.entries(all)
    .map(([name, count]) => `${count} ${name}`)
    .join(', ') || 'none'

/** `videos.*` and `jobs.*`. */
export const jobCommands: CommandTable = {
  'videos.list': command(
    s.object({ organization: ofOrganization, project: ofProject, limit }),
    async ({ limit = DEFAULT_JOBS, ...scope }, { jobs, names }) =>
      (await jobs.list(await scopeOf(scope, names), VIDEO, { limit })).map(shownJob),
    'list videos, newest first',
    showJobs,
  ),
  /** → with the signed address of its content; null when there is none. */
  'videos.show': command(
    s.object({ id: video }),
    async ({ id }, { jobs, jobRunner }): Promise<ShownVideo> => {
      const job = await found(jobs, id)
      const { content = [] } = jobRunner.show(job) as { content?: { url: string }[] }
      return { ...shownJob(job), address: content[0]?.url ?? null }
    },
    'show a video',
    showJobs,
  ),
  /** → the job after the cancellation. */
  'videos.cancel': command(
    s.object({ id: video }),
    async ({ id }, { jobs, jobRunner }) => {
      const job = await found(jobs, id)
      return shownJob(job.completedAt === null ? await jobRunner.cancel(job) : job)
    },
    'cancel a running video',
    showJobs,
  ),
  'jobs.status': command(
    s.object({}),
    (_, { jobs }) => countsIn(jobs),
    'list running and due jobs and their processes',
    ({ running, due, leased, oldest, callbacks }) =>
      facts([
        ['running', counts(running)],
        ['due', due],
        ['leased', counts(leased)],
        ['oldest', oldest ?? 'none'],
        ['callbacks pending', callbacks],
      ]),
  ),
  'jobs.events': command(
    s.object({ id: shell('<id>: id of the job', id) }),
    async ({ id }, { jobs }) => (await jobs.deliveries((await found(jobs, id)).id)).map(shownDelivery),
    'list callback deliveries of a job and their results',
    rows('event, attempt, state, status, error', one => [one.event, one.attempt, one.state, one.status, one.error]),
  ),
  /** A secret is erased once its callback was delivered or given up. */
  'jobs.retry-callback': command(
    s.object({ event }),
    async ({ event }, { jobs, jobRunner }) => {
      if (!(await jobs.redeliver(event, Date.now()))) {
        throw errors.badRequest(
          `"${event}" cannot be delivered again: the event does not exist, or its secret is erased.`,
        )
      }
      jobRunner.wake()
      return { event }
    },
    'deliver a callback now',
    ({ event }) => `${event}\n`,
  ),
}
