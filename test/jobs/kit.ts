/** An engine of jobs on stores in memory: providers are functions, blobs stand in a map, and time is a number. */
import { createHash } from 'node:crypto'
import { plugin as bytedance } from '../../plugins/bytedance.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import type { JobOperation } from '../../src/core/job.ts'
import type { Price } from '../../src/core/money.ts'
import { writtenPrice } from '../../src/core/money.ts'
import type { Policies } from '../../src/core/policy.ts'
import type { CallbackAnswer, Job, JobAnswer, JobCall, JobCallback, Principal } from '../../src/core/ports.ts'
import type { Credential } from '../../src/core/provider-settings.ts'
import type { Target, Translator } from '../../src/core/translator.ts'
import type { WireRequest } from '../../src/core/wire.ts'

import type { JobOptions, JobsContext } from '../../src/jobs/context.ts'
import { Poller } from '../../src/jobs/poller.ts'
import { JobProvider } from '../../src/jobs/provider.ts'
import { Jobs } from '../../src/jobs/runner.ts'
import { videos } from '../../src/operations/videos/index.ts'
import { target as targetFor } from '../plugins/wire-kit.ts'
import { HOUR, identity, memorySubject, type Subject, written } from '../stores/subject.ts'

/** What the caller of the engine has sent as its credential: a token that was made of the configured one. */
export const SENT = 'ya29.a0AfH6SMBtoken'

export const FILM = Buffer.concat([Buffer.from('\0\0\0\x18ftypisom', 'latin1'), Buffer.alloc(5000, 7)])

/** What a provider answers with. `hang`: nothing, until the call is given up. */
export interface Said {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object | string | Buffer | readonly Buffer[]
  readonly hang?: boolean
  /** No answer comes at all. */
  readonly error?: Error
}
export interface Asked {
  readonly method: string
  /** An address where the provider gave one. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

type Scope = Parameters<typeof memorySubject>[0]
interface JobFacts {
  readonly id?: string
  readonly callback?: JobCallback
  readonly principal?: Principal
}
interface Kit {
  readonly subject: Subject
  readonly principal: Principal
  readonly jobs: Jobs
  readonly context: JobsContext
  readonly asked: Asked[]
  readonly posted: { url: string; headers: Record<string, string>; body: string }[]
  readonly blobs: Map<string, Buffer>
  /** Polls as they count for the health of the provider: of an organization, and the status of one that failed. */
  readonly reports: [org: string, status: number | undefined][]
  /** Answers to what is asked of the provider. */
  answer: (asked: Asked) => Said
  /** Answers to callbacks. */
  hear: (url: string) => CallbackAnswer
  /** A job that is being created, and one that its provider has. */
  begin(changes?: JobFacts): Promise<Job>
  create(changes?: JobFacts): Promise<Job>
  /** Claims what is due and polls it. */
  poll(): Promise<number>
  read(id: string): Promise<Job>
  /** Resolves when what has begun has gone on as far as it can without an answer: its writes are done. */
  settled(): Promise<void>
}

const OPTIONS: JobOptions = {
  ...{ poll: 5_000, poll_max: 30_000, timeout: HOUR, keep: 7 * 24 * HOUR, lease: 30_000, concurrency: 16 },
  ...{
    results: 'auto',
    max_result: 100_000,
    max_kept: 1_000_000,
    streams: 8,
    callback_concurrency: 100,
    callback_per_organization: 10,
    callback_per_host: 8,
    callback_retry: 30_000,
    callback_attempts: 8,
    callback_timeout: 30_000,
  },
  callback_to: [],
}

/** 0.10 USD a second. */
const PRICE: Price = { rates: {}, tiers: [], perSecond: { default: 100_000_000_000n } }

