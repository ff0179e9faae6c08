/** Converts events of an answer to consecutive content blocks, as clients of this wire read them. */
import type { ChoiceEvent, Event, FinishReason, ReasoningEvent, ToolEvent } from '../../core/event.ts'
import { joins, waitable } from '../waiting-pieces.ts'
import { carry, NATIVE_FORMAT } from './carried.ts'
import { HiddenReasoning } from './hidden-reasoning.ts'
import { PendingTool } from './pending-tool.ts'
import { type BlockSink, WIRE } from './sink.ts'
import { WebResults } from './web-results.ts'

/** Neither a piece of a call nor the end. */
type BlockEvent = Exclude<ChoiceEvent, { type: 'tool' | 'finish' }>
interface Thinking {
  readonly type: 'thinking'
  readonly block: number | undefined
  readonly format: string | undefined
  signed: boolean
}
/** The open block, as far as the next event depends on it. */
type Open = { readonly type: 'text' } | Thinking | { readonly type: 'tool'; readonly tool: PendingTool }

/** Blocks of one answer: `add` every event of it, then `end` once. Only choice 0 is written. */
export class Blocks {
  readonly #sink: BlockSink
  readonly #id: string
  #open: Open | undefined
  readonly #tools = new Map<number, PendingTool>()
  /**
   * Calls that began before the open one was complete, and other content in between: providers may interleave them, and
   * a closed block accepts no more.
   */
  #waiting: (PendingTool | BlockEvent)[] = []
  /** Characters of the text that are already written. */
  #written = 0
  readonly #web: WebResults
  /** Unset when reasoning is shown. */
  readonly #hidden: HiddenReasoning | undefined
  /**
   * Seals after a text. They are emitted before following content and dropped at the end: clients that print an answer
   * read its last block.
   */
  #late: ReasoningEvent[] = []
  #finish: FinishReason = 'stop'
  #ending: Readonly<Record<string, unknown>> | undefined
  /** Text of a refusal. */
  refusal = ''

  /** `id` is unique to the answer; `hides`: see `hidesReasoning`. */
  constructor(sink: BlockSink, id: string, hides = false) {
    this.#sink = sink
    this.#id = id
    this.#hidden = hides ? new HiddenReasoning() : undefined
    this.#web = new WebResults(id)
  }

  add(event: ChoiceEvent): void {
    // This wire has one choice.
    if (event.choice !== 0) return
    if (event.type === 'tool') this.#tool(event)
    else if (event.type === 'finish') {
      this.#finish = event.reason
      if (event.ending?.wire === WIRE) this.#ending = event.ending.fields
    } else if (this.#isOwed) this.#wait(event)
    else this.#append(event)
  }

  /** The next text begins a new block. */
  passage({ wire, citations }: Extract<Event, { type: 'passage' }>): void {
    if (wire !== WIRE) return
    this.#web.showsSearches()
    if (this.#open?.type !== 'text') return
    for (const citation of citations) this.#sink.cite(citation)
    this.#close()
  }

  /** Call once, after the last event. */
  end(): void {
    this.#goOn(true)
    if (this.#tools.size > 0) this.#unseal()
    this.#close()
    for (const block of this.#web.blocks()) this.#sink.whole(block)
  }

  /** Whether the open call is missing arguments. */
  get #isOwed(): boolean {
    return this.#open?.type === 'tool' && !this.#open.tool.isComplete
  }

  #wait(event: BlockEvent): void {
    const last = this.#waiting.at(-1)
    const isPiece = !(last instanceof PendingTool) && joins(last, event)
    if (!isPiece) this.#waiting.push(waitable(event))
  }

  #append(event: BlockEvent): void {
    switch (event.type) {
      case 'text':
        this.#text(event.text)
        break
      case 'refusal':
        this.refusal += event.text
        if (event.wire !== WIRE) this.#text(event.text)
        break
      case 'reasoning':
        if (this.#hidden) this.#hidden.add(event)
        else if (this.#isLate(event)) this.#late.push(event)
        else this.#reasoning(event)
        break
      case 'phase':
        if (this.#open?.type === 'text') this.#close()
        break
      case 'source':
        this.#web.source(event)
        break
      case 'native':
        this.#close()
        this.#sink.whole(this.#web.native(event))
        break
      case 'image':
        // The wire has no block for an image by the assistant.
        break
    }
  }

  /** Null unless the provider named one. */
  get stopSequence(): string | null {
    const sequence = this.#ending?.stop_sequence
    return typeof sequence === 'string' ? sequence : null
  }

  /** The provider's details, else the refusal's text. */
  get stopDetails(): unknown {
    const details = this.#ending?.stop_details
    if (details !== undefined) return details
    return this.refusal === '' ? undefined : { type: 'refusal', category: null, explanation: this.refusal }
  }

  /** The container of this answer's code, for reuse by the next turn. */
  get container(): unknown {
    return this.#ending?.container
  }

  /** Context edits made by the provider before reading. */
  get contextManagement(): unknown {
    return this.#ending?.context_management
  }

  get stopReason(): string {
    if (typeof this.#ending?.stop_reason === 'string') return this.#ending.stop_reason
    switch (this.#finish) {
      case 'length':
        return 'max_tokens'
      case 'tool_calls':
        return 'tool_use'
      case 'content_filter':
        return 'refusal'
      default:
        if (this.refusal !== '') return 'refusal'
        return this.#web.unanswered ? 'pause_turn' : 'end_turn'
    }
  }

  #text(text: string): void {
    if (text === '') return
    if (this.#open?.type !== 'text') {
      this.#begin({ type: 'text' })
      this.#sink.open({ type: 'text', text: '' })
    }
    this.#sink.text(text)
  }

  /** After a text, without visible content, and without a block type of the wire. */
  #isLate({ text, format }: ReasoningEvent): boolean {
    return text === '' && format !== NATIVE_FORMAT && this.#open?.type === 'text'
  }

  #reasoning({ text, format, block, signature, data }: ReasoningEvent): void {
    this.#emitLate()
    if (text !== '') {
      this.#thinking(block, format)
      this.#sink.thinking(text)
    }
    if (format === NATIVE_FORMAT) {
      if (signature !== undefined) this.#sign(this.#thinking(block, format), signature)
      if (data === undefined) return
      this.#close()
      this.#sink.whole({ type: 'redacted_thinking', data })
      return
    }
    if (signature !== undefined) this.#seal('signature', signature, block, format)
    if (data !== undefined) this.#seal('data', data, block, format)
  }

  /** The open thinking block, or a new one for another piece of reasoning. */
  #thinking(block: number | undefined, format: string | undefined): Thinking {
    const open = this.#open
    if (open?.type === 'thinking' && isOf(open, block, format) && !open.signed) return open
    const begun: Thinking = { type: 'thinking', block, format, signed: false }
    this.#begin(begun)
    this.#sink.open({ type: 'thinking', thinking: '', signature: '' })
    return begun
  }

  /** The open thinking block if its text has no seal of its own; else a new one for the seal. */
  #sealable(block?: number, format?: string): Thinking {
    const open = this.#open
    const isPlain = open?.type === 'thinking' && open.format === undefined && !open.signed
    return isPlain ? open : this.#thinking(block, format)
  }

