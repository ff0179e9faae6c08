/** Work that outlives its request. Only the holder of a row's lease and newest fence may change the row. */
import type { Money } from '../money.ts'
import type { Page } from './accounts.ts'
import type { Exhausted, Hold, HoldRequest, RequestRow } from './ledger.ts'

/** `creating`: its provider may have the request already, and its client has not been answered. */
export type JobState = 'creating' | 'queued' | 'in_progress' | 'completed' | 'failed' | 'canceled' | 'expired'
/** The states that a job does not leave. */
export type FinalState = Extract<JobState, 'completed' | 'failed' | 'canceled' | 'expired'>

/** Why a job has failed, in words for its client. */
export interface JobError {
  readonly code: string
  readonly message: string
  readonly details?: Readonly<Record<string, unknown>>
}

/** Address for the end of a job, and the secret that signs the callback. Stored sealed. */
export interface JobCallback {
  readonly url: string
  readonly secret: string
}

/** `url`: an address of the provider's, kept sealed; `own`: its wire makes the request; `blob`: kept here. */
export type JobResult =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'own' }
  | {
      readonly kind: 'blob'
      readonly blob: string
      readonly type: string
      readonly bytes: number
      readonly etag: string
    }

/** A job before its provider has it. */
export interface NewJob {
  readonly id: string
  readonly kind: string
  readonly source: string | null
  /** The end user whose it is; null where it is the project's. */
  readonly session: string | null
  /** End user and tags of its request. */
  readonly labels?: Pick<RequestRow, 'endUser' | 'tags'> | undefined
  /** JSON: what the job shows of its request, and what its price depends on; nothing of a prompt. */
  readonly params: string
  /** Unique in its project for as long as the row is there. */
  readonly idempotency: string | null
  /** SHA-256 of the canonical request. */
  readonly requestHash: string | null
  readonly callback: JobCallback | null
  readonly createdAt: number
  readonly deadlineAt: number
}

/** The target of an attempt to create it. */
export interface JobTarget {
  readonly mapping: string
  readonly region: string | null
  /** `platform:<fingerprint>` or `byok:<id>`. */
  readonly credential: string
  readonly wire: string
  /** The organization whose own provider it is; null for one of the operator's. */
  readonly owner: string | null
  /** JSON of the price, fixed at admission. */
  readonly price: string
  readonly discount: number
}

/** A job as it is stored. All times are Unix milliseconds. */
export interface Job extends NewJob, JobTarget {
  readonly logId: string
  readonly requestId: string
  readonly orgId: string
  readonly projectId: string
  readonly keyId: string
  readonly endpoint: string
  readonly requestedModel: string
  readonly model: string
  readonly provider: string
  readonly upstreamId: string | null
  readonly state: JobState
  /** 0 to 100; null while it is not known. */
  readonly progress: number | null
  readonly error: JobError | null
  readonly hold: Hold
  /** Null until the job has ended. */
  readonly cost: Money | null
  readonly startedAt: number | null
  readonly completedAt: number | null
  readonly nextAt: number
  /** When its result goes. */
  readonly expiresAt: number | null
  /** Polls so far, and failures in a row. */
  readonly attempts: number
  readonly failures: number
  readonly fence: number
  readonly result: JobResult | null
  readonly deletedAt: number | null
  /** Why its callback or the address of its result, null then, cannot be opened. */
  readonly unreadable?: string
}

/** The provider's answer when it accepts a job. */
interface StartedJob {
  readonly upstreamId: string
  readonly state: 'queued' | 'in_progress'
  readonly progress: number | null
  readonly nextAt: number
}

/** How a poll that was not the last one moves a job. It never goes back: neither its state nor its progress. */
export interface MovedJob {
  readonly state?: 'queued' | 'in_progress' | undefined
  readonly progress?: number | undefined
  readonly nextAt: number
  readonly failures: number
  readonly at: number
}

/** The last change of a job. */
export interface EndedJob {
  readonly state: FinalState
  readonly error: JobError | null
  readonly result: JobResult | null
  readonly completedAt: number
  readonly expiresAt: number | null
  /** Event that the callback receives. */
  readonly event: { readonly id: string; readonly type: string }
}

/** One attempt to tell an end. */
export interface Delivery {
  readonly eventId: string
  readonly jobId: string
  readonly type: string
  /** From 1. */
  readonly attempt: number
  readonly state: 'pending' | 'retrying' | 'delivered' | 'failed'
  readonly nextAt: number
  readonly triedAt: number | null
  readonly status: number | null
  /** Its first 4,000 characters, for operators alone. */
  readonly response: string | null
  readonly error: string | null
  readonly fence: number
}

/** How an attempt of a delivery ended; `status` is null where no response came. */
export interface Delivered {
  readonly state: 'retrying' | 'delivered' | 'failed'
  readonly triedAt: number
  readonly status: number | null
  readonly response: string | null
  readonly error: string | null
  /** JSON of the headers that were sent. */
  readonly headers: string
  readonly bodySha256: string
  /** Time of the attempt that follows one in state `retrying`. */
  readonly nextAt: number
}

