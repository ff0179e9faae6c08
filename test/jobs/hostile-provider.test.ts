/** Providers of jobs that lie, hang, or send what was not asked for: each job ends, once, and costs what was agreed. */
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import { errors } from '../../src/lib/error.ts'
import { type Asked, engineKit, FILM, type Said, SENT } from './kit.ts'

const MINUTE = 60_000
type Kit = Awaited<ReturnType<typeof engineKit>>

/** Polls until the job has ended, with an hour and a half at most. */
async function ended(kit: Kit, id: string) {
  for (let polls = 0; polls < 2_000; polls++) {
    const job = await kit.read(id)
    if (job.completedAt !== null) return job
    await kit.poll()
    kit.subject.clock.now += 10_000
  }
  throw new Error(`${id} does not end`)
}
const isPoll = ({ path, method }: Asked) => method === 'GET' && !path.endsWith('/content') && path.startsWith('/')
/** Answers to polls; results are the film. */
const polls =
  (...answers: readonly Said[]) =>
  (asked: Asked): Said => {
    if (!isPoll(asked)) return { body: FILM }
    const [next] = answers.length > 1 ? (answers as Said[]).splice(0, 1) : answers
    return next!
  }
const done = (extra: object = {}): Said => ({ body: { status: 'completed', ...extra } })

t.test('what is said of a job that makes no sense changes nothing of its state, its price or its row', async t => {
  for (const [says, report, expected] of [
    ['progress that falls, and is none', { status: 'in_progress', progress: -3.7 }, { progress: null }],
    ['progress beyond all', '{"status":"in_progress","progress":1e999}', { progress: 99 }],
    ['progress in parts', { status: 'in_progress', progress: 12.6 }, { progress: 13 }],
    ['another id', { id: 'up_other', status: 'in_progress' }, { upstreamId: 'up-video_1' }],
    ['a state that is no word', { status: { deep: ['completed'] } }, { state: 'queued' }],
    ['a prototype', '{"status":"in_progress","__proto__":{"status":"completed"}}', { state: 'in_progress' }],
  ] as const) {
    const kit = await engineKit(t)
    kit.answer = polls({ body: report })
    await kit.create()
    await kit.poll()
    t.match(await kit.read('video_1'), { completedAt: null, ...expected }, says)
  }
})

t.test('a state that holds more than any real one is a failed poll', async t => {
  const state = (count: number) => `{"status":"in_progress","seen":[${'0,'.repeat(count)}0]}`
  for (const [says, body, expected] of [
    ['as many values as are read', state(9_000), { state: 'in_progress', failures: 0 }],
    ['more values', state(10_000), { state: 'queued', failures: 1 }],
    [
      'more levels',
      `{"status":"in_progress","a":${'['.repeat(200)}${']'.repeat(200)}}`,
      { state: 'queued', failures: 1 },
    ],
    ['a word without end', { status: '-'.repeat(100_000) }, { state: 'queued', failures: 0 }],
  ] as const) {
    const kit = await engineKit(t)
    kit.answer = polls({ body })
    await kit.create()
    await kit.poll()
    t.match(await kit.read('video_1'), { completedAt: null, ...expected }, says)
  }
  const kit = await engineKit(t)
  kit.answer = polls({ body: { status: 'failed', error: { code: 'x', message: 'b'.repeat(1_000_000) } } })
  await kit.create()
  t.equal((await ended(kit, 'video_1')).error?.message.length, 1000)
})

t.test('what a provider repeats of the credential that it was sent is not shown', async t => {
  const message = `no access with ${SENT}`
  for (const [says, said] of [
    ['a job that has failed', { body: { status: 'failed', error: { code: 'x', message } } }],
    ['polls that fail', { status: 500, body: { error: { message } } }],
  ] as const) {
    const kit = await engineKit(t)
    kit.answer = polls(said)
    await kit.create()
    const shown = JSON.stringify((await ended(kit, 'video_1')).error)
    t.match(shown, /no access with \*\*\*/, says)
    t.notMatch(shown, SENT, says)
  }
})

t.test('what a finished job reports is charged within what was requested, and its times are valid', async t => {
  for (const [says, report, cost] of [
    ['twice the length', { seconds: '8' }, 800_000_000n],
    ['more than twice', { seconds: '9' }, 400_000_000n],
    ['no number', { seconds: 'NaN' }, 400_000_000n],
    ['without end', { seconds: '1e999' }, 400_000_000n],
    ['a fraction of a time', { expires_at: 1_790_000_000.5 }, 400_000_000n],
    ['a time beyond all', '{"status":"completed","expires_at":1e999}', 400_000_000n],
    ['a time before all', { expires_at: -1e300 }, 400_000_000n],
  ] as const) {
    const kit = await engineKit(t)
    kit.answer = polls(typeof report === 'string' ? { body: report } : done(report))
    await kit.create()
    const job = await ended(kit, 'video_1')
    t.match(job, { state: 'completed', cost }, says)
    t.ok(Number.isSafeInteger(job.expiresAt), says)
    t.same(await kit.subject.usage.check(), [], says)
  }
})

