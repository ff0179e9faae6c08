/** A job as its client gets it, with the signed address of its result. */
import type { Job } from '../core/ports.ts'
import type { JobsContext } from './context.ts'
import { tokenFor } from './token.ts'

/** The object of the job's operation, such as a `video`. */
export function jobObject(job: Job, context: JobsContext): object {
  return context.kinds.get(job.kind)!.show(job, addressOf(job, context))
}

function addressOf(job: Job, { tokenKeys, options, publicUrl, kinds }: JobsContext): string | undefined {
  const { logId, completedAt, expiresAt, result } = job
  if (completedAt === null || !result) return undefined
  const ends = Math.min(completedAt + options().keep, expiresAt ?? Number.POSITIVE_INFINITY)
  const token = tokenFor(tokenKeys()[0]!, logId, ends)
  return `${publicUrl()}/v1/${kinds.get(job.kind)!.kind}s/logs/${logId}/content?token=${token}`
}
