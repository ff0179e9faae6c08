/** One candidate of an answer: events in, parts out. Calls are emitted whole, as clients of this wire expect. */
import type { ChoiceEvent, FinishReason, ToolEvent } from '../../core/event.ts'
import { isObject, type Json } from '../../json/json.ts'
import { parseLossless } from '../../json/lossless.ts'
import { Shape } from '../../json/shape.ts'
import { addDetail, type ReasoningDetail } from '../../wire/fold.ts'
import { parseDataUrl } from '../../wire/wire.ts'
import { carry } from '../carried-reasoning.ts'
import { Grounding, type RepeatBudget } from './grounding.ts'
import { WIRE } from './native.ts'

/** A part of an answer. */
interface AnswerPart {
  text?: string
  thought?: true
  thoughtSignature?: string
  functionCall?: { id: string; name: string; args: Json }
  inlineData?: { mimeType: string; data: string }
  fileData?: { mimeType: string; fileUri: string }
  [field: string]: unknown
}

const MAX_WAITING_REASONING_CHARACTERS = 4 * 1024 * 1024
/** Native members of this wire, each with its seal; other native content is carried, and not shown. */
const OWN = ['executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse']

const REASONS: Readonly<Record<FinishReason, string>> = {
  stop: 'STOP',
  tool_calls: 'STOP',
  length: 'MAX_TOKENS',
  content_filter: 'SAFETY',
}

class CandidateCall {
  id = ''
  name = ''
  args = ''
  signature: string | undefined
  readonly #shape = new Shape({ values: Number.POSITIVE_INFINITY })

  add({ id, name, args, signature }: ToolEvent): void {
    this.id ||= id ?? ''
    this.name ||= name ?? ''
    this.signature ??= signature
    if (!args) return
    this.args += args
    this.#shape.add(args)
  }

  /** Nothing can follow: the object is closed. */
  get isComplete(): boolean {
    return this.#shape.closed
  }
}

/** Folds the events of one choice into parts. */
export class Candidate {
  readonly #showsThoughts: boolean
  readonly #makesId: (index: number) => string
  readonly #grounding: Grounding
  /** Parts since the last `take`. */
  #parts: AnswerPart[] = []
  #emittedAny = false
  /** Calls in order, from the first one that was not emitted. */
  readonly #calls: CandidateCall[] = []
  #emittedCalls = 0
  /** Reasoning that no part has carried yet. */
  #thoughts = ''
  #details: ReasoningDetail[] = []
  #native: Json[] = []
  #waiting = 0
  #finish: FinishReason | undefined
  /** A provider's details of the candidate's end, on the same wire. */
  #ending: Readonly<Json> | undefined
  #refused = false
  #malformed = false

  /** `makesId`: generates ids for calls without one. `budget`: that of the answer. */
  constructor(showsThoughts: boolean, makesId: (index: number) => string, budget: RepeatBudget) {
    this.#grounding = new Grounding(budget)
    this.#showsThoughts = showsThoughts
    this.#makesId = makesId
  }

