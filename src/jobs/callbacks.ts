/** Delivers the ends of jobs, after the Standard Webhooks convention. */
import { createHash, createHmac } from 'node:crypto'
import type { Delivered, Delivery, Job } from '../core/ports.ts'
import { callbackGap } from './back-off.ts'
import type { JobsContext } from './context.ts'
import { jobObject } from './view.ts'

/** How long a callback waits whose host has as many as it may have. */
const POSTPONED_MS = 1_000
const GONE = 410

/** One signature for each reading of the secret: the base64 after `whsec_`, if it begins so, and its whole text. */
export function signaturesOf(secret: string, id: string, timestamp: number, body: string): string {
  const keys = [Buffer.from(secret, 'utf8')]
  if (secret.startsWith('whsec_')) keys.unshift(Buffer.from(secret.slice('whsec_'.length), 'base64'))
  const signed = `${id}.${timestamp}.${body}`
  return keys.map(key => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`).join(' ')
}

/** Posts the deliveries that are due. `run` begins them and does not wait; `stop` waits up to its grace. */
export class Callbacks {
  readonly #context: JobsContext
  readonly #owner: string
  readonly #ended: () => void
  readonly #open = new Map<Promise<void>, Place>()

  /** `ended` is called when a delivery has ended, so that there is room for another one. */
  constructor(context: JobsContext, owner: string, ended: () => void = () => undefined) {
    this.#context = context
    this.#owner = owner
    this.#ended = ended
  }

  /** Begins the deliveries that are due; resolves with the number of those begun, without those that it postponed. */
  async run(): Promise<number> {
    const { store, now, options } = this.#context
    const { callback_concurrency, callback_per_organization: share, callback_timeout, lease: leaseMs } = options()
    const limit = callback_concurrency - this.#open.size
    if (limit <= 0) return 0
    const until = now() + callback_timeout + leaseMs
    const lease = { owner: this.#owner, now: now(), until, limit }
    let begun = 0
    for (const delivery of await store.claimDeliveries(lease, share)) {
      const job = await store.get(delivery.jobId)
      const place = placeOf(job)
      if (this.#isFull(place)) await store.postpone(delivery, now() + POSTPONED_MS)
      else {
        this.#begin(delivery, job, place)
        begun++
      }
    }
    return begun
  }

  async stop(graceMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>(resolve => {
      timer = setTimeout(resolve, graceMs)
    })
    await Promise.race([Promise.all(this.#open.keys()), late])
    clearTimeout(timer)
  }

  /**
   * A slow host does not use more of the concurrency, whichever organizations name it; and at a host that many name, one
   * organization does not keep those of others waiting: it has half of the host's.
   */
  #isFull({ host, orgId }: Place): boolean {
    const most = this.#context.options().callback_per_host
    let open = 0
    let own = 0
    for (const other of this.#open.values()) {
      if (other.host !== host) continue
      open++
      if (other.orgId === orgId) own++
    }
    return open >= most || own >= Math.ceil(most / 2)
  }

  #begin(delivery: Delivery, job: Job | undefined, place: Place): void {
    const run = this.#deliver(delivery, job)
      .catch((err: unknown) =>
        this.#context.log.warn({ err, job: delivery.jobId }, 'callback outcome not stored; retried'),
      )
      .finally(() => {
        this.#open.delete(run)
        this.#ended()
      })
    this.#open.set(run, place)
  }

  async #deliver(delivery: Delivery, job: Job | undefined): Promise<void> {
    const { store, now, metrics, random } = this.#context
    const { callback_attempts, callback_retry } = this.#context.options()
    const triedAt = now()
    const sent = await this.#attempt(delivery, job, triedAt)
    const { status } = sent
    const isAccepted = status !== null && status >= 200 && status < 300
    const isOver = status === GONE || delivery.attempt >= callback_attempts || !(job?.callback ?? job?.unreadable)
    const state = isAccepted ? 'delivered' : isOver ? 'failed' : 'retrying'
    metrics.callback(state)
    const nextAt = now() + callbackGap(callback_retry, delivery.attempt, random())
    await store.deliver(delivery, { ...sent, state, triedAt, nextAt })
  }

  async #attempt(
    { eventId, type }: Delivery,
    job: Job | undefined,
    at: number,
  ): Promise<Pick<Delivered, 'status' | 'response' | 'error' | 'headers' | 'bodySha256'>> {
    const none = { status: null, response: null, headers: '{}', bodySha256: '' }
    const { poster, options, log } = this.#context
    if (!job?.callback && job?.unreadable !== undefined) {
      log.error({ job: job.id, reason: job.unreadable }, 'callback unreadable')
      return { ...none, error: `its sealed address cannot be opened: ${job.unreadable}` }
    }
    if (!job?.callback) return { ...none, error: 'the job has no callback any more' }
    const { url, secret } = job.callback
    const { callback_to: allowed, callback_timeout: ms } = options()
    const timestamp = Math.floor(at / 1000)
    const data = jobObject(job, this.#context)
    const body = JSON.stringify({ object: 'event', id: eventId, type, created_at: timestamp, data })
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'model-gateway',
      'webhook-id': eventId,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signaturesOf(secret, eventId, timestamp, body),
    }
    const sent = { headers: JSON.stringify(headers), bodySha256: createHash('sha256').update(body).digest('hex') }
    try {
      const { status, text } = await poster.post(url, allowed, headers, body, ms)
      return { ...sent, status, response: text, error: null }
    } catch (thrown) {
      return { ...sent, status: null, response: null, error: thrown instanceof Error ? thrown.message : 'it failed' }
    }
  }
}

/** Where a delivery goes, and whose it is. */
interface Place {
  readonly host: string
  readonly orgId: string
}
const placeOf = (job: Job | undefined): Place => ({
  host: job?.callback ? new URL(job.callback.url).host : '',
  orgId: job?.orgId ?? '',
})
