/** Rows of holds, and of those whose process has ended. */
import type { Funds, Progress, RequestRow } from '../../core/ports.ts'
import type { Usage } from '../../core/usage.ts'
import type { OpenHold } from './reservations.ts'
import type { LostRequest } from './settlement.ts'

/** A hold as of its end. */
export interface HoldRow {
  readonly org_id: string
  readonly amount: bigint
  readonly funds: Funds
  /** A JSON array of ids; null for none. */
  readonly budgets: string | null
}
/** Converts a hold to the form that `Reservations` releases. */
export const openHold = ({ org_id: orgId, amount, funds, budgets }: HoldRow): OpenHold => ({
  orgId,
  amount,
  funds,
  budgets,
})
/** A hold as one of its request's. */
export interface HoldOfRequest extends HoldRow {
  readonly id: string
  readonly provider: string | null
  readonly created_at: bigint
}
/** A hold whose process has ended. */
export interface Orphan extends HoldRow {
  readonly request_id: string
  readonly caller_id: string
  readonly project_id: string
  readonly key_id: string
  readonly endpoint: string
  readonly requested_model: string
  readonly model: string | null
  readonly provider: string | null
  readonly created_at: bigint
  /** In the format of `written`; null without a checkpoint. */
  readonly progress: string | null
}

interface Written {
  readonly usage: Usage
  /** A decimal string: JSON numbers may not represent it. */
  readonly cost: string | null
}
/** The text of `holds.progress`. */
export const written = ({ usage, cost }: Progress): string =>
  JSON.stringify({ usage, cost: cost === null ? null : String(cost) } satisfies Written)

function read(progress: string | null): Progress | undefined {
  if (progress === null) return undefined
  const { usage, cost } = JSON.parse(progress) as Written
  return { usage, cost: cost === null ? null : BigInt(cost) }
}

/** A request whose process died, from its hold and last checkpoint. */
export const lostRequest = (orphan: Orphan): LostRequest => ({
  id: orphan.request_id,
  requestId: orphan.caller_id,
  at: Number(orphan.created_at),
  orgId: orphan.org_id,
  projectId: orphan.project_id,
  keyId: orphan.key_id,
  endpoint: orphan.endpoint,
  requestedModel: orphan.requested_model,
  model: orphan.model,
  provider: orphan.provider,
  progress: read(orphan.progress),
})

type Noted = Pick<Orphan, 'progress'>
/** Sorts lost holds so that those with a checkpoint come first. */
export const byCheckpoint = (a: Noted, b: Noted): number => Number(a.progress === null) - Number(b.progress === null)

/** Whether a lost hold is charged: its request has no row, or that of another lost hold, and this one has a checkpoint. */
export const isCharged = (outcome: RequestRow['outcome'] | undefined, { progress }: Noted): boolean =>
  outcome === undefined || (outcome === 'orphaned' && progress !== null)