  #seal(what: 'signature' | 'data', sealed: string, block: number | undefined, format: string | undefined): void {
    const into = this.#sealable(block, format)
    const isOfText = what === 'signature' && isOf(into, block, format)
    this.#sign(into, carry({ what: isOfText ? 'text' : what, format, place: String(block ?? ''), sealed }))
  }

  /** A client limited to the wire's own fields keeps nothing else of a signed call. */
  #sealCall({ id, signature }: PendingTool): void {
    if (signature === undefined || this.#hidden) return
    this.#sign(this.#sealable(), carry({ what: 'call', format: undefined, place: id, sealed: signature }))
  }

  #sign(open: Thinking, signature: string): void {
    this.#sink.signature(signature)
    open.signed = true
  }

  #tool(event: ToolEvent): void {
    let tool = this.#tools.get(event.index)
    const isNew = tool === undefined
    tool ??= new PendingTool(`toolu_${this.#id}_${event.index}`)
    if (isNew) this.#tools.set(event.index, tool)
    // Computed before emitting: the piece may be the last one of the open call.
    const isOwed = this.#isOwed
    tool.add(event)
    if (this.#open?.type === 'tool' && this.#open.tool === tool) {
      if (event.args) this.#sink.json(event.args)
      this.#goOn(false)
    } else if (isNew && isOwed) this.#waiting.push(tool)
    else if (isNew) this.#openTool(tool)
  }

  #openTool(tool: PendingTool): void {
    this.#unseal()
    this.#sealCall(tool)
    this.#begin({ type: 'tool', tool })
    this.#sink.open(tool.open())
    if (tool.args !== '') this.#sink.json(tool.args)
  }

  #emitLate(): void {
    const late = this.#late
    if (late.length === 0) return
    this.#late = []
    for (const seal of late) this.#reasoning(seal)
  }

  /** Writes seals of hidden reasoning beside a call. */
  #unseal(): void {
    this.#emitLate()
    for (const seal of this.#hidden?.take() ?? []) this.#reasoning(seal)
  }

  /** Writes held content up to a call with missing arguments, or all of it. */
  #goOn(isEnd: boolean): void {
    while (this.#written < this.#waiting.length && (isEnd || !this.#isOwed)) {
      const next = this.#waiting[this.#written++]!
      if (next instanceof PendingTool) this.#openTool(next)
      else this.#append(next)
    }
    if (this.#written < this.#waiting.length) return
    this.#waiting = []
    this.#written = 0
  }

  #begin(open: Open): void {
    this.#close()
    this.#open = open
  }

  #close(): void {
    const open = this.#open
    if (!open) return
    this.#open = undefined
    if (open.type === 'thinking' && !open.signed && open.format !== NATIVE_FORMAT) {
      this.#sink.signature(carry({ what: 'text', format: open.format, place: String(open.block ?? ''), sealed: '' }))
    }
    if (open.type === 'tool' && open.tool.args === '') this.#sink.json('{}')
    this.#sink.close()
  }
}

const isOf = (open: Thinking, block: number | undefined, format: string | undefined): boolean =>
  open.block === block && open.format === format
