/** How long work on a claimed job may take: within its lease, or with a lease that is renewed while it goes on. */
import { Cancellation } from '../core/cancel.ts'
import type { Job } from '../core/ports.ts'
import { errors, type GatewayError } from '../lib/error.ts'
import { timerMs } from '../lib/timer.ts'
import type { JobsContext } from './context.ts'

type Work<T> = (signal: Cancellation) => Promise<T>

/** Time limit of a poll. The rest of the lease is for writing its result before another process may claim the job. */
export const pollMs = ({ options }: Pick<JobsContext, 'options'>): number => Math.floor((options().lease * 2) / 3)

/** Its signal ends with `parent`, or with `late` after so many milliseconds. */
export async function within<T>(ms: number, parent: Cancellation, late: GatewayError, work: Work<T>): Promise<T> {
  const signal = new Cancellation()
  const follow = () => signal.abort(parent.reason!)
  parent.listen(follow)
  const timer = setTimeout(() => signal.abort(late), timerMs(ms))
  try {
    return await work(signal)
  } finally {
    clearTimeout(timer)
    parent.ignore(follow)
  }
}

/** For what may take longer than a lease. It ends when another process has the job, and after `jobs.timeout`. */
export async function renewing<T>(job: Job, parent: Cancellation, context: JobsContext, work: Work<T>): Promise<T> {
  const { store, options, now } = context
  const { lease, timeout } = options()
  const renew = async () => {
    const isOurs = await store.renew(job.id, job.fence, now() + options().lease).catch(() => true)
    if (!isOurs) parent.abort(errors.aborted())
  }
  await renew()
  if (parent.reason) throw parent.reason
  const timer = setInterval(() => void renew(), lease / 3)
  timer.unref()
  try {
    return await within(timeout, parent, errors.upstreamTimeout('its result takes too long'), work)
  } finally {
    clearInterval(timer)
  }
}
