/** Records of what happened: jobs, usage, and the audit log. */
import { formatMoney } from '../../core/money.ts'
import { type Job, type JobStore, type UsageQuery, type UsageTotals, usageGroups } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { errors } from '../../lib/error.ts'
import { maskAll } from '../../secrets/known.ts'
import { mapText } from '../../secrets/map-text.ts'
import { keyId, organization, partArguments, partOf, project } from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'
import type { AdminContext } from '../context.ts'

const VIDEO = 'video'
const id = s.string({ minLength: 1, maxLength: 100, description: 'the id of a job, such as "video_…"' })
const event = s.string({ minLength: 1, maxLength: 100, description: 'the id of an event, such as "evt_…"' })
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

async function found(jobs: JobStore, id: string): Promise<Job> {
  const job = await jobs.get(id)
  if (!job || job.deletedAt !== null) throw errors.notFound(`There is no job "${id}".`)
  return job
}

/** `videos.*` and `jobs.*`. */
export const jobCommands: CommandTable = {
  'videos.list': command(
    s.object({ organization: s.optional(organization), project: s.optional(project), limit }),
    async ({ organization, project, limit = DEFAULT_JOBS }, { jobs, names }) => {
      const orgId = organization === undefined ? undefined : await names.organization(organization)
      const projectId = project === undefined ? undefined : await names.project(project)
      return (await jobs.list({ orgId, projectId }, VIDEO, { limit })).map(shownJob)
    },
  ),
  /** → with the signed address of its content; null when there is none. */
  'videos.show': command(s.object({ id }), async ({ id }, { jobs, jobRunner }) => {
    const job = await found(jobs, id)
    const { content = [] } = jobRunner.show(job) as { content?: { url: string }[] }
    return { ...shownJob(job), address: content[0]?.url ?? null }
  }),
  /** → the job after the cancellation. */
  'videos.cancel': command(s.object({ id }), async ({ id }, { jobs, jobRunner }) => {
    const job = await found(jobs, id)
    return shownJob(job.completedAt === null ? await jobRunner.cancel(job) : job)
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

const DAY_MS = 86_400_000
const DEFAULT_DAYS = 30

const date = s.string({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', description: 'a date such as 2026-01-31' })

/** Start of a UTC day in Unix milliseconds. Throws a GatewayError for an impossible date. */
function day(text: string, argument: string): number {
  const at = Date.parse(`${text}T00:00:00Z`)
  if (Number.isNaN(at) || isoDay(at) !== text) throw errors.invalidParameters(`"${text}" is not a date.`, argument)
  return at
}
const isoDay = (at: number): string => new Date(at).toISOString().slice(0, 10)

/** Both days are inclusive. */
function period(from: string | undefined, to: string | undefined): { first: number; last: number } {
  const last = day(to ?? isoDay(Date.now()), 'to')
  const first = from === undefined ? last - (DEFAULT_DAYS - 1) * DAY_MS : day(from, 'from')
  if (first > last) {
    throw errors.invalidParameters(`"from" (${isoDay(first)}) is later than "to" (${isoDay(last)}).`, 'from')
  }
  return { first, last }
}

interface Scope {
  organization?: string | undefined
  project?: string | undefined
  key?: string | undefined
}

/** Throws for an unknown organization, project or key: an empty answer would look like no usage. */
async function scopeOf({ organization, project, key }: Scope, { names }: AdminContext): Promise<Partial<UsageQuery>> {
  return {
    ...(organization !== undefined && { orgId: await names.organization(organization) }),
    ...(project !== undefined && { projectId: await names.project(project) }),
    ...(key !== undefined && { keyId: await names.key(key) }),
  }
}

const shownTotals = <T extends UsageTotals>(totals: T) => ({
  ...totals,
  cost: formatMoney(totals.cost),
  creditsCost: formatMoney(totals.creditsCost),
  byokCost: formatMoney(totals.byokCost),
  storageCost: formatMoney(totals.storageCost),
})

/** `usage` and `usage.check`. */
export const usageCommands: CommandTable = {
  /** → `{from, to, totals, groupBy?, groups?}`; days are UTC and inclusive, cost is in USD. `groups` are paged. */
  usage: command(
    s.object({
      organization: s.optional(organization),
      project: s.optional(project),
      key: s.optional(keyId),
      from: s.optional(date),
      to: s.optional(date),
      groupBy: s.optional(s.enum(...usageGroups)),
      ...partArguments,
    }),
    async ({ from, to, groupBy, limit, offset, ...scope }, context) => {
      const { first, last } = period(from, to)
      const query = { ...(await scopeOf(scope, context)), from: first, to: last + DAY_MS }
      const result = { from: isoDay(first), to: isoDay(last), totals: shownTotals(await context.usage.totals(query)) }
      if (!groupBy) return result
      const groups = await context.usage.breakdown(query, groupBy, ...partOf({ limit, offset }))
      return { ...result, groupBy, groups: groups.map(shownTotals) }
    },
  ),
  /** → `{differences}`: a sentence each; empty when request rows, ledger and aggregates agree. */
  'usage.check': command(s.object({}), async (_, { usage }) => ({ differences: await usage.check() })),
}

const DEFAULT_ENTRIES = 50

/** `audit`. */
export const auditCommands: CommandTable = {
  /**
   * → `{id, at, actor, action, organization, subject, before, after}`, newest first; `beforeId` requests the next page.
   */
  audit: command(
    s.object({
      organization: s.optional(organization),
      limit: s.optional(s.integer({ minimum: 1, maximum: 1000, description: 'a count from 1 to 1000' })),
      beforeId: s.optional(s.integer({ minimum: 1, description: 'the id of an entry' })),
    }),
    async ({ organization, limit = DEFAULT_ENTRIES, beforeId }, { audit }) =>
      mapText(await audit.list({ organization, limit, before: beforeId }), maskAll),
  ),
}
