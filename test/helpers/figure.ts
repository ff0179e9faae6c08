/** What a check measured, beside the bound that it may not cross: asserted, and told to the nightly run's table. */
import { appendFileSync } from 'node:fs'

export interface Figure {
  /** Of the check in the catalogue, such as `OB-02`. */
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

/** Whether times are judged: a machine that is busy with other things is slow at everything. */
export const judged = process.env.NIGHTLY_FIGURES !== undefined
/** How often what is timed is tried: a stall of the machine strikes now and then, one of the gateway's every time. */
export const TIMINGS = judged ? 8 : 1

/** A figure that depends on the speed of the machine: asserted in the nightly run, in `npm test` a comment. */
export function timing(t: Assert & { comment(text: string): unknown }, given: Figure): void {
  if (judged) figure(t, given)
  else t.comment(`${given.id} ${given.what}: ${Number(given.value.toPrecision(4))} ${given.unit}`)
}

/** Asserts the bound, if there is one; NIGHTLY_FIGURES names the file that collects figures, one JSON object a line. */
export function figure(t: Assert, { value, ...given }: Figure): void {
  const { id, what, unit, atMost = Number.POSITIVE_INFINITY, atLeast = Number.NEGATIVE_INFINITY } = given
  const holds = value <= atMost && value >= atLeast
  const rounded = Number(value.toPrecision(4))
  t.ok(holds, `${id} ${what}: ${rounded} ${unit}`)
  const file = process.env.NIGHTLY_FIGURES
  if (file) appendFileSync(file, `${JSON.stringify({ ...given, value: rounded, holds })}\n`)
}
