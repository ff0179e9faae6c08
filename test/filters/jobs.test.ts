/** The admission of jobs: what of a request is made once, and in how many turns of the event loop. */
import t from 'tap'
import type { HoldRequest, NewJob, Services } from '../../src/core/ports.ts'
import { videos } from '../../src/endpoints/videos.ts'
import { JobAdmission } from '../../src/filters/billing/jobs.ts'
import { errors } from '../../src/lib/error.ts'
import { exchange } from '../core/kit.ts'
import { principalOf } from '../core/principal.ts'
import { target } from '../plugins/wire-kit.ts'

/** An admission, and the jobs that it begins. */
function admitting() {
  const begun: NewJob[] = []
  const services = {
    now: () => 0,
    jobs: { begin: async (job: NewJob) => ({ id: `hold-${begun.push(job)}` }), drop: async () => {} },
    jobRunner: { timeoutMs: 1 },
  }
  const admission = new JobAdmission(services as object as Services)
  return { admission, begun }
}

t.test("a job and its idempotency key are of one end user, and no other one's", async t => {
  const { admission, begun } = admitting()
  const request = { model: 'film', prompt: 'a cat', seconds: 4 }
  const callers = [undefined, 's1', 's1', 's2'].map(id => id && { id, models: undefined })
  for (const session of callers) {
    const caller = principalOf({ kind: session ? 'session' : 'key', ...(session && { session }) })
    const headers = { 'idempotency-key': '1' }
    const ex = exchange({ endpoint: videos[0]!, request, headers, principal: caller, target: target() })
    await t.rejects(admission.handle(ex, {} as HoldRequest, () => Promise.reject(errors.overloaded())))
  }
  t.strictSame(
    begun.map(({ session, idempotency }) => [session, idempotency]),
    [
      [null, '1'],
      ['s1', 's1 1'],
      ['s1', 's1 1'],
      ['s2', 's2 1'],
    ],
  )
})
