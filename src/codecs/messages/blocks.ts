/** Events of an answer as content blocks, one after the other: the order in which clients of this wire read them. */
import type { Event, FinishReason, ReasoningEvent, ToolEvent } from '../../core/event.ts'
import { carry, NATIVE_FORMAT } from './carried.ts'
import { PendingTool } from './pending-tool.ts'
import type { BlockSink } from './sink.ts'
import { WebResults } from './web-results.ts'

const NATIVE_WIRE = 'anthropic.messages'

type ChoiceEvent = Extract<Event, { choice: number }>
/** What the open block is, as far as the next event needs to know. */
type Open =
  | { readonly type: 'text' }
  | {
      readonly type: 'thinking'
      readonly block: number | undefined
      readonly format: string | undefined
      signed: boolean
    }
  | { readonly type: 'tool'; readonly tool: PendingTool }

export class Blocks {
  readonly #sink: BlockSink
  readonly #id: string
  #open: Open | undefined
  readonly #tools = new Map<number, PendingTool>()
  /** Calls that began while the arguments of the open one were not complete: providers may interleave them. */
  #waiting: PendingTool[] = []
  readonly #web: WebResults
  #finish: FinishReason = 'stop'
  #ending: Readonly<Record<string, unknown>> | undefined
  /** What the model said in refusing, if it refused. */
  refusal = ''

  /** `id` is unique to the answer. */
  constructor(sink: BlockSink, id: string) {
    this.#sink = sink
    this.#id = id
    this.#web = new WebResults(id)
  }

  add(event: ChoiceEvent): void {
    // This wire has one choice.
    if (event.choice !== 0) return
    switch (event.type) {
      case 'text':
        this.#text(event.text)
        break
      case 'refusal':
        this.refusal += event.text
        this.#text(event.text)
        break
      case 'reasoning':
        this.#reasoning(event)
        break
      case 'tool':
        this.#tool(event)
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
      case 'finish':
        this.#finish = event.reason
        if (event.ending?.wire === NATIVE_WIRE) this.#ending = event.ending.fields
        break
      case 'image':
        // No block of this wire holds an image that an assistant made.
        break
    }
  }

  /** Call it once, after the last event. */
  end(): void {
    this.#close()
    for (const block of this.#web.blocks()) this.#sink.whole(block)
  }

  /** Only where the provider named one. */
  get stopSequence(): string | null {
    const sequence = this.#ending?.stop_sequence
    return typeof sequence === 'string' ? sequence : null
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

  #reasoning({ text, format, block, signature, data }: ReasoningEvent): void {
    const isNative = format === NATIVE_FORMAT
    if (text !== '' || signature !== undefined) {
      const open = this.#thinking(block, format)
      if (text !== '') this.#sink.thinking(text)
      if (signature !== undefined) {
        this.#sink.signature(isNative ? signature : carry(format, block, signature))
        open.signed = true
      }
    }
    if (data === undefined) return
    this.#close()
    this.#sink.whole({ type: 'redacted_thinking', data: isNative ? data : carry(format, block, data) })
  }

  /** The open thinking block, or a new one when that is of another piece of reasoning. */
  #thinking(block: number | undefined, format: string | undefined): Open & { type: 'thinking' } {
    const open = this.#open
    if (open?.type === 'thinking' && open.block === block && open.format === format && !open.signed) return open
    const begun: Open & { type: 'thinking' } = { type: 'thinking', block, format, signed: false }
    this.#begin(begun)
    this.#sink.open({ type: 'thinking', thinking: '', signature: '' })
    return begun
  }

  #tool(event: ToolEvent): void {
    const open = this.#open?.type === 'tool' ? this.#open.tool : undefined
    let tool = this.#tools.get(event.index)
    if (!tool) {
      tool = new PendingTool(`toolu_${this.#id}_${event.index}`)
      this.#tools.set(event.index, tool)
      if (open && !open.isComplete) this.#waiting.push(tool)
    }
    tool.add(event)
    if (tool === open) {
      if (event.args) this.#sink.json(event.args)
      if (this.#waiting.length > 0 && tool.isComplete) this.#next()
    } else if (!this.#waiting.includes(tool) && !tool.isOpened) this.#openTool(tool)
  }

  #openTool(tool: PendingTool): void {
    this.#begin({ type: 'tool', tool })
    this.#sink.open(tool.open())
    if (tool.args !== '') this.#sink.json(tool.args)
  }

  /** Opens the calls that wait, up to the first whose arguments are still to come. */
  #next(): void {
    for (let tool = this.#waiting.shift(); tool; tool = this.#waiting.shift()) {
      this.#openTool(tool)
      if (!tool.isComplete) return
    }
  }

  #begin(open: Open): void {
    if (open.type === 'tool') this.#closeOne()
    else this.#close()
    this.#open = open
  }

  /** Ends the open block, and writes the calls that waited for it. */
  #close(): void {
    this.#closeOne()
    for (let tool = this.#waiting.shift(); tool; tool = this.#waiting.shift()) {
      this.#openTool(tool)
      this.#closeOne()
    }
  }

  #closeOne(): void {
    const open = this.#open
    if (!open) return
    this.#open = undefined
    if (open.type === 'thinking' && !open.signed && open.format !== undefined && open.format !== NATIVE_FORMAT) {
      this.#sink.signature(carry(open.format, open.block, ''))
    }
    if (open.type === 'tool' && open.tool.args === '') this.#sink.json('{}')
    this.#sink.close()
  }
}
