/** One choice of a growing answer: deltas and whole messages in, events out. */
import {
  type Event,
  entriesIn,
  type FinishReason,
  type GatewayError,
  isObject,
  type Json,
  type Target,
  textIn,
  type WireFields,
} from '../../../src/plugin.ts'
import { CallCount } from '../call-count.ts'
import { ThinkTags } from '../think-tags.ts'
import { Cited } from './cited.ts'
import { ReasoningDetails } from './reasoning-details.ts'
import { ToolCalls } from './tool-calls.ts'

/** Providers' finish reasons (C11); others are a stop. */
const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_calls', 'tool_calls'],
  ['tool_use', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['content_filter', 'content_filter'],
  ['sensitive', 'content_filter'],
  ['safety', 'content_filter'],
  ['refusal', 'content_filter'],
])

/** The state of one choice, until its finish reason and the end of the answer. */
export class Choice {
  readonly #index: number
  readonly #target: Target
  readonly #count: CallCount
  /** Made when they are first needed: most answers have neither. */
  #details: ReasoningDetails | undefined = undefined
  #tools: ToolCalls | undefined = undefined
  /** Reasoning without details, which later ones may repeat. */
  #said = ''
  /** Set until no `<think>` block can follow. */
  #tags: ThinkTags | undefined
  readonly #cited: Cited
  #lists: readonly (readonly unknown[])[] = []
  #finish: FinishReason | undefined
  /** Fields in which the client's own wire says how the answer ended. */
  #ending: WireFields | undefined
  #filtered = false
  #audioWhole = false
  #touched = false

  /** `count`: counts the values in all calls of the answer. */
  constructor(index: number, target: Target, count = new CallCount()) {
    this.#index = index
    this.#target = target
    this.#count = count
    this.#cited = new Cited(index)
    this.#tags = new ThinkTags(index)
  }

  /** Characters kept of its reasoning beside the text, and of calls that wait. */
  get kept(): number {
    return this.#said.length + (this.#details?.kept ?? 0) + (this.#tools?.kept ?? 0)
  }

  /** True once it has any content. */
  get touched(): boolean {
    return this.#touched
  }

  get cited(): boolean {
    return this.#cited.any
  }

  /** Characters of content so far, as the provider counts them. */
  get received(): number {
    return this.#cited.received
  }

  /** True once it may end: a reason arrived, or its audio is complete, which has no reason (C33). */
  get settled(): boolean {
    return this.#finish !== undefined || this.#audioWhole
  }

  /** Keeps the first reason (C9), emitted at the end, because tool calls may still follow it (C21). */
  finish(reason: string, ending?: WireFields): void {
    this.#ending ??= ending
    this.#finish ??= REASONS.get(reason.toLowerCase()) ?? 'stop'
  }

  /** The provider filtered its content, whatever the finish reason is. */
  filter(): void {
    this.#filtered = true
  }

