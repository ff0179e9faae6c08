/** Rules for usage reports that several wires share. */
import type { Axis, Json, Usage } from '../../src/plugin.ts'

/** The counts of a report, by any name. */
export type Counts<Name extends string> = Partial<Record<Name, number | undefined>>

/** Joins the reports of one answer: the last one wins, count by count. An absent or null count keeps its value. */
export class UsageReports<Name extends string> {
  readonly #countsOf: (report: Json) => Counts<Name>
  readonly #usageOf: (counts: Counts<Name>) => Partial<Usage> | undefined
  readonly #counts: Counts<Name> = {}
  #usage: Partial<Usage> = {}

  /** `usageOf` may omit axes of zero. */
  constructor(countsOf: (report: Json) => Counts<Name>, usageOf: (counts: Counts<Name>) => Partial<Usage> | undefined) {
    this.#countsOf = countsOf
    this.#usageOf = usageOf
  }

  /** Adds a report; returns all counts so far. An axis that the report has withdrawn is 0. */
  add(report: Json): Partial<Usage> | undefined {
    const counts = this.#countsOf(report)
    for (const name in counts) if (counts[name] !== undefined) this.#counts[name] = counts[name]
    const usage = this.#usageOf(this.#counts)
    if (!usage) return undefined
    for (const axis in this.#usage) usage[axis as Axis] ??= 0
    this.#usage = usage
    return usage
  }
}

/**
 * The whole prompt and its parts in the provider's cache. Both are parts of the prompt while neither exceeds it: written
 * tokens that overlap with read ones count as read. Otherwise the cache is counted separately (C37).
 */
export function withCache<Prompt extends number | undefined>(prompt: Prompt, read: number, written: number) {
  if (prompt === undefined) return { prompt, read, written }
  if (Math.max(read, written) > prompt) return { prompt: prompt + read + written, read, written }
  return { prompt, read, written: Math.min(written, prompt - read) }
}

/** Tokens written to a cache, from their total and its split by lifetime; undefined where a report has neither. */
export function writtenTokens(total: number | undefined, written5m: number | undefined, written1h: number | undefined) {
  if ((total ?? written5m ?? written1h) === undefined) return undefined
  return Math.max(total ?? 0, (written5m ?? 0) + (written1h ?? 0))
}

/**
 * Usage axes of a wire whose `input` excludes cache reads and writes; the axis includes them. `written1h` is a part of
 * `written`. Only reported counts are present.
 */
export function usageBesideCache(
  counts: Counts<'input' | 'output' | 'read' | 'written' | 'written1h'>,
): Partial<Usage> {
  const { input, output, read, written, written1h } = counts
  const longer = Math.min(written1h ?? 0, written ?? 0)
  const usage: Partial<Usage> = {}
  if (input !== undefined) usage.prompt = input + (read ?? 0) + (written ?? 0)
  if (read !== undefined) usage.input_cache_read = read
  if (written !== undefined) usage.input_cache_write = written - longer
  if (written1h !== undefined) usage.input_cache_write_1h = longer
  if (output !== undefined) usage.completion = output
  return usage
}
