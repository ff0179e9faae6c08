/** Tenants that take what belongs to others: places of callbacks and of streams, room for results, tokens. */
import { createHmac } from 'node:crypto'
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { CallbackAnswer, ContentRequest } from '../../src/core/ports.ts'
import { Callbacks } from '../../src/jobs/callbacks.ts'
import { isValidToken, tokenFor } from '../../src/jobs/view.ts'
import { engineKit, FILM, type Said } from './kit.ts'

const whole: ContentRequest = { range: undefined, ifRange: undefined, isHead: false, signal: new Cancellation() }
const done = (result: Said) => (asked: { path: string }) =>
  asked.path.endsWith('/content') ? result : { body: { status: 'completed' } }

t.test('a host that does not answer keeps callbacks to others waiting by no more than eight places', async t => {
  const kit = await engineKit(t, { options: { results: 'proxy' } })
  kit.answer = done({ body: FILM })
  const tenants = await Promise.all(Array.from({ length: 12 }, () => kit.subject.organization('open', 0n)))
  const to = (host: string) => ({ url: `https://${host}/in`, secret: 's' })
  for (const principal of tenants) {
    for (let n = 0; n < 10; n++) await kit.create({ callback: to('tarpit.example'), principal })
  }
  const { id } = await kit.create({ callback: to('quick.example') })
  while ((await kit.poll()) > 0) await kit.settled()
  let release: (posted: CallbackAnswer) => void = () => undefined
  const silence = new Promise<CallbackAnswer>(resolve => {
    release = resolve
  })
  kit.hear = url => (url.includes('tarpit') ? (silence as unknown as CallbackAnswer) : { status: 204, text: '' })
  let ends = 0
  const callbacks = new Callbacks(kit.context, 'one', () => ends++)
  for (let turns = 0; turns < 5; turns++) {
    await callbacks.run()
    await kit.settled()
  }
  t.equal(kit.posted.filter(({ url }) => url.includes('tarpit')).length, 8)
  t.match(await kit.subject.jobs.deliveries(id), [{ state: 'delivered', attempt: 1 }])
  kit.subject.clock.now += 1_000
  t.equal(await callbacks.run(), 0, 'what is postponed again keeps the engine from no sleep')
  t.equal(ends, 1, 'and the end of one wakes it')
  release({ status: 204, text: '' })
  for (let turns = 0; turns < 60; turns++) {
    kit.subject.clock.now += 1_000
    await callbacks.run()
    await kit.settled()
  }
  t.equal(new Set(kit.posted.map(({ headers }) => headers['webhook-id'])).size, 121, 'each is told in the end')
  t.equal(kit.posted.length, 121, 'and once, as each was heard')
})

t.test('one organization leaves places at a host to others', async t => {
  const kit = await engineKit(t, { options: { results: 'proxy' } })
  kit.answer = done({ body: FILM })
  const other = await kit.subject.organization('open', 0n)
  const callback = { url: 'https://hooks.example/in', secret: 's' }
  for (let n = 0; n < 10; n++) await kit.create({ callback, principal: other })
  const { id } = await kit.create({ callback })
  while ((await kit.poll()) > 0) await kit.settled()
  kit.hear = () => new Promise<never>(() => undefined) as never
  const callbacks = new Callbacks(kit.context, 'one')
  for (let turns = 0; turns < 3; turns++) {
    await callbacks.run()
    await kit.settled()
  }
  t.equal(kit.posted.length, 5)
  t.ok(kit.posted.some(({ body }) => body.includes(id)))
})

t.test('a job that is deleted sends no further callback', async t => {
  const kit = await engineKit(t, { options: { results: 'proxy' } })
  kit.answer = done({ body: FILM })
  const job = await kit.create({ callback: { url: 'https://hook.example/in', secret: 's' } })
  await kit.poll()
  await kit.jobs.remove(job)
  const callbacks = new Callbacks(kit.context, 'one')
  await callbacks.run()
  await kit.settled()
  t.same(kit.posted, [])
  t.match(await kit.subject.jobs.deliveries(job.id), [{ state: 'failed' }])
})

