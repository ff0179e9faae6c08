/** Callbacks as their receivers verify them, and when they come again. */
import { createHmac } from 'node:crypto'
import t from 'tap'
import type { Job } from '../../src/core/ports.ts'
import { callbackGap, pollGap } from '../../src/jobs/back-off.ts'
import { Callbacks, signaturesOf } from '../../src/jobs/callbacks.ts'
import { engineKit, FILM } from './kit.ts'

t.test('J12 a secret signs as text, and one that begins with whsec_ as the bytes that it encodes, too', t => {
  const body = '{"object":"event"}'
  const mac = (key: string | Buffer) =>
    `v1,${createHmac('sha256', key).update(`evt_1.1700000000.${body}`).digest('base64')}`
  const bytes = Buffer.from([0xfb, 0xff, 0xbf, 1, 2, 3])
  const standard = `whsec_${bytes.toString('base64')}`
  const url = `whsec_${bytes.toString('base64url')}`
  for (const [secret, keys] of [
    ['a plain secret, ä', ['a plain secret, ä']],
    [standard, [bytes, standard]],
    [url, [bytes, url]],
  ] as const) {
    t.equal(signaturesOf(secret, 'evt_1', 1_700_000_000, body), keys.map(mac).join(' '), secret)
  }
  t.end()
})

t.test(
  'J12 attempts have one id, new times and growing gaps, until one is acknowledged or the last has failed',
  async t => {
    for (const [statuses, attempts, state] of [
      [[500, 500, 200], 3, 'delivered'],
      [[302, 204], 2, 'delivered'],
      [[410], 1, 'failed'],
      [Array<number>(20).fill(500), 8, 'failed'],
    ] as const) {
      const kit = await engineKit(t, { options: { results: 'proxy' } })
      const { subject, posted } = kit
      kit.answer = ({ path }) => ({ body: path.endsWith('/content') ? FILM : { status: 'completed' } })
      const left = [...statuses]
      kit.hear = () => ({ status: left.shift()!, text: '' })
      const { id } = await kit.create({ callback: { url: 'https://hook.example/in', secret: 's' } })
      await kit.poll()
      const callbacks = new Callbacks(kit.context, 'one')
      const times: number[] = []
      for (let hours = 0; hours < 24 * 3600; hours++) {
        if ((await subject.jobs.status(subject.clock.now)).callbacks === 0) break
        const due = (await subject.jobs.deliveries(id)).at(-1)!.nextAt
        subject.clock.now = Math.max(subject.clock.now, due)
        times.push(subject.clock.now)
        await callbacks.run()
        await callbacks.stop(30_000)
      }
      t.equal(posted.length, attempts)
      t.equal(new Set(posted.map(({ headers }) => headers['webhook-id'])).size, 1)
      t.same(
        posted.map(({ headers }) => headers['webhook-timestamp']),
        times.map(at => String(Math.floor(at / 1000))),
      )
      const gaps = times.slice(1).map((at, attempt) => at - times[attempt]!)
      t.same(
        gaps,
        gaps.map((_, attempt) => 30_000 * 2 ** attempt),
      )
      t.match((await subject.jobs.deliveries(id)).at(-1), { state, attempt: attempts })
      t.equal((await kit.read(id)).callback, null, 'the secret is erased')
    }
    t.equal(callbackGap(30_000, 20, 1), 3_600_000, 'an hour at most')
  },
)

t.test('SI-07 a receiver that does not answer in time gets the same event again, until the last attempt', async t => {
  const kit = await engineKit(t, { options: { results: 'proxy', callback_attempts: 3 } })
  const { subject, posted } = kit
  kit.answer = ({ path }) => ({ body: path.endsWith('/content') ? FILM : { status: 'completed' } })
  kit.hear = () => {
    throw new Error('it did not answer in time')
  }
  const { id } = await kit.create({ callback: { url: 'https://hook.example/in', secret: 's' } })
  await kit.poll()
  const callbacks = new Callbacks(kit.context, 'one')
  for (let turns = 0; turns < 10; turns++) {
    await callbacks.run()
    await callbacks.stop(30_000)
    subject.clock.now += 3_600_000
  }
  t.equal(posted.length, 3)
  t.equal(new Set(posted.map(({ headers }) => headers['webhook-id'])).size, 1)
  const error = 'it did not answer in time'
  t.match(await subject.jobs.deliveries(id), [
    { attempt: 1, state: 'retrying', status: null, response: null, error },
    { attempt: 2, state: 'retrying', status: null, response: null, error },
    { attempt: 3, state: 'failed', status: null, response: null, error },
  ])
})

