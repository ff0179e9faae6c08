/** Folds the events of a chat answer into its choices: a whole answer is the stream read to its end. */
import type { Event, FinishReason, Phase, ReasoningEvent, SourceEvent } from '../core/event.ts'

/** An entry of `reasoning_details`, whole. */
export interface ReasoningDetail {
  type: 'reasoning.text' | 'reasoning.encrypted'
  text?: string
  signature?: string
  data?: string
  format?: string
  block_index?: number
}

/** A tool call, put together from its events; `args` is JSON text. */
interface FoldedTool {
  id: string
  name: string
  args: string
  /** A custom tool's call: `args` are any text. */
  custom: true | undefined
  signature: string | undefined
}

/** A piece of the text with a phase of its own, as docs/contract.md#chat-requests takes it back. */
export interface PhasedItem {
  text: string
  readonly phase: Phase
  readonly preceding_tool_calls: number
}

/** An answer, put together from its events. */
export interface Choice {
  text: string
  sawText: boolean
  refusal: string
  reasoning: string
  details: ReasoningDetail[]
  tools: FoldedTool[]
  /** Empty for answers without phases. */
  items: PhasedItem[]
  /** Null for answers without any. */
  logprobs: { content: unknown[] | null; refusal: unknown[] | null } | null
  images: string[]
  sources: SourceEvent[]
  native: Record<string, unknown>[]
  textBeforeTools: boolean
  finish: FinishReason | null
}

/** Choices by index; only those that were seen. */
export class Fold {
  readonly choices: Choice[] = []

  add(batch: readonly Event[]): void {
    for (const event of batch) {
      if (!('choice' in event)) continue
      const choice = this.#choice(event.choice)
      switch (event.type) {
        case 'text':
          choice.text += event.text
          choice.sawText = true
          if (choice.items.length > 0) choice.items.at(-1)!.text += event.text
          break
        case 'phase':
          choice.items.push({ text: '', phase: event.phase, preceding_tool_calls: choice.tools.length })
          break
        case 'refusal':
          choice.refusal += event.text
          break
        case 'reasoning':
          choice.reasoning += event.text
          addDetail(choice.details, event)
          break
        case 'tool': {
          if (choice.tools.length === 0 && choice.text !== '') choice.textBeforeTools = true
          choice.tools[event.index] ??= { id: '', name: '', args: '', custom: event.custom, signature: undefined }
          const tool = choice.tools[event.index]!
          tool.id ||= event.id ?? ''
          tool.name ||= event.name ?? ''
          tool.args += event.args ?? ''
          tool.signature ??= event.signature
          break
        }
        case 'logprobs': {
          choice.logprobs ??= { content: null, refusal: null }
          choice.logprobs[event.of] ??= []
          for (const token of event.tokens) choice.logprobs[event.of]!.push(token)
          break
        }
        case 'image':
          choice.images.push(event.url)
          break
        case 'source':
          choice.sources.push(event)
          break
        case 'native':
          choice.native.push({ ...event.block, provider: event.provider })
          break
        case 'finish':
          choice.finish ??= event.reason
          break
      }
    }
  }

  #choice(index: number): Choice {
    this.choices[index] ??= {
      text: '',
      sawText: false,
      refusal: '',
      reasoning: '',
      details: [],
      tools: [],
      items: [],
      logprobs: null,
      images: [],
      sources: [],
      native: [],
      textBeforeTools: false,
      finish: null,
    }
    return this.choices[index]
  }
}

/** Joins the pieces of one block; plain reasoning without a format needs no entry of its own. */
export function addDetail(details: ReasoningDetail[], event: ReasoningEvent): void {
  if (event.format === undefined) return
  const last = details.at(-1)
  if (last && last.block_index === event.block && last.format === event.format && event.data === undefined) {
    if (event.text !== '') last.text = (last.text ?? '') + event.text
    if (event.signature !== undefined) last.signature = event.signature
    return
  }
  details.push(toDetail(event))
}

/** One event as an entry of `reasoning_details`. */
export function toDetail(event: ReasoningEvent): ReasoningDetail {
  const detail: ReasoningDetail = { type: event.data === undefined ? 'reasoning.text' : 'reasoning.encrypted' }
  if (event.data === undefined) detail.text = event.text
  else detail.data = event.data
  if (event.signature !== undefined) detail.signature = event.signature
  if (event.format !== undefined) detail.format = event.format
  if (event.block !== undefined) detail.block_index = event.block
  return detail
}
