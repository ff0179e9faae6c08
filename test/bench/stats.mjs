/** Order statistics. */

/** The smallest value that at least the fraction `p` of all values does not exceed. */
export function percentile(values, p) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * p) - 1)]
}

export const median = values => percentile(values, 0.5)
