/** What is charged of an answer that passes a bound, or finds no memory, before anything of it was passed on. */
import { AnswerOutline, outlineSteps } from '../core/answer-outline.ts'
import type { Cancellation } from '../core/cancel.ts'
import { CLIENT_CLOSED, type GatewayError } from '../core/error.ts'
import type { Event, UsageReport } from '../core/event.ts'
import type { MemoryLease } from '../core/memory-budget.ts'
import type { Decoder } from '../core/translator.ts'
import type { Axis, Usage } from '../core/usage.ts'
import { turns } from '../lib/turns.ts'
import type { Answer } from './answer.ts'
import type { PlainSource } from './encoding.ts'

/** Bytes behind a bound that are read for the usage at the end of an answer, and not kept. */
const MAX_READ_ON = 64 * 1024 * 1024

interface FailedAnswer {
  readonly answer: Answer
  readonly source: PlainSource
  readonly lease: MemoryLease
  readonly tenant: string
  /** A new one, for an answer that is one whole body; undefined for any other answer. */
  readonly decoder: (() => Decoder) | undefined
  /** The answer is charged by its text where its provider reports nothing. */
  readonly isText: boolean
  readonly signal: Cancellation
}

/**
 * The events that are charged: those that came, and of a whole body what its provider reports in it, or an estimate of its
 * text. Undefined where nothing is charged since the failure is the provider's own: what came is no JSON, has no end, or was
 * broken off while its client was there. Never rejects.
 */
export async function chargedEvents(
  { answer, source, lease, tenant, decoder, isText, signal }: FailedAnswer,
  error: GatewayError,
): Promise<readonly Event[] | undefined> {
  if (!error.billed && error.excess !== 'size') return undefined
  const { pending } = answer
  if (!decoder || !error.excess || pending.some(isReport)) return pending
  const outline = new AnswerOutline()
  if (!(await scan(outline, answer.takeUnread(), tenant))) return pending
  lease.release()
  const isWhole = outline.isJson && (await readOn(outline, source))
  if (!isWhole && signal.reason?.status !== CLIENT_CLOSED) return undefined
  const reports = reportsIn(outline, decoder())
  const events: Event[] = [...pending.filter(({ type }) => type !== 'usage'), ...reports]
  if (isText && !reports.some(hasCompletion)) {
    events.push({ type: 'usage', usage: {}, written: outline.text, estimated: true })
  }
  return events
}

/** False where there is nothing. A function of its own, so that the pieces are not kept while the rest is read. */
async function scan(outline: AnswerOutline, pieces: readonly Buffer[], tenant: string): Promise<boolean> {
  if (pieces.length > 0) await turns.run(tenant, outlineSteps(outline, pieces))
  return pieces.length > 0
}

/** Whether the answer comes to its end. */
async function readOn(outline: AnswerOutline, source: PlainSource): Promise<boolean> {
  try {
    for (let left = MAX_READ_ON; left > 0; ) {
      const chunks = await source.take()
      if (!chunks) return true
      for (const chunk of chunks) {
        left -= chunk.length
        outline.add(chunk)
      }
    }
  } catch {
    // It was broken off, or its time is over.
  }
  return false
}

/** What an answer reports beside its content. Zeros are left out: what they count is no longer there. */
function reportsIn({ json }: AnswerOutline, decoder: Decoder): UsageReport[] {
  if (json === undefined) return []
  const events: Event[] = []
  try {
    for (const event of decoder.frame({ data: json })) events.push(event)
    for (const event of decoder.end()) events.push(event)
  } catch {
    // It has no content, which some decoders cannot be without.
  }
  return events.flatMap(event => (event.type === 'usage' ? [{ ...event, usage: withoutZeros(event.usage) }] : []))
}

const withoutZeros = (usage: Partial<Usage>): Partial<Usage> => {
  const kept: Partial<Usage> = {}
  for (const axis in usage) if (usage[axis as Axis]! > 0) kept[axis as Axis] = usage[axis as Axis]!
  return kept
}

const hasCompletion = ({ usage }: UsageReport): boolean => usage.completion !== undefined
const isReport = (event: Event): boolean => event.type === 'usage' && !event.estimated && hasCompletion(event)
