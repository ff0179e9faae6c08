/** `gatewayctl videos`, `jobs`, `usage` and `audit`: records of what happened. */
import type { Command } from 'commander'
import type { ShownJob } from '../admin/commands/records.ts'
import type { AuditEntry, UsageTotals } from '../core/ports.ts'
import { adder, joinParts, PART } from './adder.ts'
import type { Open } from './session.ts'
import { facts, table } from './table.ts'

interface JobCounts {
  readonly running: Readonly<Record<string, number>>
  readonly due: number
  readonly leased: Readonly<Record<string, number>>
  readonly oldest: string | null
  readonly callbacks: number
}
interface ShownDelivery {
  readonly event: string
  readonly attempt: number
  readonly state: string
  readonly status: number | null
  readonly error: string | null
}

const showJobs = (jobs: readonly ShownJob[]): string =>
  table(
    ['id', 'status', 'progress', 'model', 'provider', 'created', 'cost USD'],
    jobs.map(one => [one.id, one.status, one.progress, one.model, one.provider, one.createdAt.slice(0, 19), one.cost]),
  )
const counts = (all: Readonly<Record<string, number>>): string =>
  Object.entries(all)
    .map(([name, count]) => `${count} ${name}`)
    .join(', ') || 'none'

const showCounts = ({ running, due, leased, oldest, callbacks }: JobCounts): string =>
  facts([
    ['running', counts(running)],
    ['due', due],
    ['leased', counts(leased)],
    ['oldest', oldest ?? 'none'],
    ['callbacks pending', callbacks],
  ])
const showDeliveries = (deliveries: readonly ShownDelivery[]): string =>
  table(
    ['event', 'attempt', 'state', 'status', 'error'],
    deliveries.map(({ event, attempt, state, status, error }) => [event, attempt, state, status, error]),
  )

/** Adds `videos` and `jobs`; `video`, which makes one, is in `video.ts`. */
export function addJobs(program: Command, open: Open): void {
  const add = adder(program.command('videos').description('videos'), 'videos', open)
  const one = (job: ShownJob) => showJobs([job])
  const video = { id: '<id>: id of the video: video_…' }
  const event = { event: '<event>: id of the event: evt_…' }
  const delivered = (one: { event: string }) => `${one.event}\n`
  add(
    'list',
    'list videos, newest first',
    {
      organization: '--org <org>: only those of this organization',
      project: '--project <project>: only those of this project',
    },
    showJobs,
  )
  add('show', 'show a video', video, one)
  add('cancel', 'cancel a running video', video, one)
  add('redeliver', 'deliver a callback now', event, delivered, { calls: 'jobs.retry-callback' })

  const addToJobs = adder(program.command('jobs').description('asynchronous jobs'), 'jobs', open)
  addToJobs('status', 'list running and due jobs and their processes', {}, showCounts)
  const deliveries = 'list callback deliveries of a job and their results'
  addToJobs('events', deliveries, { id: '<id>: id of the job' }, showDeliveries)
  addToJobs('retry-callback', 'deliver a callback now', event, delivered)
}

type Amount = 'cost' | 'creditsCost' | 'byokCost' | 'storageCost'
type Totals = Omit<UsageTotals, Amount> & Readonly<Record<Amount, string>>
type Group = Totals & { readonly id: string; readonly name?: string }
interface Usage {
  readonly from: string
  readonly to: string
  readonly totals: Totals
  readonly groupBy?: string
  readonly groups?: readonly Group[]
}

function showUsage({ from, to, totals, groupBy, groups }: Usage): string {
  const summary = facts([
    ['days', `${from} to ${to} (UTC)`],
    ['requests', `${totals.requests} (${totals.errors} failed, ${totals.cached} from cache)`],
    ['input tokens', `${totals.inputTokens} (${totals.cachedTokens} cached)`],
    ['output tokens', `${totals.outputTokens} (${totals.reasoningTokens} reasoning)`],
    ['cost USD', `${totals.cost} (${totals.creditsCost} of credits, ${totals.byokCost} through own provider keys)`],
    ['storage USD', totals.storageCost],
  ])
  if (!groups) return summary
  const isNamed = groups.some(({ name }) => name !== undefined)
  const rows = groups.map(({ id, name, requests, errors, inputTokens, outputTokens, cost }) => {
    return [id, ...(isNamed ? [name] : []), requests, errors, inputTokens, outputTokens, cost]
  })
  return `${summary}\n${table([groupBy ?? '', ...(isNamed ? ['name'] : []), 'requests', 'failed', 'input', 'output', 'cost USD'], rows)}`
}

/** Adds `usage` and `usage check`. */
export function addUsage(program: Command, open: Open): void {
  const usage = adder(program, '', open)<Usage>(
    'usage',
    'show requests, tokens and cost (default: the last 30 days)',
    {
      organization: '--org <org>: only this organization',
      project: '--project <project>: only this project',
      key: '--key <id>: only this key',
      from: '--from <date>: first day, YYYY-MM-DD (UTC)',
      to: '--to <date>: last day, YYYY-MM-DD (UTC)',
      groupBy: '--group-by <what>: group by',
    },
    showUsage,
    {
      async call({ admin }, args) {
        let first: Usage | undefined
        const groups = await joinParts<Group>(async found => {
          const answer = await admin.command<Usage>('usage', { ...args, limit: PART, offset: found.length })
          first ??= answer
          return answer.groups ?? []
        })
        return { ...first!, ...(first!.groups && { groups }) }
      },
    },
  )
  const found = ({ differences }: { differences: string[] }) => `${differences.join('\n') || 'no differences'}\n`
  adder(usage, 'usage', open)('check', 'compare request rows, ledger and totals', {}, found)
}

type Facts = Readonly<Record<string, unknown>>

const isFacts = (value: unknown): value is Facts => typeof value === 'object' && value !== null

/** Changed fields: `name: a → b`. */
function differences({ before, after }: AuditEntry): string {
  const was: Facts = isFacts(before) ? before : {}
  const became: Facts = isFacts(after) ? after : {}
  const show = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value ?? null))
  return [...new Set([...Object.keys(was), ...Object.keys(became)])]
    .filter(name => show(was[name]) !== show(became[name]))
    .map(name =>
      isFacts(before) ? `${name}: ${show(was[name])} → ${show(became[name])}` : `${name}: ${show(became[name])}`,
    )
    .join(', ')
}

const showEntries = (entries: readonly AuditEntry[]): string =>
  table(
    ['id', 'at', 'who', 'what', 'organization', 'subject', 'change'],
    entries.map(entry => {
      const { id, at, actor, action, organization, subject } = entry
      return [id, at.slice(0, 19), actor, action, organization, subject, differences(entry)]
    }),
  )

/** Adds `audit`. */
export function addAudit(program: Command, open: Open): void {
  adder(program, '', open)(
    'audit',
    'list changes and who made them, newest first',
    {
      organization: '--org <org>: only changes of this organization',
      limit: '--limit <count>: number of entries (default: 50)',
      beforeId: '--before <id>: only entries older than this one',
    },
    showEntries,
  )
}