t.test('a callback that cannot be opened is tried again, and each attempt says why it fails', async t => {
  const kit = await engineKit(t, { options: { results: 'proxy', callback_attempts: 3 } })
  const { subject, posted } = kit
  kit.answer = ({ path }) => ({ body: path.endsWith('/content') ? FILM : { status: 'completed' } })
  const made = [1, 2].map(n => kit.create({ callback: { url: `https://hook.example/${n}`, secret: 's' } }))
  const [lost, fine] = (await Promise.all(made)) as [Job, Job]
  await kit.poll()
  const callbacks = new Callbacks(kit.context, 'one')
  const turn = async () => {
    await callbacks.run()
    await callbacks.stop(30_000)
    subject.clock.now += 3_600_000
  }
  const { get } = subject.jobs
  const unreadable = 'the master key deadbeef is missing'
  const closed = async (id: string) => {
    const job = await get(id)
    return job && id === lost.id ? { ...job, callback: null, unreadable } : job
  }
  Object.assign(subject.jobs, { get: closed })
  await turn()
  t.match(await subject.jobs.deliveries(fine.id), [{ state: 'delivered' }], 'others are told')
  const error = `its sealed address cannot be opened: ${unreadable}`
  t.match(await subject.jobs.deliveries(lost.id), [
    { state: 'retrying', error },
    { state: 'pending', attempt: 2 },
  ])
  Object.assign(subject.jobs, { get })
  await turn()
  t.match((await subject.jobs.deliveries(lost.id))[1], { state: 'delivered' }, 'the key is back')
  t.equal(posted.length, 2)

  const third = await kit.create({ callback: { url: 'https://hook.example/3', secret: 's' } })
  await kit.poll()
  Object.assign(subject.jobs, { get: async (id: string) => ({ ...(await get(id))!, callback: null, unreadable }) })
  for (let turns = 0; turns < 5; turns++) await turn()
  const states = (await subject.jobs.deliveries(third.id)).map(({ state }) => state)
  t.same(states, ['retrying', 'retrying', 'failed'], 'the last attempt ends it')
})

t.test('SI-07 a new secret signs the callbacks of new jobs, and attempts for earlier jobs keep theirs', async t => {
  const kit = await engineKit(t, { options: { results: 'proxy' } })
  kit.answer = ({ path }) => ({ body: path.endsWith('/content') ? FILM : { status: 'completed' } })
  kit.hear = () => ({ status: 500, text: '' })
  const callbacks = new Callbacks(kit.context, 'one')
  const secrets = new Map<string, string>()
  const attempts = async (secret: string) => {
    const { id } = await kit.create({ callback: { url: 'https://hook.example/in', secret } })
    secrets.set(id, secret)
    await kit.poll()
    await callbacks.run()
    await callbacks.stop(30_000)
    kit.subject.clock.now += 3_600_000
  }
  await attempts('the old secret')
  await attempts('the new secret')
  const signedBy = kit.posted.map(({ headers, body }) => {
    const { data } = JSON.parse(body) as { data: { id: string } }
    const secret = secrets.get(data.id)!
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
    t.equal(headers['webhook-signature'], `v1,${createHmac('sha256', secret).update(signed).digest('base64')}`)
    return secret
  })
  t.same(signedBy.sort(), ['the new secret', 'the old secret', 'the old secret'])
})

t.test('an alert is posted and tried again as the end of a job is, and given up with a line in the log', async t => {
  for (const [statuses, attempts, outcomes] of [
    [[500, 204], 2, ['retrying', 'delivered']],
    [[500, 500, 500], 3, ['retrying', 'retrying', 'failed']],
    [[410], 1, ['failed']],
  ] as const) {
    const kit = await engineKit(t, { options: { callback_attempts: 3 } })
    const { subject, posted } = kit
    const left = [...statuses]
    kit.hear = () => ({ status: left.shift()!, text: '' })
    const counted: string[] = []
    const lines: string[] = []
    const log = (_: unknown, message: string) => void lines.push(message)
    const context: typeof kit.context = {
      ...kit.context,
      log: { debug: log, info: log, warn: log, error: log },
      alerts: {
        messageOf: async alertId => ({
          ...{ url: 'https://hook.example/in', secret: 's', on: 'limit' },
          body: ({ id, type, createdAt }) => JSON.stringify({ alertId, id, type, createdAt }),
        }),
        count: (on, outcome) => void counted.push(`${on} ${outcome}`),
        charged: () => undefined,
        prune: async () => 0,
      },
    }
    const { orgId } = kit.principal
    const at = subject.clock.now
    const alert = { id: 'alert_1', key: 'k', rule: 'r', orgId, at, endsAt: undefined, body: '{}' }
    await subject.alerts.raise(alert, { id: 'evt_1', type: 'limit.reached' })
    const callbacks = new Callbacks(context, 'one')
    for (let turns = 0; turns < 5; turns++) {
      await callbacks.run()
      await callbacks.stop(30_000)
      subject.clock.now += 3_600_000
    }
    t.equal(posted.length, attempts)
    for (const { headers, body } of posted) {
      t.equal(headers['webhook-id'], 'evt_1')
      t.match(JSON.parse(body), { alertId: 'alert_1', id: 'evt_1', type: 'limit.reached' })
      const signed = `evt_1.${headers['webhook-timestamp']}.${body}`
      t.equal(headers['webhook-signature'], `v1,${createHmac('sha256', 's').update(signed).digest('base64')}`)
    }
    t.same(
      counted,
      outcomes.map(outcome => `limit ${outcome}`),
    )
    const isGivenUp = outcomes.at(-1) === 'failed'
    t.equal(lines.filter(line => line === 'alert callback given up').length, isGivenUp ? 1 : 0)
  }
})

t.test('J1 polls are never closer than their gap, which grows after two minutes', t => {
  const options = { poll: 5_000, poll_max: 30_000 } as Parameters<typeof pollGap>[0]
  for (const chance of [0, 0.5, 1]) {
    const gaps = Array.from({ length: 60 }, (_, minute) => pollGap(options, minute * 60_000, undefined, chance))
    t.ok(Math.min(...gaps) >= 5_000)
    t.ok(Math.max(...gaps) <= 33_000)
    t.ok(gaps.at(-1)! >= 27_000)
    t.equal(gaps[0], gaps[1], 'the same in the first two minutes')
  }
  t.equal(pollGap(options, 0, 20_000, 0), 20_000, 'what the provider names, where that is longer')
  t.equal(pollGap(options, 0, 1e12, 0), 300_000, 'five minutes at most')
  t.end()
})
