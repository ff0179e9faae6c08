/** How long loops are. */
import { judged } from './figure.ts'

/** How often a property or a loop is tried: `full` times in the nightly run, a tenth of that in `npm test`. */
export const runs = (full: number): number => (judged ? full : Math.ceil(full / 10))
