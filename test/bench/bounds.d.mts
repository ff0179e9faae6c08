export interface Verdict {
  readonly name: string
  readonly limit: number
  /** The limit is a lower one. */
  readonly atLeast: boolean
  readonly unit: string
  readonly value: number
  readonly holds: boolean
}
export function verdicts(results: object): Verdict[]