t.test('tokens that a provider reports are charged for as far as they were expected', async t => {
  const price = { rates: { completion: 1_000_000n }, tiers: [] }
  for (const [tokens, charged] of [
    ['90000', 90_000n],
    ['200000', 200_000n],
    ['200001', 100_000n],
    ['1e300', 100_000n],
    ['1e999', 100_000n],
    ['1.6', 2n],
    ['-5', 0n],
  ] as const) {
    const kit = await engineKit(t, { wire: 'bytedance.videos', options: { results: 'proxy' }, price })
    const url = 'https://x.example/film'
    kit.answer = polls({
      body: `{"status":"succeeded","content":{"video_url":"${url}"},"usage":{"completion_tokens":${tokens}}}`,
    })
    const { id } = await kit.create()
    const job = await ended(kit, id)
    t.match(job, { state: 'completed', cost: charged * 1000n }, tokens)
  }
})

t.test('J8, UF-20 a provider that says nothing of use has the job failed in time, without a cost', async t => {
  for (const [says, said, code] of [
    ['500 for ever', { status: 500 }, 'poll_error'],
    ['404 for ever', { status: 404 }, 'poll_error'],
    ['a redirect', { status: 302, headers: { location: 'http://169.254.169.254/' } }, 'poll_error'],
    ['a page', { body: '<html>' }, 'poll_error'],
    ['a list', { body: '[]' }, 'poll_error'],
    ['a state of 2 MiB', { body: Buffer.alloc(2 * 1024 * 1024, ' ') }, 'poll_error'],
    ['levels without end', { body: '['.repeat(100_000) }, 'poll_error'],
    ['throttling for ever', { status: 429, headers: { 'retry-after': '1e9' } }, 'timeout'],
    ['a state that never ends', { body: { status: 'in_progress' } }, 'timeout'],
    ['an unknown word for ever', { body: { status: 'melting' } }, 'timeout'],
    ['a place of ours that is taken', { error: errors.providerBusy('acme') }, 'timeout'],
  ] as const) {
    const kit = await engineKit(t)
    kit.answer = polls(said as Said)
    await kit.create()
    t.match(await ended(kit, 'video_1'), { state: 'failed', error: { code }, cost: 0n }, says)
    const { held, used } = await kit.subject.ledger.balance(kit.principal.orgId)
    t.same([held, used], [0n, 0n], says)
  }
})

t.test('a node whose configuration lacks the provider leaves a job to others until its deadline', async t => {
  const kit = await engineKit(t)
  const catalog = kit.context.catalog()
  const configure = (known: typeof catalog) => Object.assign(kit.context, { catalog: () => known })
  configure({ ...catalog, providers: new Map() })
  kit.answer = polls(done())
  await kit.create()
  for (let minutes = 0; minutes < 10; minutes++) {
    kit.subject.clock.now += MINUTE
    t.equal(await kit.poll(), 1)
  }
  t.match(await kit.read('video_1'), { state: 'queued', failures: 0 })
  configure(catalog)
  t.match(await ended(kit, 'video_1'), { state: 'completed' })
})

t.test('a provider that hangs is given up within the lease, also when the job is canceled in the end', async t => {
  const kit = await engineKit(t, { options: { lease: 30, poll: 10, timeout: 40 } })
  kit.answer = () => ({ hang: true })
  await kit.create()
  await kit.poll()
  t.match(await kit.read('video_1'), { state: 'queued', failures: 1 })
  kit.subject.clock.now += MINUTE
  await kit.poll()
  t.match(await kit.read('video_1'), { state: 'failed', error: { code: 'timeout' } })
  t.equal(kit.asked.at(-1)?.method, 'DELETE')
})

t.test('a result that is none fails the job; one that is not there yet is asked for again', async t => {
  const keep = { results: 'keep' } as const
  const transient: Said[] = [{ status: 404 }, { status: 503 }, { body: FILM }]
  for (const [says, results, expected] of [
    ['a page', [{ body: '<html>' }], { state: 'failed', error: { code: 'upstream_error' } }],
    ['nothing', [{ body: '' }], { state: 'failed', error: { code: 'upstream_error' } }],
    ['more than may be', [{ body: Buffer.concat([FILM, Buffer.alloc(100_000)]) }], { state: 'failed' }],
    [
      'a place inside',
      [{ error: errors.invalidAnswer('an address in it is not one that may be fetched from') }],
      { state: 'failed' },
    ],
    ['nobody there', [{ error: errors.unreachable('closed') }], { state: 'failed', error: { code: 'upstream_error' } }],
    ['a refusal', [{ status: 403 }], { state: 'failed', error: { code: 'upstream_error' } }],
    ['what comes in the end', transient, { state: 'completed', result: { kind: 'blob', bytes: FILM.length } }],
  ] as const) {
    const kit = await engineKit(t, { options: keep })
    const left = [...(results as readonly Said[])]
    kit.answer = asked => (isPoll(asked) ? done() : left.length > 1 ? left.shift()! : left[0]!)
    await kit.create()
    const job = await ended(kit, 'video_1')
    t.match(job, expected, says)
    t.equal(kit.blobs.size, job.state === 'completed' ? 1 : 0, `${says}: nothing is left behind`)
    t.equal(job.cost, job.state === 'completed' ? 400_000_000n : 0n, says)
    t.same(await kit.subject.usage.check(), [], says)
  }
})

