/** Rows of jobs and of their callbacks. */
import type { Delivery, Funds, Job, JobCallback, JobError, JobResult, JobState } from '../../../core/ports.ts'
import { type Keyring, KeyringError } from '../../keyring.ts'
import { jobPlace } from '../../rules/jobs.ts'
import { openText } from '../../sealing.ts'
import { numberOf } from '../sql.ts'

/** A row of `jobs`. */
export interface JobRow {
  id: string
  kind: string
  log_id: string
  request_id: string
  org_id: string
  project_id: string
  key_id: string
  source: string | null
  session: string | null
  /** A JSON object. */
  labels: string | null
  endpoint: string
  requested_model: string
  model: string
  provider: string
  mapping: string
  region: string | null
  credential: string
  wire: string
  owner: string | null
  upstream_id: string | null
  params: string
  state: JobState
  progress: bigint | null
  error: string | null
  idempotency: string | null
  request_hash: string | null
  price: string
  discount: bigint
  hold_id: string
  amount: bigint
  funds: Funds
  budgets: string | null
  cost: bigint | null
  created_at: bigint
  started_at: bigint | null
  completed_at: bigint | null
  deadline_at: bigint
  next_at: bigint
  expires_at: bigint | null
  attempts: bigint
  failures: bigint
  fence: bigint
  result_kind: JobResult['kind'] | null
  result_url: string | null
  result_blob: string | null
  result_type: string | null
  result_bytes: bigint | null
  result_etag: string | null
  callback_url: string | null
  callback_secret: string | null
  deleted_at: bigint | null
}

/** Returns the job of a row. A text that cannot be opened is null, so that one row delays no others. */
export function jobOf(row: JobRow, keyring: () => Keyring): Job {
  return {
    id: row.id,
    kind: row.kind,
    logId: row.log_id,
    requestId: row.request_id,
    orgId: row.org_id,
    projectId: row.project_id,
    keyId: row.key_id,
    source: row.source,
    session: row.session,
    ...(row.labels !== null && { labels: JSON.parse(row.labels) as NonNullable<Job['labels']> }),
    endpoint: row.endpoint,
    requestedModel: row.requested_model,
    model: row.model,
    provider: row.provider,
    mapping: row.mapping,
    region: row.region,
    credential: row.credential,
    wire: row.wire,
    owner: row.owner,
    upstreamId: row.upstream_id,
    params: row.params,
    state: row.state,
    progress: numberOf(row.progress),
    error: row.error === null ? null : (JSON.parse(row.error) as JobError),
    idempotency: row.idempotency,
    requestHash: row.request_hash,
    price: row.price,
    discount: Number(row.discount),
    hold: { id: row.hold_id, orgId: row.org_id, amount: row.amount, funds: row.funds, budgets: row.budgets },
    cost: row.cost,
    createdAt: Number(row.created_at),
    startedAt: numberOf(row.started_at),
    completedAt: numberOf(row.completed_at),
    deadlineAt: Number(row.deadline_at),
    nextAt: Number(row.next_at),
    expiresAt: numberOf(row.expires_at),
    attempts: Number(row.attempts),
    failures: Number(row.failures),
    fence: Number(row.fence),
    ...sealedOf(row, keyring),
    deletedAt: numberOf(row.deleted_at),
  }
}

/** Reads what is sealed: an address, and a callback. */
function sealedOf(row: JobRow, keyring: () => Keyring): Pick<Job, 'result' | 'callback' | 'unreadable'> {
  let unreadable: string | undefined
  const opened = <T>(read: () => T): T | null => {
    try {
      return read()
    } catch (thrown) {
      if (!(thrown instanceof KeyringError)) throw thrown
      unreadable = thrown.message
      return null
    }
  }
  const result = opened(() => resultOf(row, keyring))
  const callback = opened(() => callbackOf(row, keyring))
  return { result, callback, ...(unreadable !== undefined && { unreadable }) }
}

function resultOf(row: JobRow, keyring: () => Keyring): JobResult | null {
  const { result_kind: kind, result_url: url, result_blob: blob } = row
  if (kind === 'own') return { kind }
  if (kind === 'url') return { kind, url: openText(keyring(), url!, jobPlace(row.id, 'result_url')) }
  if (kind === null) return null
  return { kind, blob: blob!, type: row.result_type!, bytes: Number(row.result_bytes), etag: row.result_etag! }
}

function callbackOf({ id, callback_url: url, callback_secret: secret }: JobRow, keyring: () => Keyring) {
  if (url === null || secret === null) return null
  return {
    url: openText(keyring(), url, jobPlace(id, 'callback_url')),
    secret: openText(keyring(), secret, jobPlace(id, 'callback_secret')),
  } satisfies JobCallback
}

/** A row of `job_events`. */
export interface EventRow {
  event_id: string
  job_id: string
  type: string
  attempt: bigint
  state: Delivery['state']
  next_at: bigint
  tried_at: bigint | null
  status: bigint | null
  response_body: string | null
  error: string | null
  fence: bigint
}

/** The delivery of a row. */
export const deliveryOf = (row: EventRow): Delivery => ({
  eventId: row.event_id,
  jobId: row.job_id,
  type: row.type,
  attempt: Number(row.attempt),
  state: row.state,
  nextAt: Number(row.next_at),
  triedAt: numberOf(row.tried_at),
  status: numberOf(row.status),
  response: row.response_body,
  error: row.error,
  fence: Number(row.fence),
})
