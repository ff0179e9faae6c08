/** Lengths of loops. */
import { judged } from './figure.ts'

/** Repetitions of a property or loop: `full` in the nightly run, a tenth of that in `npm test`. */
export const runs = (full: number): number => (judged ? full : Math.ceil(full / 10))
