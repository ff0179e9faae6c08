/** The admission of jobs: what of a request is made once, and in how many turns of the event loop. */
import t from 'tap'
import { errors } from '../../src/core/error.ts'
import type { HoldRequest, NewJob, Services } from '../../src/core/ports.ts'
import { videos } from '../../src/endpoints/videos.ts'
import { JobAdmission } from '../../src/filters/billing/jobs.ts'
import { exchange, principal } from '../core/kit.ts'
import { principalOf } from '../core/principal.ts'
import { inLoop } from '../helpers/in-loop.ts'
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

t.test("an idempotency key of one end user is no other one's", async t => {
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
    begun.map(({ idempotency }) => idempotency),
    ['1', 's1 1', 's1 1', 's2 1'],
  )
})

t.test('a large request is hashed in many turns of the event loop, and once for all its attempts', async t => {
  const { admission, begun } = admitting()
  let reads = 0
  const admit = async (headers: Record<string, string>, image: string, attempts: number) => {
    reads = 0
    const images = [
      {
        get url() {
          reads++
          return image
        },
      },
    ]
    const request = { model: 'film', prompt: 'a cat', seconds: 4, images }
    const ex = exchange({ endpoint: videos[0]!, request, headers, principal, target: target() })
    for (let n = 0; n < attempts; n++) {
      const failed = admission.handle(ex, {} as HoldRequest, () => Promise.reject(errors.overloaded()))
      t.match(await failed.catch((error: unknown) => error), { status: 529 })
    }
    return begun.splice(0)
  }
  const image = `data:image/png;base64,${'x'.repeat(8 * 2 ** 20)}`
  const key = { 'idempotency-key': 'a' }
  const [first] = await inLoop(async turn => {
    const jobs = await admit(key, image, 1)
    t.ok(turn() >= 64, `${turn()} turns`)
    return jobs
  })
  const once = reads
  t.ok(once > 0)
  const [second, third] = await admit(key, image, 3)
  t.equal(reads, once, 'attempts share it')
  t.equal(third!.id, second!.id)
  t.strictSame([second!.requestHash, third!.requestHash], [first!.requestHash, first!.requestHash])
  t.match(first!.requestHash, /^[0-9a-f]{64}$/)
  t.not((await admit(key, `${image}x`, 1))[0]!.requestHash, first!.requestHash)
  t.equal((await admit({}, image, 1))[0]!.requestHash, null)
})
