import { setTimeout } from 'node:timers/promises'

const PAUSE_MS = 20

/** Pauses between two looks at another process, which nothing here is told about. Without it, that process has less CPU. */
export const pause = (): Promise<void> => setTimeout(PAUSE_MS)
