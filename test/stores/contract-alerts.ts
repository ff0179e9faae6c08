/** What a store of alerts must do: let one alert of a key through, until its time is over, with the event of its callback. */
import type { Test } from 'tap'
import type { StoredAlert } from '../../src/limits/alerts.ts'
import { HOUR, type MakeSubject, NOON, type Subject } from './subject.ts'

const lease = (subject: Subject) => ({
  owner: 'one',
  now: subject.clock.now,
  until: subject.clock.now + 1000,
  limit: 10,
})

const alert = (orgId: string, changes: Partial<StoredAlert> = {}): StoredAlert => ({
  ...{ id: 'alert_1', key: 'key', rule: 'rule', orgId, at: NOON, endsAt: NOON + HOUR, body: '{"on":"limit"}' },
  ...changes,
})

export function alertStoreContract(t: Test, make: MakeSubject): void {
  t.test('one alert of a key is kept until its period ends, and the next period has its own', async t => {
    const subject = await make(t)
    const { alerts } = subject
    const { orgId } = await subject.organization('prepaid', 0n)
    const ids = Array.from({ length: 8 }, (_, n) => `alert_${n}`)
    const raised = await Promise.all(
      ids.map(id => alerts.raise(alert(orgId, { id }), { id: `evt_${id}`, type: 'limit.reached' })),
    )
    t.equal(raised.filter(Boolean).length, 1)
    const first = ids[raised.indexOf(true)]!
    t.match(await alerts.find(first), alert(orgId, { id: first }))
    t.equal(await alerts.find('alert_none'), undefined)
    const events = await Promise.all(ids.map(id => subject.jobs.deliveries(id)))
    t.equal(events.flat().length, 1, 'one event')
    t.equal(await alerts.raise(alert(orgId, { id: 'alert_a', at: NOON + HOUR - 1 }), undefined), false)
    t.equal(
      await alerts.raise(alert(orgId, { id: 'alert_b', at: NOON + HOUR, endsAt: NOON + 2 * HOUR }), undefined),
      true,
    )
    t.equal(await alerts.raise(alert(orgId, { id: 'alert_c', at: NOON + HOUR }), undefined), false)
    t.match(await alerts.find(first), { at: NOON }, 'the earlier one can still be delivered')
  })

  t.test('limits, credits and names are read for what was charged without a request', async t => {
    const subject = await make(t)
    const { alerts, accounts } = subject
    const { orgId, projectId: project } = await subject.organization('prepaid', 100n)
    const { id: keyId } = await accounts.createKey({ project, name: 'k', limit: { amount: 50n } })
    t.match(await alerts.callerOf(orgId, keyId), { orgName: String, keyName: 'k', member: undefined })
    t.match(await alerts.callerOf('org_none', 'key_none'), { orgName: 'org_none', keyName: 'key_none' })
    t.match(await alerts.standing(orgId, ['none']), { limits: [], credits: { balance: 100n, credited: 100n } })
  })

  t.test('an alert without an end is kept once for all time', async t => {
    const { alerts, organization } = await make(t)
    const { orgId } = await organization('prepaid', 0n)
    t.equal(await alerts.raise(alert(orgId, { endsAt: undefined }), undefined), true)
    t.equal(await alerts.raise(alert(orgId, { id: 'alert_2', at: NOON + 1e12, endsAt: undefined }), undefined), false)
    t.equal(await alerts.prune(NOON + 1e12, 10), 0)
  })

  t.test('the event of an alert is tried again under its id, and removed with the alert', async t => {
    const subject = await make(t)
    const { alerts, jobs, clock } = subject
    const { orgId } = await subject.organization('prepaid', 0n)
    clock.now = NOON
    await alerts.raise(alert(orgId), { id: 'evt_1', type: 'limit.reached' })
    const tried = { status: 500, response: null, error: null, headers: '{}', bodySha256: '', triedAt: NOON }
    const [delivery] = await jobs.claimDeliveries(lease(subject), 10)
    t.match(delivery, { eventId: 'evt_1', jobId: 'alert_1', type: 'limit.reached', attempt: 1 })
    t.equal(await jobs.deliver(delivery!, { ...tried, state: 'retrying', nextAt: NOON + 5 }), true)
    t.match(await jobs.deliveries('alert_1'), [
      { eventId: 'evt_1', attempt: 1, state: 'retrying', status: 500 },
      { eventId: 'evt_1', attempt: 2, state: 'pending', nextAt: NOON + 5 },
    ])
    t.equal(await alerts.prune(NOON + 2 * HOUR, 10), 0, 'an event that is due keeps its alert')
    clock.now = NOON + 5
    const [again] = await jobs.claimDeliveries(lease(subject), 10)
    await jobs.deliver(again!, { ...tried, status: 204, state: 'delivered', nextAt: 0 })
    t.equal(await alerts.prune(NOON + HOUR, 10), 0)
    t.equal(await alerts.prune(NOON + HOUR + 1, 10), 1)
    t.same(await jobs.deliveries('alert_1'), [])
    t.equal(await alerts.find('alert_1'), undefined)
  })
}
