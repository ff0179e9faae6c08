/** Cancels of jobs that are claimed: by the injected clock, which each look at the claim moves on. */
import t from 'tap'
import { Jobs } from '../../src/jobs/runner.ts'
import { engineKit } from './kit.ts'

const LOOK_MS = 1_250

async function claimedJob(t: Parameters<typeof engineKit>[0], leaseMs: number) {
  const kit = await engineKit(t)
  const { jobs: store, clock } = kit.subject
  const job = await kit.create()
  const lease = { owner: 'another process', now: clock.now, until: clock.now + leaseMs, limit: 1 }
  await store.claimOne(job.id, lease)
  const looks: number[] = []
  const began = clock.now
  const claimOne: typeof store.claimOne = async (id, lease) => {
    looks.push(clock.now - began)
    const claimed = await store.claimOne(id, lease)
    if (!claimed) clock.now += LOOK_MS
    return claimed
  }
  const looked = new Proxy(store, {
    get: (target, name: keyof typeof store) => (name === 'claimOne' ? claimOne : target[name].bind(target)),
  })
  const jobs = new Jobs({ ...kit.context, store: looked })
  return { kit, job, jobs, looks }
}

t.test(
  'a cancel waits five seconds for a poll that runs, and then fails with a 503 that says when to try again',
  async t => {
    const { kit, job, jobs, looks } = await claimedJob(t, 60_000)
    await t.rejects(jobs.cancel(job), { status: 503, code: 'job_busy', headers: { 'retry-after': '1' } })
    t.same(looks, [0, 1_250, 2_500, 3_750])
    t.same(kit.asked, [], 'nothing is sent to the provider')
    t.equal((await kit.read(job.id)).state, job.state)
  },
)

t.test('a cancel goes on when the poll ends within five seconds', async t => {
  const { kit, job, jobs, looks } = await claimedJob(t, 2_000)
  kit.answer = ({ method }) => ({ body: { status: method === 'DELETE' ? 'canceled' : 'in_progress' } })
  t.match(await jobs.cancel(job), { state: 'canceled', cost: 0n })
  t.same(looks, [0, 1_250, 2_500])
  t.ok(kit.asked.some(({ method }) => method === 'DELETE'))
})