t.test('a job is polled in its time beside 5,000 of another organization', async t => {
  const kit = await engineKit(t)
  const other = await kit.subject.organization('open', 0n)
  await Promise.all(Array.from({ length: 5_000 }, () => kit.create({ principal: other })))
  const { id } = await kit.create()
  for (let second = 0; second < 60; second++) {
    await kit.poll()
    kit.subject.clock.now += 1_000
  }
  t.equal(kit.asked.filter(({ path }) => path.endsWith(`/up-${id}`)).length, 12, 'a minute of gaps of five seconds')
})

t.test('polls, cancels and deletes of a job at once give one end, one charge and one event', async t => {
  const ends = new Set<string>()
  // As many as there are orders of waits and answers.
  for (let round = 0; round < 28; round++) {
    const kit = await engineKit(t, { options: { results: 'proxy' } })
    const { jobs, ledger, usage, clock } = kit.subject
    let polls = 0
    kit.answer = ({ path, method }) => {
      if (path.endsWith('/content')) return { body: FILM }
      if (method === 'DELETE') return { body: {} }
      return { body: { status: polls++ < round % 4 ? 'in_progress' : 'completed' } }
    }
    const job = await kit.create({ callback: { url: 'https://hook.example/in', secret: 's' } })
    const acts = [
      () => kit.poll(),
      () => kit.jobs.cancel(job),
      () => kit.jobs.cancel(job),
      () => kit.poll(),
      () => kit.jobs.remove(job),
      () => kit.jobs.remove(job),
    ]
    await Promise.all(
      acts.map(async (act, place) => {
        for (let turns = (round * (place + 3)) % 7; turns > 0; turns--)
          await new Promise<void>(resolve => setImmediate(resolve))
        await act()
      }),
    )
    clock.now += 60_000
    t.equal(await kit.poll(), 0, 'it has ended')
    const { state, cost } = await kit.read(job.id)
    const charged = state === 'completed' ? 400_000_000n : 0n
    t.equal(cost, charged, state)
    t.match(await ledger.balance(kit.principal.orgId), { used: charged, held: 0n }, state)
    t.equal((await jobs.deliveries(job.id)).length, 1, state)
    t.same(await usage.check(), [], state)
    ends.add(state)
  }
  t.same([...ends].sort(), ['canceled', 'completed'], 'both ends occur')
})

t.test('each reader of results takes a place, of which one organization gets a share', async t => {
  const kit = await engineKit(t, { options: { results: 'keep' } })
  kit.answer = done({ body: FILM })
  const other = await kit.subject.organization('open', 0n)
  const [mine, theirs] = [await kit.create(), await kit.create({ principal: other })]
  while ((await kit.poll()) > 0);
  const open = async (id: string) => kit.jobs.content(await kit.read(id), whole)
  const streams = [await open(theirs.id), await open(mine.id), await open(mine.id)]
  await t.rejects(open(mine.id), { code: 'overloaded' }, 'a quarter of eight, beside another one')
  streams.push(await open(theirs.id))
  const read = async (chunks: AsyncIterable<Buffer>) => {
    const got: Buffer[] = []
    for await (const chunk of chunks) got.push(chunk)
    return Buffer.concat(got)
  }
  t.same(await read(streams[1]!.chunks), FILM)
  streams.push(await open(mine.id))
  await t.rejects(open(mine.id), { code: 'overloaded' })
  // Nobody begins to read this one.
  await streams[2]!.chunks[Symbol.asyncIterator]().return?.()
  streams.push(await open(mine.id))
  await t.rejects(kit.jobs.content(await kit.read(mine.id), { ...whole, range: 'bytes=99999-' }), {
    code: 'overloaded',
  })
  t.same(await read(streams[0]!.chunks), FILM)
})

t.test('readers of one organization leave some of many places to others', async t => {
  const kit = await engineKit(t, { options: { results: 'keep', streams: 16 } })
  kit.answer = done({ body: FILM })
  const other = await kit.subject.organization('open', 0n)
  const [mine, theirs] = [await kit.create(), await kit.create({ principal: other })]
  while ((await kit.poll()) > 0);
  const open = async (id: string) => kit.jobs.content(await kit.read(id), whole)
  const streams = await Promise.all(Array.from({ length: 15 }, () => open(mine.id)))
  await t.rejects(open(mine.id), { code: 'overloaded' })
  streams.push(await open(theirs.id))
  for (const { chunks } of streams) await chunks[Symbol.asyncIterator]().return?.()
})

