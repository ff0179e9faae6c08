/** Two holders of one store, in any order of claims, answers, crashes, cancels and time: the books stay right. */
import fc from 'fast-check'
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import { isFinal } from '../../src/core/job.ts'
import type { Job, JobAnswer, JobStore } from '../../src/core/ports.ts'
import { Callbacks } from '../../src/jobs/callbacks.ts'
import type { JobsContext } from '../../src/jobs/context.ts'
import { Poller } from '../../src/jobs/poller.ts'
import { JobProvider } from '../../src/jobs/provider.ts'
import { Jobs } from '../../src/jobs/runner.ts'
import { errors } from '../../src/lib/error.ts'
import { runs } from '../helpers/runs.ts'
import { engineKit, FILM } from './kit.ts'

const LEASE_MS = 30_000
const SHARE = 8
const HELD = 400_000_000n
const INTERRUPTED = { code: 'interrupted', message: 'cut off' }

const step = fc.oneof(
  fc.record({ does: fc.constant('create' as const), withCallback: fc.boolean() }),
  fc.record({ does: fc.constant('lose' as const), withCallback: fc.boolean() }),
  fc.record({ does: fc.constant('claim' as const), holder: fc.nat(1) }),
  fc.record({
    does: fc.constant('answer' as const),
    at: fc.nat(9),
    with: fc.constantFrom('queued', 'in_progress', 'completed', 'failed', 'expired', 'unknown', '500', '404', '429'),
    progress: fc.integer({ min: -5, max: 120 }),
  }),
  fc.record({ does: fc.constant('pass' as const), ms: fc.constantFrom(1_000, 10_000, LEASE_MS, 20 * 60_000) }),
  fc.record({ does: fc.constant('crash' as const), holder: fc.nat(1) }),
  fc.record({ does: fc.constant('cancel' as const), holder: fc.nat(1), job: fc.nat(9) }),
  fc.record({ does: fc.constant('tell' as const), holder: fc.nat(1), status: fc.constantFrom(204, 500, 410) }),
  fc.record({ does: fc.constant('remove' as const), job: fc.nat(9) }),
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

type Kit = Awaited<ReturnType<typeof engineKit>>
interface Asked {
  readonly method: string
  readonly resolve: (answer: JobAnswer) => void
}

/** The newest fence of each job; a write with another one must change nothing. */
class Fences {
  readonly #newest = new Map<string, number>()
  broken: string | undefined

  async seen(name: keyof JobStore, args: unknown[], result: unknown): Promise<void> {
    const value = await result
    const claimed = name === 'claim' ? (value as Job[]) : name === 'claimOne' && value ? [value as Job] : []
    for (const { id, fence } of claimed) this.#newest.set(id, fence)
    const isWrite = name === 'move' || name === 'end' || name === 'renew'
    const [id, fence] = args as [string, number]
    if (isWrite && value === true && fence !== this.#newest.get(id)) this.broken = `${name} of ${id} by fence ${fence}`
  }
}

/** A process: after its crash nothing that it does reaches the store. */
class Holder {
  readonly owner: string
  readonly context: JobsContext
  readonly poller: Poller
  readonly callbacks: Callbacks
  readonly jobs: Jobs
  readonly #signals = new Set<Cancellation>()
  readonly #work = new Set<Promise<unknown>>()
  #isDead = false

  constructor(kit: Kit, owner: string, asked: Asked[], fences: Fences) {
    this.owner = owner
    const store = new Proxy(kit.context.store, {
      get:
        (target, name: keyof JobStore) =>
        (...args: unknown[]) => {
          if (this.#isDead) return Promise.reject(errors.shuttingDown())
          const result = (target[name] as (...args: unknown[]) => unknown)(...args)
          void fences.seen(name, args, result)
          return result
        },
    })
    const ask: JobsContext['caller']['own'] = (_, { method = 'POST', path }, { signal }) => {
      if (path.endsWith('/content')) return Promise.resolve(answerOf(200, FILM))
      if (this.#isDead) return Promise.reject(errors.shuttingDown())
      return new Promise((resolve, reject) => {
        asked.push({ method, resolve })
        this.#signals.add(signal)
        signal.listen(() => reject(signal.reason))
      })
    }
    const caller: JobsContext['caller'] = { own: ask, at: () => Promise.reject(errors.unreachable('no')) }
    // A write that fails is tried again for a lease, by the clock on the wall: not by a process that has ended.
    const options = () => ({ ...kit.context.options(), lease: this.#isDead ? 0 : LEASE_MS })
    this.context = { ...kit.context, store, options, caller }
    this.poller = new Poller(this.context, new JobProvider(this.context))
    this.callbacks = new Callbacks(this.context, owner)
    this.jobs = new Jobs(this.context)
  }

  async claim(now: number): Promise<void> {
    const lease = { owner: this.owner, now, until: now + LEASE_MS, limit: 3 }
    for (const job of await this.context.store.claim(lease, SHARE)) {
      const signal = new Cancellation()
      this.#signals.add(signal)
      this.#begin(this.poller.poll(job, signal))
    }
  }

  cancel(job: Job): void {
    this.#begin(this.jobs.cancel(job).catch(() => undefined))
  }

  #begin(work: Promise<unknown>): void {
    this.#work.add(work)
    void work.then(() => this.#work.delete(work))
  }

  crash(): void {
    this.#isDead = true
    for (const signal of this.#signals) signal.abort(errors.shuttingDown())
  }

  /** Never resolves where a poll or a cancel goes on after the crash: it would keep its timers. */
  async ended(): Promise<void> {
    await Promise.all(this.#work)
  }
}

const answerOf = (status: number, body: Buffer): JobAnswer => ({
  status,
  header: () => undefined,
  chunks: (async function* () {
    yield body
  })(),
  destroy: () => undefined,
})

async function play(steps: readonly Step[]): Promise<void> {
  const ends: (() => unknown)[] = []
  const kit = await engineKit({ teardown: end => ends.push(end) }, { options: { results: 'keep', lease: LEASE_MS } })
  const { subject, principal } = kit
  const asked: Asked[] = []
  const fences = new Fences()
  const all: Holder[] = []
  const holder = () => {
    const one = new Holder(kit, `holder-${all.length + 1}`, asked, fences)
    all.push(one)
    return one
  }
  const holders = [holder(), holder()]
  const ids: string[] = []
  const finals = new Map<string, string>()
  const callback = { url: 'https://hook.example/in', secret: 's' }

  const check = async () => {
    const differences = await subject.usage.check()
    if (differences.length > 0) throw new Error(differences.join('; '))
    if (fences.broken) throw new Error(fences.broken)
    let running = 0
    let completed = 0
    for (const id of ids) {
      const job = await kit.read(id)
      const before = finals.get(id)
      if (before !== undefined && before !== `${job.state} ${job.cost}`) throw new Error(`${id} was ${before}`)
      if (isFinal(job.state)) finals.set(id, `${job.state} ${job.cost}`)
      else running++
      if (job.state === 'completed') completed++
      const events = new Set((await subject.jobs.deliveries(id)).map(({ eventId }) => eventId))
      if (events.size > 1) throw new Error(`${id} has ${events.size} events`)
    }
    const { held, used } = await subject.ledger.balance(principal.orgId)
    if (held !== BigInt(running) * HELD) throw new Error(`${held} is held for ${running} jobs`)
    if (used !== BigInt(completed) * HELD) throw new Error(`${used} was charged for ${completed} jobs`)
  }

  const answer = (at: number, said: string, progress = 0): void => {
    const [one] = asked.splice(at % Math.max(1, asked.length), 1)
    if (!one) return
    const status = Number(said)
    if (status > 0) one.resolve(answerOf(status, Buffer.from('{}')))
    else one.resolve(answerOf(200, Buffer.from(JSON.stringify({ status: said, progress }))))
  }

  const take: { [D in Step['does']]: (step: Extract<Step, { does: D }>) => unknown } = {
    async create({ withCallback }) {
      const job = await kit.create(withCallback ? { callback } : {})
      ids.push(job.id)
    },
    /** Its process ends while it is created: recovery gives the hold back. */
    async lose({ withCallback }) {
      const job = await kit.begin(withCallback ? { callback } : {})
      ids.push(job.id)
      await subject.ledger.void(job.hold)
      const event = (id: string) => ({ id: `evt_${id}`, type: 'video.failed' })
      await subject.jobs.interruptLost(INTERRUPTED, event, subject.clock.now)
    },
    claim: ({ holder }) => holders[holder]!.claim(subject.clock.now),
    answer: ({ at, with: said, progress }) => answer(at, said, progress),
    pass({ ms }) {
      subject.clock.now += ms
    },
    crash({ holder: at }) {
      holders[at]!.crash()
      holders[at] = holder()
    },
    async cancel({ holder, job }) {
      const id = ids[job]
      if (id === undefined) return
      const lease = { owner: 'probe', now: subject.clock.now, until: subject.clock.now, limit: 1 }
      // A cancel waits for a lease by the clock on the wall.
      const free = await holders[holder]!.context.store.claimOne(id, lease)
      if (free) holders[holder]!.cancel(free)
    },
    async tell({ holder, status }) {
      kit.hear = () => ({ status, text: '' })
      await holders[holder]!.callbacks.run()
    },
    async remove({ job }) {
      const id = ids[job]
      if (id !== undefined && finals.has(id)) await kit.jobs.remove(await kit.read(id))
    },
  }
  try {
    for (const one of steps) {
      await (take[one.does] as (step: Step) => unknown)(one)
      await kit.settled()
      await check()
    }
    for (const [at, one] of holders.entries()) {
      one.crash()
      holders[at] = holder()
    }
    kit.hear = () => ({ status: 204, text: '' })
    for (let rounds = 0; rounds < 60; rounds++) {
      subject.clock.now += 10 * 60_000
      await holders[rounds % 2]!.claim(subject.clock.now)
      await kit.settled()
      while (asked.length > 0) {
        answer(0, 'completed')
        await kit.settled()
      }
      await holders[rounds % 2]!.callbacks.run()
      await kit.settled()
      const { running, callbacks } = await subject.jobs.status(subject.clock.now)
      if (Object.keys(running).length === 0 && callbacks === 0) break
    }
    await check()
    for (const id of ids) if (!finals.has(id)) throw new Error(`${id} has no end`)
    for (const one of all) {
      one.crash()
      await one.ended()
    }
  } finally {
    for (const one of holders) one.crash()
    for (const end of ends) await end()
  }
}

/** A process that ends after its provider has agreed to a cancel, before the last poll has an answer. */
const CRASH_IN_CANCEL: Step[] = [
  { does: 'create', withCallback: false },
  { does: 'cancel', holder: 0, job: 0 },
  { does: 'answer', at: 0, with: 'in_progress', progress: 0 },
  { does: 'answer', at: 0, with: 'unknown', progress: 0 },
  { does: 'crash', holder: 0 },
]

t.test('J17 each job ends once, is charged once and is reported with one id, whatever happens in between', async t => {
  let played = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60, size: 'max' }), async steps => {
      await play(steps)
      played++
    }),
    { numRuns: runs(300), examples: [[CRASH_IN_CANCEL]] },
  )
  t.equal(played, runs(300))
})
