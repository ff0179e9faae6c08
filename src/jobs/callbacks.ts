/** Delivers the ends of jobs, after the Standard Webhooks convention. */
import { createHash, createHmac } from 'node:crypto'
import type { Delivered, Delivery } from '../core/ports.ts'
import { atMost } from '../lib/timer.ts'
import type { AlertMessage } from '../limits/alerts.ts'
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
      const message = await this.#messageOf(delivery)
      const place = placeOf(message)
      if (this.#isFull(place)) await store.postpone(delivery, now() + POSTPONED_MS)
      else {
        this.#begin(delivery, message, place)
        begun++
      }
    }
    return begun
  }

  async stop(graceMs: number): Promise<void> {
    await atMost(graceMs, Promise.all(this.#open.keys()), undefined)
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

  #begin(delivery: Delivery, message: Message | undefined, place: Place): void {
    const run = this.#deliver(delivery, message)
      .catch((err: unknown) =>
        this.#context.log.warn({ err, job: delivery.jobId }, 'callback outcome not stored; retried'),
      )
      .finally(() => {
        this.#open.delete(run)
        this.#ended()
      })
    this.#open.set(run, place)
  }

  /** The callback of a job or of an alert; undefined where it has none any more. */
  async #messageOf({ jobId }: Delivery): Promise<Message | undefined> {
    const { store, alerts } = this.#context
    if (isAlert(jobId)) return alerts?.messageOf(jobId)
    const job = await store.get(jobId)
    if (!job?.callback && job?.unreadable === undefined) return undefined
    const { url, secret } = job.callback ?? { url: '', secret: '' }
    return {
      ...{ url, secret, orgId: job.orgId, unreadable: job.callback ? undefined : job.unreadable },
      body: ({ id, type, createdAt }) =>
        JSON.stringify({ object: 'event', id, type, created_at: createdAt, data: jobObject(job, this.#context) }),
    }
  }

  async #deliver(delivery: Delivery, message: Message | undefined): Promise<void> {
    const { store, now, metrics, random } = this.#context
    const { callback_attempts, callback_retry } = this.#context.options()
    const triedAt = now()
    const sent = await this.#attempt(delivery, message, triedAt)
    const { status } = sent
    const isAccepted = status !== null && status >= 200 && status < 300
    const isOver = status === GONE || delivery.attempt >= callback_attempts || !message
    const state = isAccepted ? 'delivered' : isOver ? 'failed' : 'retrying'
    metrics.callback(state)
    if (isAlert(delivery.jobId)) this.#tellAlert(delivery, sent, state, message?.on)
    const nextAt = now() + callbackGap(callback_retry, delivery.attempt, random())
    await store.deliver(delivery, { ...sent, state, triedAt, nextAt })
  }

  #tellAlert(
    { jobId: alert, attempt }: Delivery,
    { status, error }: Pick<Delivered, 'status' | 'error'>,
    state: Delivered['state'],
    on: string | undefined,
  ): void {
    const { alerts, log } = this.#context
    if (on !== undefined) alerts?.count(on, state)
    const facts = { alert, attempt, status, error }
    if (state === 'failed') log.error(facts, 'alert callback given up')
    else if (state === 'retrying') log.warn(facts, 'alert callback failed; tried again')
  }

  async #attempt(
    { eventId, jobId: job, type }: Delivery,
    message: Message | undefined,
    at: number,
  ): Promise<Pick<Delivered, 'status' | 'response' | 'error' | 'headers' | 'bodySha256'>> {
    const none = { status: null, response: null, headers: '{}', bodySha256: '' }
    const { poster, options, log } = this.#context
    if (!message) return { ...none, error: 'there is no callback any more' }
    if (message.unreadable !== undefined) {
      log.error({ job, reason: message.unreadable }, 'callback unreadable')
      return { ...none, error: `its sealed address cannot be opened: ${message.unreadable}` }
    }
    const { url, secret } = message
    const { callback_to: allowed, callback_timeout: ms } = options()
    const timestamp = Math.floor(at / 1000)
    const body = message.body({ id: eventId, type, createdAt: timestamp })
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'model-gateway',
      'webhook-id': eventId,
      'webhook-timestamp': String(timestamp),
      ...(secret !== undefined && { 'webhook-signature': signaturesOf(secret, eventId, timestamp, body) }),
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
/** A callback of an alert or of a job, with its organization where it is a job's. */
type Message = Omit<AlertMessage, 'on'> & {
  readonly orgId?: string
  readonly on?: string
  /** Says why its sealed address cannot be opened. */
  readonly unreadable?: string | undefined
}

const placeOf = (message: Message | undefined): Place => ({
  host: message?.url ? new URL(message.url).host : '',
  orgId: message?.orgId ?? '',
})

/** Ids of jobs begin with the prefix of their kind. */
const isAlert = (id: string): boolean => id.startsWith('alert_')
