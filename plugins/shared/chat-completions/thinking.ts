/**
 * Thinking that its provider requires back but does not mark: the gateway seals it, and only thinking sealed for the
 * target is replayed.
 */
import {
  type Event,
  MAX_REASONING_BLOCKS,
  type Message,
  type ReasoningEvent,
  seal,
  type Target,
  tooManyBlocks,
} from '../../../src/plugin.ts'
import { replayDetails } from './reasoning-details.ts'

/**
 * Signatures of one frame, by choice. The first entry belongs to the block open before the frame, each further one to
 * the next reasoning event of the frame; undefined for unsigned events.
 */
export type Signatures = ReadonlyMap<number, readonly (string | undefined)[]>

const TYPE = 'thinking'

/** Makes blocks of an answer's plain reasoning. A block ends before other content of its choice. */
export class Thinking {
  readonly #target: Target
  readonly #format: string
  /** Number of the open block, by choice. */
  readonly #open = new Map<number, number>()
  /** Number of blocks, by choice. */
  readonly #counts = new Map<number, number>()

  constructor(target: Target, format: string) {
    this.#target = target
    this.#format = format
  }

  /** The events of one frame, with reasoning in numbered blocks and a seal at the end of each. */
  mark(events: readonly Event[], signatures?: Signatures): Event[] {
    const out: Event[] = []
    const seen = new Map<number, number>()
    for (const [choice, [first]] of signatures ?? []) this.#sign(choice, first, out)
    for (const event of events) {
      if (event.type === 'reasoning' && event.format === undefined) {
        out.push(this.#grow(event))
        const nth = (seen.get(event.choice) ?? 0) + 1
        seen.set(event.choice, nth)
        this.#sign(event.choice, signatures?.get(event.choice)?.[nth], out)
      } else {
        if ('choice' in event) this.#close(event.choice, out)
        out.push(event)
      }
    }
    return out
  }

  #grow(event: ReasoningEvent): ReasoningEvent {
    let block = this.#open.get(event.choice)
    if (block === undefined) {
      block = this.#counts.get(event.choice) ?? 0
      if (block === MAX_REASONING_BLOCKS) throw tooManyBlocks()
      this.#counts.set(event.choice, block + 1)
      this.#open.set(event.choice, block)
    }
    return { ...event, format: this.#format, block }
  }

  /** A signature ends its block. */
  #sign(choice: number, signature: string | undefined, out: Event[]): void {
    if (signature !== undefined) this.#close(choice, out, signature)
  }

  #close(choice: number, out: Event[], signature?: string): void {
    const block = this.#open.get(choice)
    if (block === undefined) return
    this.#open.delete(choice)
    const sealed = seal(this.#target, JSON.stringify({ type: TYPE, signature }))
    out.push({ type: 'reasoning', choice, text: '', format: this.#format, block, signature: sealed })
  }
}

/**
 * The thinking of an earlier answer sealed for `target`, unmodified and in order. Where a client keeps only the text,
 * it is used if the manifest names that field for replay (`reasoning_replay`).
 */
export function replayThinking(message: Message, target: Target): { text: string; signature?: string }[] {
  if (!target.mapping.supports.has('reasoning')) return []
  const { reasoning_details: details, reasoning, reasoning_content: content } = message
  if (details && details.length > 0) {
    return replayDetails(details, target).flatMap(({ type, text, signature }) => {
      if (type !== TYPE || typeof text !== 'string' || text === '') return []
      return [typeof signature === 'string' ? { text, signature } : { text }]
    })
  }
  const field = target.provider.reasoningReplay
  const text = field === 'reasoning' || field === 'reasoning_content' ? reasoning || content : undefined
  return text ? [{ text }] : []
}
