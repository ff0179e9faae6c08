/** What every store of jobs promises: leases with fences, and state and money in one transaction. */
import type { Test } from 'tap'
import type { EndedJob, Hold, Job, JobTarget, NewJob, Principal, RequestRow } from '../../src/core/ports.ts'
import { HOUR, identity, type MakeSubject, NOON, rowOf, type Subject } from './subject.ts'

const target: JobTarget = {
  mapping: 'film-1',
  region: null,
  credential: 'platform:abc',
  wire: 'openai.videos',
  owner: null,
  price: '{}',
  discount: 0,
}
export const jobOf = (id: string, changes: Partial<NewJob> = {}): NewJob => ({
  id,
  kind: 'video',
  source: null,
  session: null,
  labels: { endUser: 'ann', tags: { team: 'blue' } },
  params: '{}',
  idempotency: null,
  requestHash: null,
  callback: null,
  createdAt: NOON,
  deadlineAt: NOON + HOUR,
  ...changes,
})
export const begin = ({ jobs }: Subject, principal: Principal, job: NewJob, attempt = 0, amount = 100n) => {
  const request = identity(`log-${job.id}`)
  const hold = { id: `${job.id}:${attempt}`, request, principal, amount, expiresAt: NOON + HOUR }
  return jobs.begin(job, target, hold)
}
export async function running(subject: Subject, principal: Principal, job: NewJob): Promise<Job> {
  await begin(subject, principal, job)
  const started = { upstreamId: `up-${job.id}`, state: 'queued', progress: null, nextAt: NOON } as const
  return (await subject.jobs.start(job.id, started))!
}
async function runningAt(
  { jobs }: Subject,
  principal: Principal,
  id: string,
  { provider, owner = null }: { readonly provider: string; readonly owner?: string | null },
): Promise<void> {
  const request = { ...identity(`log-${id}`), provider }
  const hold = { id: `${id}:0`, request, principal, amount: 1n, expiresAt: NOON + HOUR }
  await jobs.begin(jobOf(id), { ...target, owner }, hold)
  await jobs.start(id, { upstreamId: `up-${id}`, state: 'queued', progress: null, nextAt: NOON })
}
export const lease = (owner: string, now = NOON, limit = 25) => ({ owner, now, until: now + 30_000, limit })
export const ended = (id: string, changes: Partial<EndedJob> = {}): EndedJob => ({
  state: 'completed',
  error: null,
  result: { kind: 'url', url: 'https://films.example/secret' },
  completedAt: NOON + 1000,
  expiresAt: NOON + HOUR,
  event: { id: `evt_${id}`, type: 'video.completed' },
  ...changes,
})
export const rowFor = (principal: Principal, id: string, cost: bigint): RequestRow =>
  rowOf(principal, `log-${id}`, { endpoint: 'videos', cost, usage: { second: 4 } })
export const callback = { url: 'https://hook.example/in', secret: 'whsec_c2VjcmV0' }

