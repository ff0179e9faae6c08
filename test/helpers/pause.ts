import { setTimeout } from 'node:timers/promises'

const PAUSE_MS = 20

/** A pause between two looks at another process, which would have less of the processor without it. */
export const pause = (): Promise<void> => setTimeout(PAUSE_MS)
