/** Jobs where the stores are in PostgreSQL: none can begin, so that none is there. */
import type { JobStore } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'

const none = async (): Promise<undefined> => undefined
const no = async (): Promise<false> => false
const nothing = async (): Promise<never[]> => []
const zero = async (): Promise<number> => 0

/** `begin` rejects with a 400 that names what would serve jobs. */
export const noJobs = (): JobStore => ({
  begin: () =>
    Promise.reject(
      errors.badRequest('Jobs need `stores.sqlite`: a gateway whose stores are in PostgreSQL serves none.'),
    ),
  start: none,
  drop: none,
  interrupt: none,
  interruptLost: zero,
  get: none,
  byLogId: none,
  isReadable: no,
  list: nothing,
  claim: nothing,
  claimOne: none,
  renew: no,
  move: no,
  end: no,
  release: none,
  nextAt: none,
  expire: none,
  expireDue: nothing,
  remove: none,
  prune: zero,
  blobs: async () => new Set<string>(),
  claimDeliveries: nothing,
  deliver: no,
  postpone: no,
  deliveries: nothing,
  redeliver: no,
  status: async () => ({ running: {}, due: 0, leased: {}, oldest: null, callbacks: 0 }),
  counts: async () => ({ running: [], bytes: 0 }),
  keptBytes: async () => ({ all: 0, own: 0 }),
})