  /** Reads a delta, or a whole message, which has the same fields. */
  read(delta: Json, answerId: string, out: Event[]): void {
    const before = out.length
    this.#reasoning(delta, out)
    const { content, refusal, tool_calls: calls, function_call: call, images, annotations, audio } = delta
    if (typeof content === 'string') this.say(content, out)
    else if (Array.isArray(content)) this.#parts(content, out)
    if (typeof refusal === 'string' && refusal !== '') {
      this.#turn(out)
      out.push({ type: 'refusal', choice: this.#index, text: refusal })
    }
    if (Array.isArray(calls)) this.#calls(calls, answerId, out)
    else if (isObject(call)) this.#calls([{ index: 0, function: call }], answerId, out)
    for (const image of entriesIn(images)) this.#image(image, out)
    for (const note of entriesIn(annotations)) this.annotate(note, out)
    if (isObject(audio)) this.#audio(audio, out)
    if (out.length > before) this.#touched = true
  }

  /** A piece of text, from a delta with only text. */
  say(text: string, out: Event[]): void {
    if (text !== '') this.#text(text, out)
  }

  /** Log probabilities of a delta or message. */
  rate({ content, refusal }: Json, out: Event[]): void {
    for (const [of, tokens] of [
      ['content', content],
      ['refusal', refusal],
    ] as const) {
      if (Array.isArray(tokens) && tokens.length > 0) out.push({ type: 'logprobs', choice: this.#index, of, tokens })
    }
  }

  /** A citation: an address, `{url, title}`, `{link, title}` or `{url_citation: {…}}`, possibly with its place. */
  annotate(note: unknown, out: Event[]): void {
    this.#cited.annotate(note, out)
  }

  /** Lists of sources exist, or may follow. */
  expectLists(): void {
    this.#cited.expectLists()
  }

  /** Lists of sources of the answer, emitted at its end. */
  list(lists: readonly (readonly unknown[])[]): void {
    this.#lists = lists
  }

  /** Emits held content of a truncated answer. */
  flush(out: Event[]): void {
    this.#flushTags(out)
    this.#cited.list(this.#lists, out)
    this.#details?.seal(out)
    this.#tools?.flush(out)
  }

  /** Ends the choice; returns an error when its content is not an answer. */
  close(out: Event[]): GatewayError | undefined {
    this.#flushTags(out)
    this.#cited.list(this.#lists, out)
    this.#details?.seal(out)
    const error = this.#tools?.close(out)
    if (error) return error
    const ending = this.#ending && { ending: this.#ending }
    out.push({ type: 'finish', choice: this.#index, reason: this.#reason(), ...ending })
    return undefined
  }

  /** C10: with tool calls the reason is not stop. C12: without a reason it is stop, unless a call is complete. */
  #reason(): FinishReason {
    if (this.#filtered) return 'content_filter'
    if (this.#finish === undefined) return this.#tools?.anyComplete ? 'tool_calls' : 'stop'
    return this.#finish === 'stop' && this.#tools?.empty === false ? 'tool_calls' : this.#finish
  }

  #text(text: string, out: Event[]): void {
    this.#details?.seal(out)
    this.#cited.receive(text)
    if (this.#tags === undefined) {
      this.#cited.emitted(text)
      out.push({ type: 'text', choice: this.#index, text })
      return
    }
    const before = out.length
    this.#tags.write(text, out)
    this.#recordText(before, out)
    if (this.#tags.over) this.#tags = undefined
  }

  /** Before content other than text. */
  #turn(out: Event[]): void {
    this.#details?.seal(out)
    this.#flushTags(out)
  }

  /** The start of a tag turned out to be text. */
  #flushTags(out: Event[]): void {
    const before = out.length
    this.#tags?.flush(out)
    this.#recordText(before, out)
  }

  /** Records the text among the events from `before` on. */
  #recordText(before: number, out: readonly Event[]): void {
    for (let at = before; at < out.length; at++) {
      const event = out[at]!
      if (event.type === 'text') this.#cited.emitted(event.text)
    }
  }

  /** C25: reasoning precedes the content of the same delta. Its text may be in two fields at once. */
  #reasoning(delta: Json, out: Event[]): void {
    const details = delta.reasoning_details
    if (Array.isArray(details) && details.length > 0) {
      this.#separate(out)
      this.#details ??= new ReasoningDetails(this.#index, this.#target)
      const hasText = this.#details.read(details, out, this.#said)
      if (hasText) this.#said = ''
      if (hasText) return
    }
    const text = textIn(delta.reasoning_content) ?? textIn(delta.reasoning) ?? textIn(delta.reasoning_text)
    if (text !== undefined) this.#think(text, out)
  }

  #think(text: string, out: Event[]): void {
    this.#separate(out)
    this.#details?.seal(out)
    this.#said += text
    out.push({ type: 'reasoning', choice: this.#index, text })
  }

  /** A provider that parses reasoning itself leaves no tags in the text. */
  #separate(out: Event[]): void {
    this.#flushTags(out)
    this.#tags = undefined
  }

  /** C7: content as a list of parts, including thinking. */
  #parts(parts: readonly unknown[], out: Event[]): void {
    for (const part of entriesIn(parts)) {
      if (typeof part === 'string') this.#text(part, out)
      else if (isObject(part)) this.#part(part, out)
    }
  }

  #part(part: Json, out: Event[]): void {
    const { thinking } = part
    if (typeof thinking === 'string' || Array.isArray(thinking)) {
      const text = typeof thinking === 'string' ? thinking : joined(thinking)
      if (text !== '') this.#think(text, out)
    } else if (typeof part.text === 'string') {
      if (part.text !== '') this.#text(part.text, out)
    } else if (part.type === 'tool_reference') this.#cited.refer(part, out)
    else if (part.image_url !== undefined) this.#image(part, out)
    else if (textIn(part.refusal) !== undefined) {
      this.#turn(out)
      out.push({ type: 'refusal', choice: this.#index, text: String(part.refusal) })
    }
  }

  #calls(calls: readonly unknown[], answerId: string, out: Event[]): void {
    if (calls.length === 0) return
    this.#turn(out)
    this.#tools ??= new ToolCalls(this.#index, this.#count, this.#target)
    this.#tools.read(calls, answerId, out)
  }

  #image(image: unknown, out: Event[]): void {
    const source = isObject(image) ? image.image_url : image
    const url = isObject(source) ? textIn(source.url) : textIn(source)
    if (url === undefined) return
    this.#turn(out)
    out.push({ type: 'image', choice: this.#index, url })
  }

  /** The interface carries no audio: the transcript becomes the answer's text. */
  #audio(audio: Json, out: Event[]): void {
    const transcript = textIn(audio.transcript)
    if (transcript !== undefined) this.#text(transcript, out)
    if (audio.expires_at != null) this.#audioWhole = true
  }
}

function joined(parts: readonly unknown[]): string {
  let text = ''
  for (const part of parts) if (isObject(part) && typeof part.text === 'string') text += part.text
  return text
}
