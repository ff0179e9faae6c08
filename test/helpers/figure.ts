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

/** Asserts the bound, if there is one; NIGHTLY_FIGURES names the file that collects figures, one JSON object a line. */
export function figure(t: Assert, { value, ...given }: Figure): void {
  const { id, what, unit, atMost = Number.POSITIVE_INFINITY, atLeast = Number.NEGATIVE_INFINITY } = given
  const holds = value <= atMost && value >= atLeast
  const rounded = Number(value.toPrecision(4))
  t.ok(holds, `${id} ${what}: ${rounded} ${unit}`)
  const file = process.env.NIGHTLY_FIGURES
  if (file) appendFileSync(file, `${JSON.stringify({ ...given, value: rounded, holds })}\n`)
}
