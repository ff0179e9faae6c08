/** Reports are read in parts, so that many sums do not block other requests; this joins the parts. */
import { addedTotals, type ReportOrder, type ReportSums } from '../../core/ports.ts'

/** Callers name apps, and own providers any model: further groups count as one. */
const MAX_GROUPS = 10_000
const FURTHER = 'other'

type Ranked = ReportSums & { readonly id: string }
type Span = ReportSums & { readonly at: number }

/** Sums of the spans of time over all parts, which come in the order of time: a part may end within a span. */
export class Series {
  readonly spans: Span[] = []

  add(more: readonly Span[]): void {
    for (const one of more) {
      const last = this.spans.at(-1)
      if (last?.at === one.at) this.spans[this.spans.length - 1] = { at: one.at, ...added(last, one) }
      else this.spans.push(one)
    }
  }
}

const measures: Readonly<Record<ReportOrder, (sums: ReportSums) => number | bigint>> = {
  requests: ({ requests }) => requests,
  cost: ({ cost }) => cost,
  tokens: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
}

/** Sums groups over all parts; those beyond `MAX_GROUPS` together. */
export class Ranking {
  readonly #groups = new Map<string, Ranked>()

  add(more: readonly Ranked[]): void {
    for (const one of more) {
      const id = this.#groups.has(one.id) || this.#groups.size < MAX_GROUPS ? one.id : FURTHER
      const known = this.#groups.get(id)
      this.#groups.set(id, { ...(known ? added(known, one) : one), id })
    }
  }

  /** Largest first, equal ones by id. */
  sorted(order: ReportOrder): Ranked[] {
    const measure = measures[order]
    // Two sorts, the second one stable: a comparison of ids in JavaScript takes three times as long.
    return [...this.#groups.keys()]
      .sort()
      .map(id => this.#groups.get(id)!)
      .map(one => ({ one, by: measure(one) }))
      .sort((a, b) => (a.by === b.by ? 0 : a.by > b.by ? -1 : 1))
      .map(({ one }) => one)
  }
}

const added = (a: ReportSums, b: ReportSums): ReportSums => ({ ...addedTotals(a, b), savings: a.savings + b.savings })
