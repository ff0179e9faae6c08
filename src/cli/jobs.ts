/** `gatewayctl videos` and `jobs`. */
import type { Command } from 'commander'
import type { ShownJob } from '../admin/commands/jobs.ts'
import type { Open } from './session.ts'
import { facts, table } from './table.ts'

interface Status {
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

/** Adds `videos` and `jobs`; `video`, which makes one, is in `video.ts`. */
export function addJobs(program: Command, open: Open): void {
  const videos = program.command('videos').description('videos')
  videos
    .command('list')
    .description('list videos, newest first')
    .option('--org <org>', 'only those of this organization')
    .option('--project <project>', 'only those of this project')
    .action(async ({ org: organization, project }, command) => {
      const { admin, print } = open(command)
      print(await admin.command<ShownJob[]>('videos.list', { organization, project }), showJobs)
    })
  for (const [name, description] of [
    ['show', 'show a video'],
    ['cancel', 'cancel a running video'],
  ] as const) {
    videos
      .command(name)
      .description(description)
      .argument('<id>', 'id of the video: video_…')
      .action(async (id: string, _, command) => {
        const { admin, print } = open(command)
        print(await admin.command<ShownJob>(`videos.${name}`, { id }), one => showJobs([one]))
      })
  }

  const jobs = program.command('jobs').description('asynchronous jobs')
  jobs
    .command('status')
    .description('list running and due jobs and their processes')
    .action(async (_, command) => {
      const { admin, print } = open(command)
      print(await admin.command<Status>('jobs.status'), ({ running, due, leased, oldest, callbacks }) =>
        facts([
          ['running', counts(running)],
          ['due', due],
          ['leased', counts(leased)],
          ['oldest', oldest ?? 'none'],
          ['callbacks pending', callbacks],
        ]),
      )
    })
  jobs
    .command('events')
    .description('list callback deliveries of a job and their results')
    .argument('<id>', 'id of the job')
    .action(async (id: string, _, command) => {
      const { admin, print } = open(command)
      print(await admin.command<ShownDelivery[]>('jobs.events', { id }), all =>
        table(
          ['event', 'attempt', 'state', 'status', 'error'],
          all.map(({ event, attempt, state, status, error }) => [event, attempt, state, status, error]),
        ),
      )
    })
  for (const [parent, name] of [
    [jobs, 'retry-callback'],
    [videos, 'redeliver'],
  ] as const) {
    parent
      .command(name)
      .description('deliver a callback now')
      .argument('<event>', 'id of the event: evt_…')
      .action(async (event: string, _, command) => {
        const { admin, print } = open(command)
        print(await admin.command<{ event: string }>('jobs.retry-callback', { event }), one => `${one.event}\n`)
      })
  }
}