/** Owner and end of a claim. */
export interface Lease {
  readonly owner: string
  readonly now: number
  readonly until: number
  readonly limit: number
}

interface JobsStatus {
  /** Unfinished jobs by state. */
  readonly running: Readonly<Record<string, number>>
  readonly due: number
  /** Leased rows by owner. */
  readonly leased: Readonly<Record<string, number>>
  /** When the oldest that has not ended was created. */
  readonly oldest: number | null
  readonly callbacks: number
}

/** For metrics. */
export interface JobCounts {
  /** Unfinished jobs. */
  readonly running: readonly { readonly state: JobState; readonly provider: string; readonly count: number }[]
  /** Bytes of stored results. */
  readonly bytes: number
}

interface JobScope {
  readonly orgId?: string | undefined
  readonly projectId?: string | undefined
}

/**
 * A write with a fence resolves with false when another process has claimed the row since, or the job has ended:
 * nothing was changed then. All reject with a GatewayError `billing_unavailable` when the store cannot be written.
 */
export interface JobStore {
  /**
   * Reserves, and enters the row in the state `creating`, in one transaction; of a job that is there already, the hold
   * takes the place of the one of its last attempt. `existing`: the project has a job of this idempotency key.
   */
  begin(job: NewJob, target: JobTarget, hold: HoldRequest): Promise<Hold | Exhausted | { readonly existing: Job }>
  /** Its provider has it: from now on its hold belongs to no process. Durable; undefined for one that is not `creating`. */
  start(id: string, started: StartedJob): Promise<Job | undefined>
  /** No provider took it: the hold is given back, and the row goes. */
  drop(id: string): Promise<void>
  /** A provider may have the job, but its id there is unknown: the hold is released, and the row stays as failed. */
  interrupt(id: string, error: JobError, event: EndedJob['event'], now: number): Promise<void>
  /** Fails rows that are `creating` though what they held has been given back: their process has ended. */
  interruptLost(error: JobError, event: (id: string) => EndedJob['event'], now: number): Promise<number>
  get(id: string): Promise<Job | undefined>
  byLogId(logId: string): Promise<Job | undefined>
  /** Whether the key that began a job may be used now, for reads that show no key. */
  isReadable(job: Pick<Job, 'keyId'>): Promise<boolean>
  /** Newest first, unless `ascending`; without those that were deleted or never began. */
  list(scope: JobScope, kind: string, page: Page & { readonly ascending?: boolean }): Promise<Job[]>
  /** Claims due jobs, organizations in turn; an owner has at most `share` of each organization, and of each provider. */
  claim(lease: Lease, share: number): Promise<Job[]>
  /** Claims one job, due or not; undefined when it has ended or another owner has it. */
  claimOne(id: string, lease: Lease): Promise<Job | undefined>
  renew(id: string, fence: number, until: number): Promise<boolean>
  /** Ends the lease. */
  move(id: string, fence: number, moved: MovedJob): Promise<boolean>
  /** State, charge, request row and the event of the callback, in one durable transaction. Ends the lease. */
  end(id: string, fence: number, ended: EndedJob, row: RequestRow): Promise<boolean>
  /** All leases of this owner end. */
  release(owner: string): Promise<void>
  /** When the next job, delivery or removal is due; undefined when there is none. */
  nextAt(): Promise<number | undefined>
  /** The result is gone. Returns the job as it was; undefined where there was none. */
  expire(id: string, now: number): Promise<Job | undefined>
  /** Results that are due to go: of each, its job as it was. */
  expireDue(now: number, limit: number): Promise<Job[]>
  /** For its owner it is gone; a tombstone stays. Only of a job that has ended: undefined for others. */
  remove(id: string, now: number): Promise<Job | undefined>
  /** Drops rows that ended before this time and have nothing left to tell; how many. */
  prune(before: number, limit: number): Promise<number>
  /** Which of these results are still named by a row. */
  blobs(names: readonly string[]): Promise<Set<string>>
  /** Claims due deliveries. An owner holds at most `share` of one organization at a time. */
  claimDeliveries(lease: Lease, share: number): Promise<Delivery[]>
  deliver(delivery: Delivery, delivered: Delivered): Promise<boolean>
  /** It was not tried, and is due then. Ends the lease. */
  postpone(delivery: Delivery, nextAt: number): Promise<boolean>
  deliveries(jobId: string): Promise<Delivery[]>
  /** One more attempt of an event, now. False where there is no such event, or its secret is gone. */
  redeliver(eventId: string, now: number): Promise<boolean>
  status(now: number): Promise<JobsStatus>
  counts(): Promise<JobCounts>
  /** Bytes of kept results: of all organizations, and of this one. */
  keptBytes(orgId: string): Promise<{ readonly all: number; readonly own: number }>
}