export async function engineKit(
  t: Scope,
  {
    wire = 'openai.videos',
    options = {},
    credentials = [],
    price: given = PRICE,
  }: {
    wire?: string
    options?: Partial<JobOptions>
    credentials?: readonly Credential[]
    price?: Price
  } = {},
): Promise<Kit> {
  const subject = memorySubject(t)
  const principal = await subject.organization('prepaid', 10_000_000_000n)
  const all: readonly Translator[] = [...openai.wires, ...gemini.wires, ...bytedance.wires]
  const translator = all.find(one => one.wire === wire)!
  const { mapping, provider } = targetFor({ translator, provider: { credentials } })
  const catalog = {
    providers: new Map([[provider.id, provider]]),
    models: new Map([['film', { id: 'film', mappings: [{ ...mapping, provider }] }]]),
  } as unknown as Catalog
  const asked: Asked[] = []
  const posted: Kit['posted'] = []
  const blobs = new Map<string, Buffer>()
  const answerTo = (path: string, method: string, { signal, headers = {} }: JobCall): Promise<JobAnswer> => {
    const question = { method, path, headers }
    asked.push(question)
    const { status = 200, headers: names = {}, body = '', hang, error } = kit.answer(question)
    if (error) return Promise.reject(error)
    return new Promise((resolve, reject) => {
      signal.listen(() => reject(signal.reason))
      if (hang) return
      const bytes = Array.isArray(body) ? body : [body instanceof Buffer ? body : Buffer.from(asText(body as object))]
      const header = (name: string) => names[name]
      const masked = (text: string) => text.replaceAll(SENT, '***')
      resolve({ status, header, chunks: each(bytes as Buffer[]), masked, destroy: () => undefined })
    })
  }
  const context: JobsContext = {
    store: subject.jobs,
    policies: {
      of: async () => ({ catalog: (one: Catalog) => one, credentials: () => [] }),
    } as unknown as Policies,
    catalog: () => catalog,
    wires: new Map([[wire, translator]]),
    kinds: new Map([['video', videos.job as unknown as JobOperation<never>]]),
    options: () => ({ ...OPTIONS, ...options }),
    caller: {
      own: (_: Target, { path, method = 'POST' }: WireRequest, call) => answerTo(path, method, call),
      at: (_, url, call) => answerTo(url, 'GET', call),
    },
    health: { polled: (_, org, error) => void kit.reports.push([org, error?.upstreamStatus]) },
    poster: {
      check: () => undefined,
      async post(url, _allowed, headers, body) {
        posted.push({ url, headers, body })
        return kit.hear(url)
      },
    },
    blobs: {
      async write(chunks, most, tooLarge) {
        const got: Buffer[] = []
        for await (const chunk of chunks) {
          got.push(chunk)
          if (got.reduce((sum, { length }) => sum + length, 0) > most) throw tooLarge()
        }
        const bytes = Buffer.concat(got)
        const blob = `blob-${blobs.size + 1}`
        blobs.set(blob, bytes)
        const etag = `"${createHash('sha256').update(bytes).digest('hex')}"`
        return { blob, bytes: bytes.length, etag, head: bytes.subarray(0, 64) }
      },
      read: async (blob, start, end) => each([blobs.get(blob)!.subarray(start, end + 1)]),
      remove: async blob => void blobs.delete(blob),
    },
    tokenKeys: () => [Buffer.alloc(32, 1)],
    publicUrl: () => 'https://gw.example',
    metrics: { poll: () => undefined, ended: () => undefined, claimLost: () => undefined, callback: () => undefined },
    log: { info: () => undefined, warn: () => undefined, error: () => undefined } as unknown as JobsContext['log'],
    now: () => subject.clock.now,
    random: () => 0.5,
  }
  const jobs = new Jobs(context)
  const poller = new Poller(context, new JobProvider(context))
  let made = 0
  const kit: Kit = {
    ...{ subject, principal, jobs, context, asked, posted, blobs, reports: [] },
    answer: () => ({ body: { status: 'in_progress' } }),
    hear: () => ({ status: 204, text: '' }),
    async begin({ id = `video_${++made}`, callback, principal: owner = principal } = {}) {
      const at = subject.clock.now
      const place = {
        mapping: 'film-1',
        region: null,
        credential: 'none',
        wire,
        owner: null,
        price: writtenPrice(given),
        discount: 0,
      }
      const params = JSON.stringify({ seconds: 4, size: '1280x720', audio: true, images: 0 })
      const job = {
        id,
        kind: 'video',
        source: null,
        session: null,
        params,
        idempotency: null,
        requestHash: null,
        createdAt: at,
      }
      const request = { ...identity(`log-${id}`), model: 'film', provider: provider.id, endpoint: 'videos' }
      const hold = { id: `hold-${id}`, request, principal: owner, amount: 400_000_000n, expiresAt: at + HOUR }
      const deadlineAt = at + context.options().timeout
      await subject.jobs.begin({ ...job, callback: callback ?? null, deadlineAt }, place, hold)
      return (await subject.jobs.get(id))!
    },
    async create(changes) {
      const { id } = await kit.begin(changes)
      const started = { upstreamId: `up-${id}`, state: 'queued', progress: null, nextAt: subject.clock.now } as const
      return (await subject.jobs.start(id, started))!
    },
    async poll() {
      const claimed = await subject.jobs.claim(jobs.engine.lease(), 8)
      await Promise.all(claimed.map(job => poller.poll(job, new Cancellation())))
      return claimed.length
    },
    read: async id => (await subject.jobs.get(id))!,
    async settled() {
      for (let writes = 0; writes < 4; writes++) {
        await new Promise<void>(resolve => setImmediate(resolve))
        await written(subject)
      }
    },
  }
  return kit
}

const asText = (body: object | string): string => (typeof body === 'string' ? body : JSON.stringify(body))

async function* each(chunks: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks
}
