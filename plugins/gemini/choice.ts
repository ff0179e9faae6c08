/** One candidate of a growing answer: parts in, events out. */
import {
  billed,
  type Event,
  entriesIn,
  type FinishReason,
  type GatewayError,
  isObject,
  type Json,
  seal,
  type Target,
  textIn,
  type Usage,
  upstreamError,
  weigh,
} from '../../src/plugin.ts'
import { malformed } from '../shared/answer.ts'
import { Calls } from './calls.ts'
import { isFiltered } from './error.ts'
import { Grounding, type TextRoom } from './grounding.ts'
import type { PathCount } from './partial-args.ts'
import { FORMAT, NATIVE_FIELDS } from './signatures.ts'
import { studio } from './surface.ts'

/** Client wire of both surfaces. */
export const NATIVE_WIRE = studio.wire

/** Finish reasons of the wire; others are a stop. A continuation exists, which a translator cannot fetch. */
const reasonOf = (finish: string): FinishReason | undefined => {
  if (finish === 'MAX_TOKENS' || finish === 'CONTINUATION') return 'length'
  return isFiltered(finish) ? 'content_filter' : undefined
}

/** Reasons without content that the prompt of a caller can bring about at will: each provider would end like this. */
const AT_WILL: ReadonlySet<string> = new Set(['UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS', 'LANGUAGE', 'NO_IMAGE'])

/** Fields of a candidate besides its parts, for clients of the same wire. */
const SAID = [
  'finishReason',
  'finishMessage',
  'safetyRatings',
  'citationMetadata',
  'groundingMetadata',
  'urlContextMetadata',
  'avgLogprobs',
  'logprobsResult',
] as const

/** Kind of a part; consecutive parts of one kind are one block. */
type Kind = 'thought' | 'text' | 'image' | 'call' | 'native'

/** The state of one candidate, from its first part to its finish reason. */
export class Choice {
  readonly #index: number
  readonly #target: Target
  readonly #calls: Calls
  readonly #grounding: Grounding
  /** Native members by name; undefined unless a Gemini client reads the answer. */
  readonly #said: Json | undefined
  #saidCharacters = 0
  #finish: string | undefined
  #answered = false
  #kind: Kind | undefined
  #block = -1

  /**
   * `count`: of the answer's calls. `room`: where citations need their places in the text. `native`: the client uses
   * this wire.
   */
  constructor(index: number, target: Target, count: PathCount, room: TextRoom | undefined, native: boolean) {
    this.#said = native ? {} : undefined
    this.#index = index
    this.#target = target
    this.#calls = new Calls(index, target, count)
    this.#grounding = new Grounding(index, room)
  }

  /** True once a finish reason arrived; parts may still follow it (C21). */
  get finished(): boolean {
    return this.#finish !== undefined
  }

  /** Characters kept until it closes. */
  get kept(): number {
    return this.#grounding.kept + this.#saidCharacters
  }

  /** Web searches made for it. */
  get searches(): number {
    return this.#grounding.searches
  }

  /** Reads a candidate of a chunk; returns an error when it cannot be part of an answer. */
  read(candidate: Json, answerId: string, out: Event[]): GatewayError | undefined {
    const { content, groundingMetadata: grounding, citationMetadata: citations } = candidate
    for (const part of isObject(content) ? entriesIn(content.parts) : []) {
      const error = isObject(part) ? this.#part(part, answerId, out) : undefined
      if (error) return error
    }
    if (isObject(grounding)) this.#grounding.ground(grounding)
    if (isObject(citations)) this.#grounding.cite(citations)
    if (this.#said) {
      for (const name of SAID) {
        if (candidate[name] == null) continue
        this.#saidCharacters += weigh(candidate[name]) - weigh(this.#said[name])
        this.#said[name] = candidate[name]
      }
    }
    // C9: the first reason counts.
    this.#finish ??= textIn(candidate.finishReason)
    return undefined
  }

