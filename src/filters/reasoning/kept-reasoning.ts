/** The events of an answer, of which the reasoning before its calls is kept. */

import type { Event, ReasoningEvent, ToolEvent } from '../../core/event.ts'
import type { Reply } from '../../core/reply.ts'

/** The first call of a turn. */
export interface KeptCall {
  readonly id: string
  readonly name: string
  readonly args: string
}

type Batch = IteratorResult<readonly Event[]>

/** Maximum characters kept of one answer; a longer one is not kept. */
const MAX_KEPT_CHARACTERS = 1024 * 1024
/** Bytes that an entry takes beside its events. */
const ENTRY_BYTES = 600
/** Characters that each kept event counts beside its own. */
const EVENT_CHARACTERS = 64

/**
 * Collects the reasoning of the first choice. Clients that run tool loops request a single choice. A hand-written
 * iterator, because every batch passes through it.
 */
export class KeptReasoning implements AsyncIterable<readonly Event[]>, AsyncIterator<readonly Event[]> {
  readonly #inner: AsyncIterator<readonly Event[]>
  readonly #set: (call: KeptCall, events: readonly Event[], bytes: number) => void
  readonly #reasoning: ReasoningEvent[] = []
  readonly #signed: ToolEvent[] = []
  #size = 0
  /** The first call; `args` grows. */
  #call: { id: string; name: string; args: string } | undefined

  /** `set` is called once, before the end of an answer with calls passes. */
  constructor(events: Reply['events'], set: (call: KeptCall, events: readonly Event[], bytes: number) => void) {
    this.#inner = events[Symbol.asyncIterator]()
    this.#set = set
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<Batch> {
    return this.#inner.next().then(this.#pass)
  }

  async return(): Promise<Batch> {
    await this.#inner.return?.()
    return { done: true, value: undefined }
  }

  readonly #pass = (result: Batch): Batch => {
    if (!result.done) for (const event of result.value) this.#see(event)
    return result
  }

  #see(event: Event): void {
    if (!('choice' in event) || event.choice !== 0) return
    if (event.type === 'reasoning') {
      this.#size += event.text.length + (event.signature?.length ?? 0) + (event.data?.length ?? 0)
      if (this.#size <= MAX_KEPT_CHARACTERS) this.#keep(event)
    } else if (event.type === 'tool') this.#seeCall(event)
    else if (event.type === 'finish') this.#finish()
  }

  /** Joins the pieces of one block. Kept events are copies: the encoder reads the answer's own. */
  #keep(event: ReasoningEvent): void {
    const last = this.#reasoning.at(-1)
    if (last && isContinued(last, event)) {
      last.text += event.text
      if (event.signature !== undefined) last.signature = event.signature
      return
    }
    this.#size += EVENT_CHARACTERS
    this.#reasoning.push(Object.assign({}, event))
  }

  #seeCall({ index, id, name, args = '', signature }: ToolEvent): void {
    if (index === 0) {
      this.#call ??= { id: id ?? '', name: name ?? '', args: '' }
      if (this.#call.args.length <= MAX_KEPT_CHARACTERS) this.#call.args += args
    }
    if (signature === undefined || id === undefined) return
    this.#size += signature.length + EVENT_CHARACTERS
    if (this.#size <= MAX_KEPT_CHARACTERS) this.#signed.push({ type: 'tool', choice: 0, index, id, signature })
  }

  #finish(): void {
    const isSealed = this.#signed.length > 0 || this.#reasoning.length > 0
    if (!this.#call || !isSealed || this.#size > MAX_KEPT_CHARACTERS || this.#call.args.length > MAX_KEPT_CHARACTERS)
      return
    const events = [...this.#reasoning, ...this.#signed]
    const { id, name, args } = this.#call
    this.#call = undefined
    this.#set({ id, name, args: args === '' ? '{}' : args }, events, ENTRY_BYTES + JSON.stringify(events).length)
  }
}

const isContinued = (last: ReasoningEvent, { block, format, data }: ReasoningEvent): boolean =>
  last.block === block &&
  last.format === format &&
  last.signature === undefined &&
  last.data === undefined &&
  data === undefined
