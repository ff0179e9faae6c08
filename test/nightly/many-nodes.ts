/**
 * Simulates nodes that all charge one account of one PostgreSQL. A node sends its holds as one batch and its settlements
 * as another; each batch locks the account's row for a moment. The times are those that docs/nodes.md states.
 */
import { percentile } from '../bench/stats.mjs'
import { random } from '../helpers/random.ts'

/** Milliseconds that a batch keeps the row locked, and what each of its calls adds. */
const LOCK_MS = 0.3
const CALL_MS = 0.005
/** Milliseconds of a batch without the lock: the network, and the disk for settlements. */
const HOLD_MS = 0.5
const SETTLE_MS = 2
const MAX_BATCH_CALLS = 256
const SECONDS = 10
const SEED = 100

/** One kind of call of one node: one batch at a time is under way. */
interface Stream {
  readonly outsideMs: number
  readonly isHold: boolean
  /** Times at which calls arrived that no batch has taken yet. */
  waiting: number[]
  freeAt: number
}

/** What a simulation shows. Times are milliseconds. */
interface Shown {
  readonly batchesPerSecond: number
  readonly callsPerBatch: number
  readonly holdP50: number
  readonly holdP99: number
}

/** `perSecond`: requests of all nodes together, each a hold and a settlement of the same account. */
export function simulate(nodes: number, perSecond: number): Shown {
  const next = random(SEED)
  const gap = () => (-Math.log(1 - next()) * 1000) / (perSecond * 2)
  const streams: Stream[] = Array.from({ length: 2 * nodes }, (_, n) => {
    const isHold = n % 2 === 0
    return { outsideMs: isHold ? HOLD_MS : SETTLE_MS, isHold, waiting: [], freeAt: 0 }
  })
  const holds: number[] = []
  let batches = 0
  let calls = 0
  let rowFreeAt = 0
  let arrival = gap()
  /** The batch that reaches the row first is the next one: it has waited longest. */
  const ready = ({ waiting, freeAt }: Stream) => (waiting.length > 0 ? Math.max(waiting[0]!, freeAt) : Infinity)
  while (arrival < SECONDS * 1000 || rowFreeAt < SECONDS * 1000) {
    const first = streams.reduce((best, one) => (ready(one) < ready(best) ? one : best))
    const begins = Math.max(ready(first), rowFreeAt)
    // Whatever arrives before the batch leaves may be part of it.
    if (arrival <= begins) {
      if (arrival >= SECONDS * 1000) break
      streams[Math.floor(next() * streams.length)]!.waiting.push(arrival)
      arrival += gap()
      continue
    }
    const leaves = ready(first)
    const taken = first.waiting.filter(at => at <= leaves).slice(0, MAX_BATCH_CALLS)
    first.waiting = first.waiting.slice(taken.length)
    rowFreeAt = begins + LOCK_MS + CALL_MS * taken.length
    first.freeAt = rowFreeAt + first.outsideMs
    batches++
    calls += taken.length
    if (first.isHold) for (const at of taken) holds.push(first.freeAt - at)
  }
  return {
    batchesPerSecond: Math.round(batches / SECONDS),
    callsPerBatch: calls / batches,
    holdP50: percentile(holds, 0.5),
    holdP99: percentile(holds, 0.99),
  }
}

const LOADS = [
  [3, 1000],
  [100, 500],
  [100, 1000],
  [100, 5000],
  [100, 15_000],
] as const

/** Returns the rows of the table in docs/nodes.md. */
export function tableOfNodes(): string[] {
  return LOADS.map(([nodes, perSecond]) => {
    const { batchesPerSecond, callsPerBatch, holdP50, holdP99 } = simulate(nodes, perSecond)
    const [p50, p99] = [holdP50, holdP99].map(ms => Number(ms.toPrecision(2)))
    const facts = [
      nodes,
      perSecond,
      Number(batchesPerSecond.toPrecision(2)),
      callsPerBatch.toFixed(1),
      `${p50} ms`,
      `${p99} ms`,
    ]
    return `| ${facts.map(fact => (typeof fact === 'number' ? fact.toLocaleString('en') : fact)).join(' | ')} |`
  })
}
