/** The growing items of an answer: events of the wire in, canonical events out. */
import {
  checkBlocks,
  countIn,
  type Event,
  entriesIn,
  isObject,
  type Json,
  listIn,
  type Phase,
  textIn,
} from '../../src/plugin.ts'
import type { Answer } from './answer.ts'
import { CallItem } from './call.ts'
import { FORMAT, nativeBlock, type Position, sealReasoning } from './replay.ts'

/** An output item from `response.output_item.added` to `response.output_item.done`. */
export interface Item {
  /** An event with a piece of the item. */
  piece(kind: string, event: Json, out: Event[]): void
  /** The final item; streamed parts are not emitted again. */
  done(item: Json, out: Event[]): void
}

/** `item`: its first state on the wire. */
export function openItem(item: Json, answer: Answer, out: Event[]): Item {
  switch (item.type) {
    case 'message':
      return new MessageItem(item, answer)
    case 'reasoning':
      return new ReasoningItem(answer)
    case 'function_call':
    case 'custom_tool_call':
      return new CallItem(item, answer, out)
    case 'tool_search_call':
      // One that the client runs is a call as others.
      return item.execution === 'client' && answer.isNative
        ? new CallItem({ ...item, name: 'tool_search' }, answer, out)
        : new NativeItem(answer)
    case 'image_generation_call':
      return new ImageItem(answer)
    default:
      return new NativeItem(answer)
  }
}

/** A message: text, refusals and annotations. */
export class MessageItem implements Item {
  readonly #answer: Answer
  readonly #phase: Phase | undefined
  #begun = false
  /** Starts of streamed parts in the answer's text, by the wire's content index. */
  readonly #starts = new Map<number, number>()
  /** Start of the item in the answer's text. */
  #start: number | undefined
  /** Characters that were emitted. */
  readonly #said = { text: 0, refusal: 0 }

  constructor({ phase }: Json, answer: Answer) {
    this.#answer = answer
    answer.place()
    this.#phase = phase === 'commentary' || phase === 'final_answer' ? phase : undefined
  }

  /** True once it emitted anything. */
  get begun(): boolean {
    return this.#begun
  }

  piece(kind: string, event: Json, out: Event[]): void {
    const { delta } = event
    const index = placeOf(event.content_index)
    if (kind === 'response.output_text.annotation.added') {
      this.#answer.cite(event.annotation, this.#starts.get(index) ?? this.#answer.written, out)
    } else if (typeof delta === 'string') {
      this.#begins(index)
      this.#say(kind === 'response.refusal.delta' ? 'refusal' : 'text', delta, out)
      rate(event.logprobs, out)
    }
  }

