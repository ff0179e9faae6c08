/**
 * Answers that are read on for a moment after their client has left, so that the provider's own report of what it did
 * is charged. Those beyond the bounds are cut off at once.
 */
import { FairSlots } from '../core/fair-slots.ts'

const PER_PROCESS = 512
/** 64 of each organization. */
const SHARE = 1 / 8
/** How long an answer is read on. */
export const LINGER_MS = 2_000
/** How much of it is read on. */
export const LINGER_BYTES = 1024 * 1024

/** The slots of a process, by organization. */
export const lingerSlots = (): FairSlots => new FairSlots(PER_PROCESS, undefined, { alone: SHARE, contended: SHARE })
