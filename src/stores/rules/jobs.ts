/** Rules of jobs that every store shares. */
import type { Job, JobState, MovedJob } from '../../core/ports.ts'

/** The owner of what jobs hold: it lives as long as the stores do, so that no crash makes an orphan of it. */
export const JOBS_OWNER = 'jobs'

/** How long a job keeps its idempotency key to itself, milliseconds. */
export const IDEMPOTENT_MS = 86_400_000

/** Returns the place that a sealed column of a job is bound to. */
export const jobPlace = (id: string, column: string): string => `job|${id}|${column}`

const STEPS: readonly JobState[] = ['creating', 'queued', 'in_progress']
/** True from the moment when a provider has the job until its end. */
export const isRunning = (state: JobState): boolean => state === 'queued' || state === 'in_progress'

/** State and progress after a poll: neither goes back. */
export function moved(job: Pick<Job, 'state' | 'progress'>, { state, progress }: MovedJob) {
  const next = state !== undefined && STEPS.indexOf(state) > STEPS.indexOf(job.state) ? state : job.state
  const most = Math.max(job.progress ?? -1, progress ?? -1)
  return { state: next, progress: most < 0 ? null : Math.min(99, Math.round(most)) }
}

/** Progress as a provider says it when it takes a job. */
export const startProgress = (said: number | null): number | null =>
  moved({ state: 'queued', progress: null }, { progress: said ?? undefined, nextAt: 0, failures: 0, at: 0 }).progress