  add(event: ChoiceEvent): void {
    switch (event.type) {
      case 'refusal':
        this.#refused = true
        this.#text(event.text)
        break
      case 'text':
        this.#text(event.text)
        break
      case 'reasoning':
        if (this.#showsThoughts && event.text !== '') this.#say(event.text, true)
        if (!this.#keeps(event.text.length + (event.data?.length ?? 0))) break
        this.#thoughts += event.text
        addDetail(this.#details, event)
        break
      case 'tool':
        this.#calls[event.index] ??= new CandidateCall()
        this.#calls[event.index]!.add(event)
        this.#emitCalls(false)
        break
      case 'image':
        this.#push(imagePart(event.url))
        break
      case 'source':
        this.#grounding.add(event)
        break
      case 'native': {
        const own = OWN.find(name => isObject(event.block[name]))
        const block: Json = Object.assign({}, event.block, { provider: event.provider })
        const isKept = this.#keeps(JSON.stringify(block).length)
        if (isKept) this.#native.push(block)
        if (own) this.#push({ [own]: event.block[own], ...(isKept && { thoughtSignature: this.#carry(undefined) }) })
        break
      }
      case 'finish':
        this.#finish ??= event.reason
        if (event.ending?.wire === WIRE) this.#ending = event.ending.fields
        break
    }
  }

  /** The parts since the last call; undefined when there are none. */
  take(): AnswerPart[] | undefined {
    if (this.#parts.length === 0) return undefined
    const parts = this.#parts
    this.#parts = []
    return parts
  }

  /** Call once after the last event: adds an empty text for reasoning that no part has carried, as Google does. */
  end(): void {
    this.#emitCalls(true)
    const isSealed = this.#native.length > 0 || this.#details.some(({ signature, data }) => signature ?? data)
    if (isSealed) this.#parts.push({ text: '', thoughtSignature: this.#carry(undefined) })
    else if (!this.#emittedAny) this.#parts.push({ text: '' })
  }

  /** The finish reason, and details beside its parts. */
  get ending(): object {
    const own = this.#ending
    const groundingMetadata = this.#grounding.metadata()
    const finishReason = this.#malformed ? 'MALFORMED_FUNCTION_CALL' : (own?.finishReason ?? this.#finishReason)
    return { ...(groundingMetadata && { groundingMetadata }), ...own, finishReason }
  }

  get #finishReason(): string {
    return this.#refused ? 'SAFETY' : REASONS[this.#finish ?? 'stop']
  }

  #text(text: string): void {
    if (text === '') return
    this.#grounding.say(text)
    this.#say(text, false)
  }

  #say(text: string, thought: boolean): void {
    const last = this.#parts.at(-1)
    if (last?.text !== undefined && (last.thought === true) === thought) last.text += text
    else this.#push(thought ? { text, thought } : { text })
  }

  #push(part: AnswerPart): void {
    this.#emittedAny = true
    this.#parts.push(part)
  }

  #keeps(size: number): boolean {
    this.#waiting += size
    return this.#waiting <= MAX_WAITING_REASONING_CHARACTERS
  }

  /** Emits calls with complete arguments, in order; at the end, all that are JSON. */
  #emitCalls(isEnd: boolean): void {
    for (; this.#emittedCalls < this.#calls.length; this.#emittedCalls++) {
      const call = this.#calls[this.#emittedCalls]
      if (!call) {
        if (!isEnd) return
        continue
      }
      if (!isEnd && !call.isComplete) return
      const args = argumentsOf(call.args)
      if (args) this.#emit(call, args)
      else if (this.#finish !== 'length') this.#malformed = true
    }
  }

  #emit({ id, name, signature }: CandidateCall, args: Json): void {
    const part: AnswerPart = { functionCall: { id: id || this.#makesId(this.#emittedCalls), name, args } }
    if (signature !== undefined || this.#thoughts !== '' || this.#details.length > 0 || this.#native.length > 0) {
      part.thoughtSignature = this.#carry(signature)
    }
    this.#push(part)
  }

  #carry(signature: string | undefined): string {
    const details = this.#details
    const native = this.#native
    // Text contained in the details is not carried twice.
    const isKnown = this.#thoughts === details.map(({ text }) => text ?? '').join('')
    const text = isKnown ? undefined : this.#thoughts
    this.#thoughts = ''
    this.#details = []
    this.#native = []
    this.#waiting = 0
    return carry({
      text,
      details: details.length > 0 ? details : undefined,
      native: native.length > 0 ? native : undefined,
      signature,
    })
  }
}

/** Undefined for text that is not an object. */
function argumentsOf(text: string): Json | undefined {
  if (text.trim() === '') return {}
  try {
    const args = parseLossless(text)
    return isObject(args) ? args : undefined
  } catch {
    return undefined
  }
}

function imagePart(url: string): AnswerPart {
  const data = parseDataUrl(url)
  return data
    ? { inlineData: { mimeType: data.mime, data: data.base64 } }
    : { fileData: { mimeType: 'image/png', fileUri: url } }
}
