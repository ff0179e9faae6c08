/** Computes the size of a stored response, and the place for which its texts are sealed. */
import type { ResponseRecord } from '../../core/ports.ts'

/** Bytes of a row with its index entries. */
const ROW_BYTES = 512
/** Dropped in one transaction: some milliseconds. */
export const PRUNED_RESPONSES = 200

/** The bytes of a stored response that count against its owner's limits. */
export const responseBytes = ({ turn, answer }: Pick<ResponseRecord, 'turn' | 'answer'>): number =>
  Buffer.byteLength(turn) + Buffer.byteLength(answer) + ROW_BYTES

/** So that no text can be passed off as another response's, or another organization's. */
export const responsePlace = (orgId: string, id: string, column: 'turn' | 'answer'): string =>
  [orgId, 'responses', id, column].join('|')
