/** Order statistics, and comparisons of figures that were taken in turn. */

/** The smallest value that at least the fraction `p` of all values does not exceed; NaN of no values. */
export function percentile(values, p) {
  if (values.length === 0) return Number.NaN
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * p) - 1)]
}

/** The middle value, or the mean of the middle two; NaN of no values. */
export function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  if (sorted.length % 2 === 1) return sorted[Math.floor(middle)]
  return (sorted[middle - 1] + sorted[middle]) / 2
}

/**
 * How one target compares with another by slices that stood beside each other in time, so that what slowed the machine
 * for a while slowed both. The median leaves out what fell into few slices only, be it another process or a cost that
 * comes in lumps: `ofSums` holds all of that, and a figure is to be believed when both are near each other.
 * @param {number[]} values @param {number[]} others as many
 */
export function ratio(values, others) {
  paired(values, others)
  return { median: median(values.map((value, at) => value / others[at])), ofSums: sum(values) / sum(others) }
}

/** The median of the differences between adjacent slices, and the two quarters that lie around it. */
export function difference(values, others) {
  paired(values, others)
  const all = values.map((value, at) => value - others[at])
  return { median: median(all), low: percentile(all, 0.25), high: percentile(all, 0.75) }
}

function paired({ length }, others) {
  if (length !== others.length) throw new RangeError(`${length} values cannot be compared with ${others.length}`)
}

const sum = values => values.reduce((total, value) => total + value, 0)