t.test('results of one organization take half of the room at most; then they are read from their provider', async t => {
  const kit = await engineKit(t, { options: { results: 'keep', max_kept: 4 * FILM.length } })
  kit.answer = done({ body: FILM })
  const other = await kit.subject.organization('open', 0n)
  const made = []
  for (let n = 0; n < 3; n++) made.push(await kit.create())
  made.push(await kit.create({ principal: other }))
  for (const _ of made) {
    const [job] = await kit.subject.jobs.claim(kit.jobs.engine.lease(1), 8)
    await kit.jobs.engine.poller.poll(job!, new Cancellation())
  }
  const kinds = await Promise.all(made.map(async ({ id }) => (await kit.read(id)).result?.kind))
  t.same(kinds.sort(), ['blob', 'blob', 'blob', 'own'])
  t.equal((await kit.subject.jobs.keptBytes(other.orgId)).own, FILM.length)
})

t.test('copies that run at once see what the others have written', async t => {
  const kit = await engineKit(t, { options: { results: 'keep', max_kept: 4 * FILM.length } })
  kit.answer = done({ body: [FILM.subarray(0, 2000), FILM.subarray(2000)] })
  const other = await kit.subject.organization('open', 0n)
  const made = [await kit.create({ principal: other })]
  for (let n = 0; n < 4; n++) made.push(await kit.create())
  const claimed = await kit.subject.jobs.claim(kit.jobs.engine.lease(8), 8)
  t.equal(claimed.length, 5)
  await Promise.all(claimed.map(job => kit.jobs.engine.poller.poll(job, new Cancellation())))
  const kept = async () => kit.subject.jobs.keptBytes(kit.principal.orgId)
  t.same(await kept(), { all: 3 * FILM.length, own: 2 * FILM.length })
  t.equal(kit.blobs.size, 3)
})

t.test('a token is of one job, one key and one time, in one spelling', t => {
  const [key, older] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const now = 1_790_000_000_000
  const good = tokenFor(key, 'log', now + 60_000)
  const [header = '', claims = '', mac = ''] = good.split('.')
  const forged = (head: object, body: object, by = key) => {
    const signed = [head, body].map(part => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
    return `${signed}.${createHmac('sha256', by).update(signed).digest('base64url')}`
  }
  const exp = Math.floor(now / 1000) + 60
  const isValid = (token: string, logId = 'log', at = now) => isValidToken([key, older], token, logId, at)
  t.ok(isValid(good))
  t.ok(isValid(tokenFor(older, 'log', now + 60_000)), 'a key that was the newest one before')
  for (const [says, token, logId, at] of [
    ['another job', good, 'other', now],
    ['too late', good, 'log', now + 60_000],
    ['alg none', forged({ alg: 'none' }, { l: 'log', exp }), 'log', now],
    ['a kid', forged({ alg: 'HS256', kid: '1' }, { l: 'log', exp }), 'log', now],
    ['a time in the past', forged({ alg: 'HS256' }, { l: 'log', exp: exp - 3600 }), 'log', now],
    ['no time', forged({ alg: 'HS256' }, { l: 'log' }), 'log', now],
    ['a key that is not ours', forged({ alg: 'HS256' }, { l: 'log', exp }, Buffer.alloc(32, 3)), 'log', now],
    ['junk behind it', `${good}x`, 'log', now],
    ['a part more', `${good}.`, 'log', now],
    ['padding', `${good}=`, 'log', now],
    ['no signature', `${header}.${claims}.`, 'log', now],
    [
      'other claims',
      `${header}.${Buffer.from('{"l":"other","exp":9999999999}').toString('base64url')}.${mac}`,
      'other',
      now,
    ],
    ['another spelling of its last bits', good.slice(0, -1) + (good.endsWith('A') ? 'B' : 'A'), 'log', now],
    ['nothing', '', 'log', now],
  ] as const) {
    t.notOk(isValid(token, logId, at), says)
  }
  t.end()
})
