/** Jobs: what runs, videos, and the callbacks of one job. */
import type { ShownCounts, ShownDelivery, ShownJob } from '../../admin/commands/jobs.ts'
import { count, time, usd } from '../format.ts'
import { type Html, html, link } from '../html.ts'
import { type Content, facts, mark, run, table, type Visit } from '../layout.ts'

const VIDEOS = 100

const counts = (all: Readonly<Record<string, number>>): string =>
  Object.entries(all)
    .map(([name, number]) => `${count(number)} ${name}`)
    .join(', ') || 'none'

const stateMark = (status: string): Html =>
  mark(status === 'completed' ? 'good' : status === 'failed' ? 'bad' : 'plain', status)

/** Lists the newest videos, and what is due. */
export async function jobs({ context }: Visit): Promise<Content> {
  const { running, due, leased, oldest, callbacks } = await run<ShownCounts>(context, 'jobs.status')
  const videos = await run<readonly ShownJob[]>(context, 'videos.list', { limit: VIDEOS })
  return {
    title: 'Jobs',
    body: html`${facts([
      ['Running', counts(running)],
      ['Due', due],
      ['Taken by', counts(leased)],
      ['Oldest (UTC)', oldest === null ? 'none' : time(oldest)],
      ['Callbacks waiting', callbacks],
    ])}
<h2>Newest videos</h2>
${table(
  'videos',
  'Newest videos',
  'Created (UTC), Job, State, Progress, Model, Provider, Cost',
  videos.map(one => [
    time(one.createdAt),
    html`<a href="/ui/jobs/${encodeURIComponent(one.id)}">${one.id}</a>`,
    stateMark(one.status),
    `${one.progress} %`,
    one.model,
    one.provider,
    usd(one.cost),
  ]),
  'No videos.',
)}`,
  }
}

/** Shows the callbacks of one job, each with a link that delivers it again. */
export async function job({ id, context }: Visit): Promise<Content> {
  const deliveries = await run<readonly ShownDelivery[]>(context, 'jobs.events', { id })
  return {
    title: `Job ${id}`,
    body: html`<p><a href="/ui/jobs">All jobs</a></p>
<h2>Callbacks</h2>
${table(
  'deliveries',
  'Callbacks',
  'Event, Type, Attempt, State, Status, Error, Tried (UTC), Change',
  deliveries.map(one => [
    html`<code>${one.event}</code>`,
    one.type,
    one.attempt,
    one.state,
    one.status,
    one.error,
    one.triedAt && time(one.triedAt),
    html`<a href="${link('/ui/confirm', { action: 'jobs.retry-callback', event: one.event })}" aria-label="Deliver ${one.event} again">Deliver again</a>`,
  ]),
  'It has no callbacks.',
)}`,
  }
}