  /** Some servers number the parts of the final item in another way: those beyond the streamed text are new. */
  done({ content }: Json, out: Event[]): void {
    const begin = this.#start ?? this.#answer.written
    const streamed = { ...this.#said }
    const passed = { text: 0, refusal: 0 }
    for (const part of entriesIn(content)) {
      if (!isObject(part)) continue
      const start = begin + passed.text
      const type = part.type === 'refusal' ? 'refusal' : 'text'
      const isPart = type === 'refusal' || part.type === 'output_text'
      const text = isPart ? textIn(type === 'refusal' ? part.refusal : part.text) : undefined
      const isNew = passed[type] >= streamed[type]
      passed[type] += text?.length ?? 0
      if (isNew && isPart) {
        this.#say(type, text, out)
        rate(part.logprobs, out)
      }
      for (const annotation of entriesIn(part.annotations)) this.#answer.cite(annotation, start, out)
    }
  }

  #begins(index: number): void {
    this.#start ??= this.#answer.written
    if (this.#starts.has(index)) return
    this.#starts.set(index, this.#answer.written)
    checkBlocks(this.#starts.size)
  }

  /** The phase waits for the first text: clients ignore empty items. */
  #say(type: 'text' | 'refusal', text: unknown, out: Event[]): void {
    if (typeof text !== 'string' || text === '') return
    if (!this.#begun) {
      this.#begun = true
      this.#answer.speak(this.#phase !== undefined)
      if (this.#phase) out.push({ type: 'phase', choice: 0, phase: this.#phase })
    }
    this.#said[type] += text.length
    if (type === 'text') this.#answer.written += text.length
    out.push({ type, choice: 0, text })
  }
}

/** Log probabilities of a text's tokens, if requested. */
function rate(logprobs: unknown, out: Event[]): void {
  const tokens = listIn(logprobs)
  if (tokens.length > 0) out.push({ type: 'logprobs', choice: 0, of: 'content', tokens })
}

/** The summary, or on some servers the text itself, is for display; the encrypted content, or that text, is replayed. */
export class ReasoningItem implements Item {
  readonly #answer: Answer
  readonly #position: Position
  readonly #block: number
  #streamed = false
  #sealed = false
  /** The part last written to. */
  #part: string | undefined

  constructor(answer: Answer) {
    this.#answer = answer
    this.#position = answer.place()
    this.#block = answer.block()
  }

  piece(kind: string, event: Json, out: Event[]): void {
    const part =
      kind === 'response.reasoning_text.delta'
        ? `text ${placeOf(event.content_index)}`
        : `${placeOf(event.summary_index)}`
    this.#streamed = true
    this.#write(part, event.delta, out)
  }

  done(item: Json, out: Event[]): void {
    if (!this.#streamed) {
      for (const [index, part] of entriesIn(item.summary).entries()) this.#whole(`${index}`, part, out)
      for (const [index, part] of entriesIn(item.content).entries()) this.#whole(`text ${index}`, part, out)
    }
    this.seal(item, out)
  }

  /** Only the final item counts: some providers first send other encrypted content, or none. */
  seal(item: Json, out: Event[]): void {
    if (this.#sealed) return
    const data = sealReasoning(item, this.#position, this.#answer.target)
    if (data === undefined) return
    this.#sealed = true
    out.push({ type: 'reasoning', choice: 0, text: '', format: FORMAT, block: this.#block, data })
  }

  #whole(name: string, part: unknown, out: Event[]): void {
    if (isObject(part)) this.#write(name, part.text, out)
  }

  /** A blank line between the parts. */
  #write(part: string, text: unknown, out: Event[]): void {
    if (typeof text !== 'string' || text === '') return
    const gap = this.#part === undefined || this.#part === part ? '' : '\n\n'
    this.#part = part
    out.push({ type: 'reasoning', choice: 0, text: gap + text, format: FORMAT, block: this.#block })
  }
}

class ImageItem implements Item {
  constructor(answer: Answer) {
    answer.place()
  }

  /** A preview is not the image. */
  piece(): void {}

  done({ result, output_format: format }: Json, out: Event[]): void {
    const base64 = textIn(result)
    if (base64 === undefined) return
    out.push({ type: 'image', choice: 0, url: `data:image/${textIn(format) ?? 'png'};base64,${base64}` })
  }
}

/** Kept whole for replay to the provider. */
class NativeItem implements Item {
  readonly #answer: Answer
  readonly #position: Position

  constructor(answer: Answer) {
    this.#answer = answer
    this.#position = answer.place()
  }

  piece(): void {}

  done(item: Json, out: Event[]): void {
    const { provider } = this.#answer.target
    out.push({ type: 'native', choice: 0, provider: provider.id, block: nativeBlock(item, this.#position) })
    if (!isSearch(item)) return
    this.#answer.searches++
    out.push({ type: 'usage', usage: { web_search: this.#answer.searches } })
  }
}

/** Opening a found page, or searching within it, does not count as a search. */
function isSearch({ type, action, status }: Json): boolean {
  if (type !== 'web_search_call' || status === 'failed') return false
  return !isObject(action) || action.type === undefined || action.type === 'search'
}

/** Returns the index of a part within its item; 0 when the server sends none. */
const placeOf = (index: unknown): number => countIn(index) ?? 0