  /**
   * Ends the candidate. `blocked`: the provider blocked the prompt. A candidate without content has
   * failed unless it ended by itself, by its limit or by a filter: malformed calls, and unspecific reasons. `spare`:
   * other candidates have content, so this one may be empty. `usage`: of the answer, as reported.
   */
  close(
    answerId: string,
    { blocked, spare, usage }: { blocked: boolean; spare: boolean; usage: Usage | undefined },
    out: Event[],
  ): GatewayError | undefined {
    this.cite(out)
    const finish = this.#finish ?? ''
    const reason = blocked ? 'content_filter' : reasonOf(finish)
    // The end of the last call may be missing; but a truncated call is unusable.
    if (finish === 'STOP') this.#calls.close(answerId, out)
    else if (reason === undefined && !this.answered && !spare) {
      const error = upstreamError(502, { message: `the provider ended its answer with "${finish.slice(0, 64)}"` })
      return AT_WILL.has(finish) ? billed(error) : malformed(error, usage)
    }
    const end = {
      type: 'finish',
      choice: this.#index,
      reason: reason ?? (this.#calls.any ? 'tool_calls' : 'stop'),
    } as const
    out.push(this.#said ? Object.assign(end, { ending: { wire: NATIVE_WIRE, fields: this.#said } }) : end)
    return undefined
  }

  /** Emits citations, unless the candidate is closed. */
  cite(out: Event[]): void {
    this.#grounding.close(out)
  }

  /** True once it contains anything besides thoughts. */
  get answered(): boolean {
    return this.#answered || this.#calls.any
  }

  #part(part: Json, answerId: string, out: Event[]): GatewayError | undefined {
    const signature = textIn(part.thoughtSignature)
    const { functionCall: call, inlineData: data } = part
    if (isObject(call)) {
      this.#enter('call')
      return this.#calls.read(call, signature, answerId, out)
    }
    const native = NATIVE_FIELDS.find(field => isObject(part[field]))
    if (native) this.#native(native, part, signature, out)
    else if (isObject(data)) this.#image(data, part.thought === true, signature, out)
    else this.#text(textIn(part.text) ?? '', part.thought === true, signature, out)
    return undefined
  }

  /** Text, followed by its signature. A thought keeps both together, since it is replayed as a thought. */
  #text(text: string, isThought: boolean, signature: string | undefined, out: Event[]): void {
    if (text === '' && signature === undefined) return
    this.#enter(isThought && text !== '' ? 'thought' : 'text')
    if (!isThought && text !== '') {
      this.#answered = true
      this.#grounding.say(text)
      out.push({ type: 'text', choice: this.#index, text })
    }
    const thought = isThought ? text : ''
    if (signature !== undefined) {
      out.push({ ...this.#reasoning(thought), ...this.#signed(), signature: seal(this.#target, signature) })
      // Signed text is complete; text after it is separate.
      this.#kind = undefined
    } else if (thought !== '') out.push(this.#reasoning(thought))
  }

  /** Thoughts of an image model are drafts of its image. */
  #image(data: Json, isThought: boolean, signature: string | undefined, out: Event[]): void {
    const { mimeType: mime, data: base64 } = data
    if (isThought || typeof base64 !== 'string' || typeof mime !== 'string' || !mime.startsWith('image/')) return
    this.#enter('image')
    this.#answered = true
    out.push({ type: 'image', choice: this.#index, url: `data:${mime};base64,${base64}` })
    if (signature === undefined) return
    // As data, to distinguish it from signatures of text.
    out.push({ ...this.#reasoning(''), ...this.#signed(), data: seal(this.#target, signature) })
  }

  /** A part without a chat form: kept whole for replay to the provider. */
  #native(type: string, part: Json, signature: string | undefined, out: Event[]): void {
    this.#enter('native')
    this.#answered = true
    const block = { ...part, ...(signature !== undefined && { thoughtSignature: seal(this.#target, signature) }), type }
    out.push({ type: 'native', choice: this.#index, provider: this.#target.provider.id, block })
  }

  #enter(kind: Kind): void {
    if (kind === this.#kind && (kind === 'text' || kind === 'thought')) return
    this.#kind = kind
    this.#block += 1
  }

  #reasoning(text: string) {
    return { type: 'reasoning', choice: this.#index, text } as const
  }

  #signed() {
    return { format: FORMAT, block: this.#block }
  }
}
