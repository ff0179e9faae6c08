/** A measured figure and its bound: asserted, and reported in the nightly run's table. */
import { appendFileSync } from 'node:fs'

export interface Figure {
  /** Id of the check in the catalogue, such as `OB-02`. */
  id: string
  what: string
  value: number
  unit: string
  atMost?: number
  atLeast?: number
}

interface Assert {
  ok(holds: boolean, message: string): unknown
}

/** Whether times are asserted: on a busy machine everything is slow. */
export const judged = process.env.NIGHTLY_FIGURES !== undefined
/** Repetitions of a timed check: a stall of the machine is rare, one of the gateway repeats. */
export const TIMINGS = judged ? 8 : 1

/** A figure that depends on the speed of the machine: asserted in the nightly run, a comment in `npm test`. */
export function timing(t: Assert & { comment(text: string): unknown }, given: Figure): void {
  if (judged) figure(t, given)
  else t.comment(`${given.id} ${given.what}: ${Number(given.value.toPrecision(4))} ${given.unit}`)
}

/** Asserts the bound, if any; NIGHTLY_FIGURES names the file that collects figures as JSON lines. */
export function figure(t: Assert, { value, ...given }: Figure): void {
  const { id, what, unit, atMost = Number.POSITIVE_INFINITY, atLeast = Number.NEGATIVE_INFINITY } = given
  const holds = value <= atMost && value >= atLeast
  const rounded = Number(value.toPrecision(4))
  t.ok(holds, `${id} ${what}: ${rounded} ${unit}`)
  const file = process.env.NIGHTLY_FIGURES
  if (file) appendFileSync(file, `${JSON.stringify({ ...given, value: rounded, holds })}\n`)
}