t.test('a result in the answer is kept while it arrives, in pieces of any size', async t => {
  const film = Buffer.concat([FILM, Buffer.from([0xff, 0xfe, 0x3e, 0x3f])])
  const base64 = film.toString('base64').replaceAll('/', '\\/').replaceAll('=', '\\u003d')
  const text = JSON.stringify({ done: true, 'bytesBase64Encoded"': 'no', response: { videos: [{ x: 1 }] } }).replace(
    '{"x":1}',
    `{"bytesBase64Encoded" : "${base64}","mimeType":"video/mp4"}`,
  )
  for (const size of [1, 2, 3, 7, 64, 100_000]) {
    const kit = await engineKit(t, { wire: 'gemini.vertex-videos' })
    const whole = Buffer.from(text)
    const body = Array.from({ length: Math.ceil(whole.length / size) }, (_, at) =>
      whole.subarray(at * size, (at + 1) * size),
    )
    kit.answer = () => ({ body })
    await kit.create()
    t.match(await ended(kit, 'video_1'), { state: 'completed', result: { kind: 'blob' } }, `${size}`)
    t.same([...kit.blobs.values()], [film], `${size}`)
  }
  for (const [says, body, state] of [
    ['no film', text.replace(base64, 'AAAA'), 'failed'],
    ['a film that is too large', text.replace(base64, FILM.subarray(0, 5010).toString('base64').repeat(30)), 'failed'],
    ['a film that breaks off', text.slice(0, 2000), 'failed'],
    [
      'a failure with a film in it',
      text.replace('"done":true', '"done":true,"error":{"code":3,"message":"no"}'),
      'failed',
    ],
  ] as const) {
    const kit = await engineKit(t, { wire: 'gemini.vertex-videos' })
    kit.answer = () => ({ body })
    await kit.create()
    t.match(await ended(kit, 'video_1'), { state }, says)
    t.equal(kit.blobs.size, 0, says)
  }
})

t.test('a canceled job ends as it did at its provider, and goes on where the provider goes on', async t => {
  const answers = (before: string, status: number, after: string) => {
    let isCanceled = false
    return (asked: Asked): Said => {
      if (asked.method === 'DELETE') {
        isCanceled = true
        return { status }
      }
      return { body: { status: isCanceled ? after : before } }
    }
  }
  for (const [says, answer, expected] of [
    ['it agrees', answers('in_progress', 200, 'canceled'), { state: 'canceled', cost: 0n }],
    ['it forgets the job', answers('in_progress', 204, 'unknown'), { state: 'canceled', cost: 0n }],
    ['it was ready', answers('completed', 200, 'canceled'), { state: 'completed', cost: 400_000_000n }],
    ['it became ready', answers('in_progress', 409, 'completed'), { state: 'completed', cost: 400_000_000n }],
    ['it refuses', answers('in_progress', 400, 'in_progress'), undefined],
  ] as const) {
    const kit = await engineKit(t, { options: { results: 'proxy' } })
    kit.answer = answer
    const job = await kit.create()
    if (expected) t.match(await kit.jobs.cancel(job), expected, says)
    else {
      await t.rejects(kit.jobs.cancel(job), { code: 'video_not_cancelable' }, says)
      t.equal(await kit.poll(), 1, 'it is polled as before')
    }
    t.same(await kit.subject.usage.check(), [], says)
  }
})

