export function percentile(values: readonly number[], p: number): number
export function median(values: readonly number[]): number
export function ratio(values: readonly number[], others: readonly number[]): { median: number; ofSums: number }
export function difference(
  values: readonly number[],
  others: readonly number[],
): { median: number; low: number; high: number }
