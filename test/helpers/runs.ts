/** Lengths of loops. */
import { judged } from './figure.ts'

/** Repetitions of a property or loop: `full` in the nightly run, one of `share` of them in `npm test`. */
export const runs = (full: number, share = 10): number => (judged ? full : Math.ceil(full / share))