export function jobStoreContract(t: Test, make: MakeSubject): void {
  t.test('a job is held for from its creation, and charged once at its end', async t => {
    const subject = await make(t)
    const { jobs, ledger, usage } = subject
    const principal = await subject.organization('prepaid', 1000n)
    await running(subject, principal, jobOf('a'))
    t.same(await ledger.balance(principal.orgId), { balance: 1000n, held: 100n, used: 0n })
    const [claimed] = await jobs.claim(lease('one'), 25)
    t.match(claimed, { id: 'a', upstreamId: 'up-a', fence: 1 })
    t.same(await jobs.claim(lease('two'), 25), [], 'it is claimed by one at a time')
    t.equal(await jobs.end('a', 1, ended('a'), rowFor(principal, 'a', 70n)), true)
    t.equal(await jobs.end('a', 1, ended('a'), rowFor(principal, 'a', 70n)), false, 'once')
    t.match(await jobs.get('a'), { state: 'completed', progress: 100, cost: 70n, result: ended('a').result })
    t.same(await ledger.balance(principal.orgId), { balance: 930n, held: 0n, used: 70n })
    t.same(await usage.check(), [])
  })

  t.test('a job keeps the end user who asked for it', async t => {
    const subject = await make(t)
    const principal = await subject.organization('prepaid', 1000n)
    await running(subject, principal, jobOf('a', { session: 'ada' }))
    await running(subject, principal, jobOf('b'))
    t.strictSame([(await subject.jobs.get('a'))?.session, (await subject.jobs.get('b'))?.session], ['ada', null])
  })

  t.test('a job is readable for as long as its key may be used', async t => {
    const subject = await make(t)
    const { accounts, projects, members, clock } = subject
    const { jobs } = subject
    const readable = async (principal: Principal) => {
      const id = `of-${principal.keyId}`
      if (!(await jobs.get(id))) await running(subject, principal, jobOf(id))
      return jobs.isReadable((await jobs.get(id))!)
    }
    const revoked = await subject.organization('prepaid', 1000n)
    const archived = await subject.organization('prepaid', 1000n)
    t.strictSame([await readable(revoked), await readable(archived)], [true, true])
    await accounts.revokeKey(revoked.keyId, 'ada')
    await projects.update(archived.projectId, { archived: true }, 'ada')
    t.strictSame([await readable(revoked), await readable(archived)], [false, false])
    await projects.update(archived.projectId, { archived: false }, 'ada')
    t.equal(await readable(archived), true, 'a project comes back with its jobs')
    const { orgId: organization, projectId: project } = archived
    const keyOf = async (key: object) => {
      const { id: keyId } = await accounts.createKey({ project, name: 'k', ...key }, 'ada')
      return { ...archived, keyId }
    }
    await members.add({ organization, email: 'ben@x.example', role: 'developer', projects: [project] }, 'ada')
    const ofMember = await keyOf({ createdBy: 'ben@x.example' })
    const short = await keyOf({ kind: 'session', expiresAt: NOON + 1 })
    t.strictSame([await readable(ofMember), await readable(short)], [true, true])
    await members.remove(organization, 'ben@x.example', 'ada')
    clock.now = NOON + 1
    t.strictSame([await readable(ofMember), await readable(short)], [false, false], 'a member left, a key expired')
  })

  t.test('a holder that has lost the lease changes nothing', async t => {
    const subject = await make(t)
    const { jobs, ledger } = subject
    const principal = await subject.organization('prepaid', 1000n)
    await running(subject, principal, jobOf('a'))
    await jobs.claim(lease('one'), 25)
    const later = NOON + 30_000
    const [taken] = await jobs.claim(lease('two', later), 25)
    t.equal(taken?.fence, 2, 'the lease was over')
    t.equal(await jobs.move('a', 1, { state: 'in_progress', nextAt: NOON, failures: 0, at: NOON }), false)
    t.equal(await jobs.renew('a', 1, later), false)
    t.equal(await jobs.end('a', 1, ended('a'), rowFor(principal, 'a', 70n)), false)
    t.equal((await ledger.balance(principal.orgId)).held, 100n)
    t.equal(
      await jobs.move('a', 2, { state: 'in_progress', progress: 40, nextAt: later, failures: 0, at: later }),
      true,
    )
    t.match(await jobs.get('a'), { state: 'in_progress', progress: 40, attempts: 1 })
  })

  t.test('progress is a whole number below 100, whatever a provider says of it', async t => {
    const subject = await make(t)
    const { jobs } = subject
    const principal = await subject.organization('prepaid', 1000n)
    for (const [at, [said, kept]] of (
      [
        [0.4, 0],
        [1e300, 99],
        [-7.5, null],
        [null, null],
      ] as const
    ).entries()) {
      const id = `job-${at}`
      await begin(subject, principal, jobOf(id))
      await jobs.start(id, { upstreamId: `up-${id}`, state: 'in_progress', progress: said, nextAt: NOON })
      t.equal((await jobs.get(id))?.progress, kept)
    }
  })

  t.test('neither state nor progress goes back', async t => {
    const subject = await make(t)
    const { jobs } = subject
    const principal = await subject.organization('prepaid', 1000n)
    await running(subject, principal, jobOf('a'))
    for (const [state, progress] of [
      ['in_progress', 60],
      ['queued', 10],
      [undefined, undefined],
    ] as const) {
      const [one] = await jobs.claim(lease('one'), 25)
      await jobs.move('a', one!.fence, { state, progress, nextAt: NOON, failures: 0, at: NOON })
      t.match(await jobs.get('a'), { state: 'in_progress', progress: 60 })
    }
  })

  t.test('another attempt to create it takes the place of the hold, and no attempt leaves nothing', async t => {
    const subject = await make(t)
    const { jobs, ledger, usage } = subject
    const principal = await subject.organization('prepaid', 1000n)
    await begin(subject, principal, jobOf('a'))
    t.same(await jobs.list({}, 'video', {}), [], 'one that is being created is seen by nobody')
    await begin(subject, principal, jobOf('a'), 1, 300n)
    t.equal((await ledger.balance(principal.orgId)).held, 300n)
    t.match(await begin(subject, principal, jobOf('b'), 0, 5000n), { exhausted: 'credits' })
    t.equal(await jobs.get('b'), undefined)
    await jobs.drop('a')
    t.equal(await jobs.get('a'), undefined)
    t.equal((await ledger.balance(principal.orgId)).held, 0n)
    t.same(await usage.check(), [])
  })

  t.test('a create whose outcome is unknown fails, and its hold is released', async t => {
    const subject = await make(t)
    const { jobs, ledger, usage } = subject
    const principal = await subject.organization('prepaid', 1000n)
    const error = { code: 'interrupted', message: 'nobody knows' }
    await begin(subject, principal, jobOf('a', { callback }))
    await jobs.interrupt('a', error, { id: 'evt_a', type: 'video.failed' }, NOON)
    t.match(await jobs.get('a'), { state: 'failed', error, cost: 0n, completedAt: NOON })
    t.match(await jobs.deliveries('a'), [{ eventId: 'evt_a', attempt: 1, state: 'pending' }])
    t.equal(await jobs.start('a', { upstreamId: 'x', state: 'queued', progress: null, nextAt: NOON }), undefined)
    const hold = (await begin(subject, principal, jobOf('b'))) as Hold
    await ledger.void(hold)
    t.equal(await jobs.interruptLost(error, id => ({ id: `evt_${id}`, type: 'video.failed' }), NOON), 1)
    t.match(await jobs.get('b'), { state: 'failed', error })
    t.equal((await ledger.balance(principal.orgId)).held, 0n)
    t.same(await usage.check(), [])
  })

  t.test('no crash makes an orphan of what a job holds', async t => {
    const subject = await make(t)
    const { ledger, clock } = subject
    const principal = await subject.organization('prepaid', 1000n)
    await running(subject, principal, jobOf('a'))
    clock.now += 48 * HOUR
    t.equal(await ledger.recover(), 0)
    t.equal((await ledger.balance(principal.orgId)).held, 100n)
  })

  t.test('one idempotency key is one job of its project, for a day', async t => {
    const subject = await make(t)
    const principal = await subject.organization('prepaid', 1000n)
    const other = await subject.organization('prepaid', 1000n)
    const job = (id: string, at = NOON) => jobOf(id, { idempotency: 'k', requestHash: 'h', createdAt: at })
    t.match(await begin(subject, principal, job('a')), { amount: 100n })
    t.match(await begin(subject, principal, job('b')), { existing: { id: 'a', requestHash: 'h' } })
    t.match(await begin(subject, other, job('c')), { amount: 100n })
    t.match(await begin(subject, principal, job('d', NOON + 25 * HOUR)), { amount: 100n })
  })

  t.test('jobs of one organization do not keep those of others waiting', async t => {
    const subject = await make(t)
    const busy = await subject.organization('open', 0n)
    const calm = await subject.organization('open', 0n)
    for (const id of ['a', 'b', 'c', 'd']) await running(subject, busy, jobOf(id))
    await running(subject, calm, jobOf('z'))
    const claimed = await subject.jobs.claim(lease('one', NOON, 2), 25)
    t.same(claimed.map(({ id }) => id).sort(), ['a', 'z'])
  })

  t.test('of one organization, and at one provider, an owner has no more than its share', async t => {
    const subject = await make(t)
    const { jobs } = subject
    const [busy, calm] = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
    const at = (principal: Principal, id: string, provider: string) => runningAt(subject, principal, id, { provider })
    for (const id of ['a1', 'a2', 'a3', 'a4']) await at(busy, id, 'slow')
    for (const id of ['b1', 'b2']) await at(busy, id, 'quick')
    for (const id of ['c1', 'c2', 'c3']) await at(calm, id, 'slow')
    const claimAll = async (owner: string, share: number) => {
      const all: string[] = []
      for (
        let some = await jobs.claim(lease(owner), share);
        some.length > 0;
        some = await jobs.claim(lease(owner), share)
      ) {
        all.push(...some.map(({ id }) => id.slice(0, 1)))
      }
      return { all, of: (...names: string[]) => all.filter(name => names.includes(name)).length }
    }
    const first = await claimAll('one', 3)
    t.equal(first.of('a', 'c'), 3, 'of one provider')
    t.equal(first.of('a', 'b'), 3, 'of one organization')
    t.ok(first.of('b') > 0 && first.of('c') > 0, 'neither keeps the others waiting')
    t.equal((await claimAll('two', 9)).all.length, 9 - first.all.length, 'a share is of one owner')
    await jobs.release('one')
    t.equal((await claimAll('one', 9)).all.length, first.all.length, 'what was given back is free')
    const { running, bytes } = await jobs.counts()
    t.same(running.map(one => `${one.count} ${one.provider} ${one.state}`).sort(), ['2 quick queued', '7 slow queued'])
    t.equal(bytes, 0)
  })

  t.test('own providers of two organizations have a share each, also where they have one id', async t => {
    const subject = await make(t)
    const [one, other] = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
    for (const [principal, ids] of [
      [one, ['a1', 'a2', 'a3']],
      [other, ['b1', 'b2', 'b3']],
    ] as const) {
      for (const id of ids) await runningAt(subject, principal, id, { provider: 'ours', owner: principal.orgId })
    }
    await runningAt(subject, other, 'c1', { provider: 'ours' })
    const claimed = async () => (await subject.jobs.claim(lease('one'), 2)).map(({ id }) => id.slice(0, 1)).sort()
    const all = [...(await claimed()), ...(await claimed())]
    t.equal(all.filter(id => id === 'a').length, 2)
    t.equal(all.filter(id => id !== 'a').length, 2)
    t.equal((await subject.jobs.get('a1'))?.owner, one.orgId)
    t.equal((await subject.jobs.get('c1'))?.owner, null)
  })

  t.test('bytes of kept results are counted, of all and of one organization', async t => {
    const subject = await make(t)
    const { jobs } = subject
    const [one, other] = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
    for (const [principal, id, bytes] of [
      [one, 'a', 10],
      [one, 'b', 200],
      [other, 'c', 3000],
    ] as const) {
      await running(subject, principal, jobOf(id))
      const claimed = await jobs.claimOne(id, lease('one'))
      const result = { kind: 'blob', blob: `blob-${id}`, type: 'video/mp4', bytes, etag: '"x"' } as const
      await jobs.end(id, claimed!.fence, ended(id, { result }), rowFor(principal, id, 0n))
    }
    t.same(await jobs.keptBytes(one.orgId), { all: 3210, own: 210 })
    t.same(await jobs.blobs(['blob-a', 'blob-x']), new Set(['blob-a']))
    await jobs.remove('b', NOON)
    t.same(await jobs.keptBytes(one.orgId), { all: 3010, own: 10 })
    t.equal((await jobs.counts()).bytes, 3010)
  })

  t.test('a list is of one project, from either end, and goes on behind a job', async t => {
    const subject = await make(t)
    const principal = await subject.organization('open', 0n)
    const other = await subject.organization('open', 0n)
    for (const [at, id] of ['a', 'b', 'c'].entries())
      await running(subject, principal, jobOf(id, { createdAt: NOON + at }))
    await running(subject, other, jobOf('z'))
    const ids = async (page: { after?: string; limit?: number; ascending?: boolean }) =>
      (await subject.jobs.list({ projectId: principal.projectId }, 'video', page)).map(({ id }) => id)
    t.same(await ids({}), ['c', 'b', 'a'])
    t.same(await ids({ after: 'c', limit: 1 }), ['b'])
    t.same(await ids({ ascending: true, after: 'a' }), ['b', 'c'])
  })

  t.test(
    'what is deleted stays as a tombstone; what has expired has no result; both are dropped in the end',
    async t => {
      const subject = await make(t)
      const { jobs } = subject
      const principal = await subject.organization('open', 0n)
      for (const id of ['a', 'b']) {
        await running(subject, principal, jobOf(id))
        t.equal(await jobs.remove(id, NOON), undefined, 'it runs')
        const claimed = await jobs.claimOne(id, lease('one'))
        await jobs.end(id, claimed!.fence, ended(id), rowFor(principal, id, 0n))
      }
      t.match(await jobs.remove('a', NOON), { result: { kind: 'url' } })
      t.match(await jobs.get('a'), { deletedAt: NOON, result: null })
      t.equal(await jobs.nextAt(), NOON + HOUR, 'when the result of the other one goes')
      t.match(await jobs.expireDue(NOON + HOUR, 10), [{ id: 'b' }])
      t.match(await jobs.get('b'), { state: 'completed', result: null })
      t.equal(await jobs.prune(NOON + 1001, 10), 2)
      t.equal(await jobs.get('b'), undefined)
    },
  )

  t.test('deliveries of one organization take no more than its share', async t => {
    const subject = await make(t)
    const { jobs } = subject
    const [busy, other] = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
    for (const [principal, id] of [
      [busy, 'a'],
      [busy, 'b'],
      [busy, 'c'],
      [other, 'd'],
    ] as const) {
      await running(subject, principal, jobOf(id, { callback }))
      const claimed = await jobs.claimOne(id, lease('one'))
      await jobs.end(id, claimed!.fence, ended(id, { result: null }), rowFor(principal, id, 0n))
    }
    const later = NOON + 1000
    const claim = async (owner: string) =>
      (await jobs.claimDeliveries(lease(owner, later), 2)).map(({ jobId }) => jobId).sort()
    const first = await claim('one')
    t.equal(first.length, 3)
    t.ok(first.includes('d'), 'another organization is served beside it')
    t.same(await claim('one'), [], 'those that are claimed count')
    t.equal((await claim('two')).length, 1, 'a share is of one owner')
  })

  t.test('a job whose sealed values cannot be opened delays no others, and goes on without them', async t => {
    const subject = await make(t)
    const { jobs, ledger } = subject
    const principal = await subject.organization('prepaid', 1000n)
    const sealed = ['missing', 'changed', 'cut', 'empty']
    for (const id of [...sealed, 'fine']) {
      await running(subject, principal, jobOf(id, { callback, idempotency: `key-${id}` }))
    }
    await begin(subject, principal, jobOf('lost', { callback }))
    const spoil = async (column: string) => {
      await subject.exec!(`UPDATE jobs SET ${column} = 'deadbeef.AAAA.AAAA' WHERE id IN ('missing', 'lost')`)
      await subject.exec!(`UPDATE jobs SET ${column} = substr(${column}, 1, 30) || 'x' WHERE id = 'changed'`)
      await subject.exec!(`UPDATE jobs SET ${column} = 'x' WHERE id = 'cut'`)
      await subject.exec!(`UPDATE jobs SET ${column} = '' WHERE id = 'empty'`)
    }
    await spoil('callback_secret')
    const claimed = await jobs.claim(lease('one'), 25)
    t.same(claimed.map(({ id }) => id).sort(), [...sealed, 'fine'].sort())
    for (const job of claimed) {
      if (job.id === 'fine') t.match(job, { callback, unreadable: undefined })
      else t.match(job, { callback: null, unreadable: job.id === 'missing' ? /master key deadbeef/ : String })
      t.equal(await jobs.end(job.id, job.fence, ended(job.id), rowFor(principal, job.id, 1n)), true)
    }
    t.equal(
      (await jobs.claimDeliveries(lease('one', NOON + 1000), 25)).length,
      5,
      'an end is told, or its failure is kept',
    )
    const again = await begin(subject, principal, jobOf('other', { idempotency: 'key-missing' }), 1)
    t.match(again, { existing: { id: 'missing' } })

    await jobs.interrupt('lost', { code: 'interrupted', message: 'x' }, { id: 'evt_lost', type: 'x' }, NOON)
    t.match(await jobs.get('lost'), { state: 'failed' })
    t.match(await ledger.balance(principal.orgId), { held: 0n })

    await spoil('result_url')
    t.match(await jobs.get('missing'), { state: 'completed', result: null, unreadable: /master key deadbeef/ })
    t.match(await jobs.get('fine'), { result: ended('fine').result })
    const listed = await jobs.list({ orgId: principal.orgId }, 'video', { limit: 10 })
    t.equal(listed.length, 6)
    t.equal((await jobs.expireDue(NOON + HOUR, 10)).length, 5, 'such results expire as others do')
    t.same(await jobs.expireDue(NOON + HOUR, 10), [])
    t.match(await jobs.remove('missing', NOON), { id: 'missing' })
  })

  t.test('creates that were lost are failed, whether their values can be opened or not', async t => {
    const subject = await make(t)
    const principal = await subject.organization('prepaid', 1000n)
    for (const id of ['a', 'b', 'c']) await begin(subject, principal, jobOf(id, { callback }))
    await subject.exec!("UPDATE jobs SET callback_url = 'deadbeef.AAAA.AAAA' WHERE id = 'b'")
    subject.clock.now += HOUR + 60_001
    await subject.ledger.recover()
    const event = (id: string) => ({ id: `evt_${id}`, type: 'x' })
    t.equal(await subject.jobs.interruptLost({ code: 'interrupted', message: 'x' }, event, NOON), 3)
    t.match(await subject.jobs.get('b'), { state: 'failed', error: { code: 'interrupted' } })
  })

  t.test('an ended job is reported until acknowledged, by one process at a time', async t => {
    const subject = await make(t)
    const { jobs } = subject
    const principal = await subject.organization('open', 0n)
    await running(subject, principal, jobOf('a', { callback }))
    const claimed = await jobs.claimOne('a', lease('one'))
    await jobs.end('a', claimed!.fence, ended('a', { result: null }), rowFor(principal, 'a', 0n))
    const said = { triedAt: NOON, status: 500, response: 'no', error: null, headers: '{}', bodySha256: 'x' }
    const later = NOON + 1000
    const [early] = await jobs.claimDeliveries(lease('one', later), 9)
    t.equal(await jobs.postpone(early!, later + 1), true)
    t.equal(await jobs.postpone({ ...early!, fence: 9 }, later + 1), false)
    t.same(await jobs.claimDeliveries(lease('one', later), 9), [], 'it is due later')
    const [first] = await jobs.claimDeliveries(lease('one', later + 1), 9)
    t.match(first, { eventId: 'evt_a', jobId: 'a', attempt: 1 })
    t.same(await jobs.claimDeliveries(lease('two', later + 1), 9), [])
    t.equal(await jobs.deliver({ ...first!, fence: 9 }, { ...said, state: 'delivered', nextAt: 0 }), false)
    t.equal(await jobs.deliver(first!, { ...said, state: 'retrying', nextAt: later + 5 }), true)
    t.same((await jobs.get('a'))?.callback, callback)
    const [second] = await jobs.claimDeliveries(lease('one', later + 5), 9)
    t.match(second, { eventId: 'evt_a', attempt: 2 })
    await jobs.deliver(second!, { ...said, state: 'delivered', status: 204, nextAt: 0 })
    t.equal((await jobs.get('a'))?.callback, null, 'the secret is erased')
    t.match(await jobs.deliveries('a'), [
      { state: 'retrying', status: 500 },
      { state: 'delivered', status: 204 },
    ])
    t.equal(await jobs.redeliver('evt_a', NOON), false, 'nothing can sign it any more')
    t.equal((await jobs.status(NOON)).callbacks, 0)
  })
}
