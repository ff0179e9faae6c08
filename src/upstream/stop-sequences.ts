/** Cuts answers at stop sequences that their provider's wire cannot carry. */
import type { ChatRequest } from '../core/chat-request.ts'
import type { Event } from '../core/event.ts'
import { takes } from '../core/operation.ts'
import type { Target } from '../core/translator.ts'
import type { Decoder, Frame } from '../core/wire.ts'

/**
 * `decoder` with a cut at those sequences of a request that its provider does not see; itself without any. `cancel` ends the
 * provider's work; without it, its answer is read to its end for what it reports.
 */
export function cutAtStops(
  decoder: Decoder,
  request: Pick<ChatRequest, 'stop' | 'n'>,
  target: Target,
  cancel: (() => void) | undefined,
): Decoder {
  const { mapping, translator } = target
  const sequences = (request.stop ?? []).filter(
    (sequence, at) => !takes(mapping, 'stop') || translator.takesStop?.(sequence, at) === false,
  )
  return sequences.length === 0 ? decoder : new StopDecoder(decoder, sequences, request.n ?? 1, cancel)
}

/** Text that may begin a sequence waits for what follows it. */
class StopDecoder implements Decoder {
  readonly #decoder: Decoder
  readonly #sequences: readonly string[]
  readonly #choices: number
  /** The last text of each choice, while it may be the beginning of a sequence. */
  readonly #held = new Map<number, string>()
  readonly #stopped = new Set<number>()
  readonly #cancel: (() => void) | undefined
  #isCancelled = false

  constructor(decoder: Decoder, sequences: readonly string[], choices: number, cancel: (() => void) | undefined) {
    this.#decoder = decoder
    this.#sequences = sequences
    this.#choices = choices
    this.#cancel = cancel
  }

  get done(): boolean {
    return this.#isCancelled || this.#decoder.done
  }

  get complete(): boolean {
    return this.#isStopped || this.#decoder.complete === true
  }

  /** Does not count the few characters that wait here. */
  get kept(): number | undefined {
    return this.#decoder.kept
  }

  get #isStopped(): boolean {
    return this.#stopped.size >= this.#choices
  }

  frame(frame: Frame): Event[] {
    return this.#isCancelled ? [] : this.#cut(this.#decoder.frame(frame))
  }

  /** After a cut the provider owes nothing more. */
  end(): Event[] {
    if (this.#isCancelled) return []
    const out = this.#cut(this.#decoder.end())
    for (const choice of this.#held.keys()) this.#release(choice, out)
    return out
  }

  #cut(events: readonly Event[]): Event[] {
    const out: Event[] = []
    for (const event of events) {
      if (event.type === 'passage') this.#release(0, out)
      const choice = 'choice' in event ? event.choice : undefined
      if (choice === undefined) {
        if (!(event.type === 'error' && this.#isStopped)) out.push(event)
      } else if (!this.#stopped.has(choice)) {
        if (event.type === 'text') this.#text(choice, event.text, out)
        else {
          // Neither ends the text that it is about.
          if (event.type !== 'logprobs' && event.type !== 'source') this.#release(choice, out)
          out.push(event)
        }
      }
    }
    return out
  }

  #text(choice: number, piece: string, out: Event[]): void {
    const text = (this.#held.get(choice) ?? '') + piece
    const found = this.#find(text)
    const end = found?.start ?? text.length - this.#beginning(text)
    if (end > 0) out.push({ type: 'text', choice, text: text.slice(0, end) })
    if (!found) {
      this.#held.set(choice, text.slice(end))
      return
    }
    this.#held.delete(choice)
    this.#stopped.add(choice)
    const fields = { stop_reason: 'stop_sequence', stop_sequence: found.sequence }
    out.push({ type: 'finish', choice, reason: 'stop', ending: { wire: 'anthropic.messages', fields } })
    if (!this.#isStopped || !this.#cancel) return
    this.#isCancelled = true
    this.#cancel()
  }

  /** The first sequence in the text, at the place where it is complete first. */
  #find(text: string): { sequence: string; start: number } | undefined {
    let first: { sequence: string; start: number } | undefined
    for (const sequence of this.#sequences) {
      const start = text.indexOf(sequence)
      if (start < 0) continue
      if (!first || start + sequence.length < first.start + first.sequence.length) first = { sequence, start }
    }
    return first
  }

  /** Length of the longest end of the text that begins a sequence. */
  #beginning(text: string): number {
    let longest = 0
    for (const sequence of this.#sequences) {
      for (let length = Math.min(sequence.length - 1, text.length); length > longest; length--) {
        if (text.endsWith(sequence.slice(0, length))) longest = length
      }
    }
    return longest
  }

  #release(choice: number, out: Event[]): void {
    const text = this.#held.get(choice)
    if (text) out.push({ type: 'text', choice, text })
    this.#held.delete(choice)
  }
}