t.test('parts of a result that were not asked for, or are none, are not passed on', async t => {
  const kit = await engineKit(t, { options: { results: 'proxy' } })
  let said: Said = {}
  kit.answer = asked => (isPoll(asked) ? done() : said)
  const { id } = await kit.create()
  await kit.poll()
  const job = await kit.read(id)
  const get = (range: string | undefined) =>
    kit.jobs.content(job, { range, ifRange: undefined, isHead: false, signal: new Cancellation() })
  for (const [range, part] of [
    [undefined, 'bytes 0-9/5012'],
    ['bytes=0-9', 'bytes 9-0/5012'],
    ['bytes=0-9', 'bytes 0-9/5'],
    ['bytes=0-9', 'lines 0-9/5012'],
    ['bytes=0-9', ''],
  ] as const) {
    said = { status: 206, headers: { 'content-range': part, 'content-length': '10' }, body: FILM.subarray(0, 10) }
    await t.rejects(get(range), { code: 'upstream_invalid_response' }, `${range}: ${part}`)
  }
  said = { status: 206, headers: { 'content-range': 'bytes 0-9/5012', 'content-type': 'text/html' }, body: FILM }
  t.match(await get('bytes=0-9'), { status: 206, type: 'video/mp4' })
})

t.test('a result whose kept address cannot be opened is read where its provider says that it is', async t => {
  const kit = await engineKit(t, { options: { results: 'proxy' } })
  kit.answer = asked => (isPoll(asked) ? done() : { body: FILM })
  const { id } = await kit.create()
  await kit.poll()
  const job = { ...(await kit.read(id)), result: null, unreadable: 'the master key deadbeef is missing' }
  const wanted = { range: undefined, ifRange: undefined, isHead: false, signal: new Cancellation() }
  const { status, chunks } = await kit.jobs.content(job, wanted)
  const got: Buffer[] = []
  for await (const chunk of chunks) got.push(chunk)
  t.equal(status, 200)
  t.same(Buffer.concat(got), FILM)
  kit.answer = () => ({ status: 404 })
  await t.rejects(kit.jobs.content(job, wanted), { code: 'not_found' }, 'the provider has dropped it')
})

t.test('a kept result whose file another machine has is no expired one', async t => {
  const kit = await engineKit(t, { options: { results: 'keep' } })
  kit.answer = polls(done())
  const { id } = await kit.create()
  await kit.poll()
  kit.blobs.clear()
  kit.context.blobs.read = async () => undefined
  const wanted = { range: undefined, ifRange: undefined, isHead: false, signal: new Cancellation() }
  await t.rejects(kit.jobs.content(await kit.read(id), wanted), {
    ...{ status: 503, code: 'store_unavailable' },
    cause: { message: /jobs\.blobs/ },
  })
})

t.test(
  'a range outside of a result is a 416 while If-Range names that result, and the whole of it otherwise',
  async t => {
    const kit = await engineKit(t, { options: { results: 'proxy' } })
    const headers = { etag: '"new"', 'content-length': String(FILM.length) }
    let refusal: Readonly<Record<string, string>> = {}
    kit.answer = asked => {
      if (isPoll(asked)) return done()
      return asked.headers.range === undefined ? { headers, body: FILM } : { status: 416, headers: refusal }
    }
    const { id } = await kit.create()
    await kit.poll()
    const job = await kit.read(id)
    const get = (ifRange: string | undefined) =>
      kit.jobs.content(job, { range: 'bytes=99999-', ifRange, isHead: false, signal: new Cancellation() })
    const outside = { 'content-range': `bytes */${FILM.length}` }
    for (const [says, named, ifRange, status] of [
      ['no If-Range', outside, undefined, 416],
      ['the result, named by the refusal', { ...outside, etag: '"new"' }, '"new"', 416],
      ['the result, not named by the refusal', outside, '"new"', 416],
      ['an earlier result', outside, '"old"', 200],
      ['an earlier result, the refusal names another', { ...outside, etag: '"new"' }, '"old"', 200],
      ['a weak validator', outside, 'W/"new"', 200],
    ] as const) {
      refusal = named
      if (status === 416) {
        await t.rejects(get(ifRange), { code: 'range_not_satisfiable' }, says)
        continue
      }
      const { chunks, ...head } = await get(ifRange)
      t.equal(head.status, status, says)
      let bytes = 0
      for await (const chunk of chunks) bytes += chunk.length
      t.equal(bytes, FILM.length, says)
    }
  },
)

t.test('polls count for the health of their provider, but not what an organization may not keep', async t => {
  const kit = await engineKit(t, { options: { results: 'proxy' } })
  const { principal, subject } = kit
  await kit.create()
  for (const said of [{ status: 502 }, { body: 'no JSON' }, { body: { status: 'in_progress' } }, { status: 429 }]) {
    kit.answer = () => said
    await kit.poll()
    subject.clock.now += 10 * MINUTE
  }
  t.same(
    kit.reports,
    [502, 200, undefined, 429].map(status => [principal.orgId, status]),
  )

  const full = await engineKit(t, { wire: 'gemini.vertex-videos', options: { max_kept: 10 } })
  const video = { bytesBase64Encoded: FILM.toString('base64'), mimeType: 'video/mp4' }
  full.answer = () => ({ body: { done: true, response: { videos: [video] } } })
  await full.create()
  await full.poll()
  t.equal(full.asked.length, 1)
  t.same(full.reports, [])
})
