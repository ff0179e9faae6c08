/** The tool calls of one choice, assembled from deltas whose numbers, names and quoting vary between providers. */
import {
  type Event,
  entriesIn,
  errors,
  type GatewayError,
  indexIn,
  isObject,
  type Json,
  objectIn,
  seal,
  type Target,
  type ToolEvent,
  textIn,
  textKey,
  toolArguments,
  weigh,
} from '../../../src/plugin.ts'
import { type CallCount, idSuffix } from '../call-count.ts'
import { Arguments } from './arguments.ts'

interface StreamedCall {
  /** The provider's number, or the position. */
  readonly slot: number
  /** A call of a custom tool, whose input is free text. */
  readonly custom: boolean
  /** The provider's id. */
  id: string | undefined
  name: string | undefined
  /** Fields that some providers add to a call and require back, such as the signature of a thought. */
  extra: Json | undefined
  /** Its index in the gateway's answer; undefined until it was emitted. */
  index: number | undefined
  /** Arguments that begin like an object are emitted at once; others wait until they can be repaired. */
  readonly args: Arguments
  /** Whether all received arguments were emitted. */
  isEmitted: boolean
}

/** Memory of a call beside its texts, in characters. */
const CALL_CHARACTERS = 128

/** Emits the calls in their order, each once it has a name; the arguments of one call at a time. */
export class ToolCalls {
  readonly #choice: number
  readonly #target: Target
  readonly #calls: StreamedCall[] = []
  /** First call and number of calls by id, and last call by slot. */
  readonly #byId = new Map<string, StreamedCall>()
  readonly #copies = new Map<string, number>()
  readonly #bySlot = new Map<number, StreamedCall>()
  /** Counts all calls of the answer, and the values in them. */
  readonly #count: CallCount
  /** Calls before this one have been opened. */
  #next = 0
  #opened = 0
  /** Calls that have a name and are not open. */
  #ready = 0
  /** Characters of ids and names, of arguments that were not emitted as they came, and what each call takes beside them. */
  kept = 0
  /** The call being emitted. Others wait until it is complete: clients consider a call complete when another begins. */
  #current: StreamedCall | undefined
  #answerId = ''

  constructor(choice: number, count: CallCount, target: Target) {
    this.#choice = choice
    this.#target = target
    this.#count = count
  }

  get empty(): boolean {
    return this.#opened === 0
  }

  /** True when one of the calls is usable as it is. */
  get anyComplete(): boolean {
    return this.#calls.some(({ name, custom, args }) => name !== undefined && (custom || !args.direct || args.isObject))
  }

  /** Reads `tool_calls` of a delta or message. `answerId` generates ids for calls without one. */
  read(list: readonly unknown[], answerId: string, out: Event[]): void {
    this.#answerId = answerId
    for (const [position, delta] of entriesIn(list).entries()) {
      if (!isObject(delta)) continue
      const part = partOf(delta)
      const call = this.#callOf(delta, part, list.length > 1 ? position : undefined)
      this.#name(call, textIn(delta.id))
      if (call.name === undefined) {
        call.name = textIn(part.name)
        if (call.name !== undefined) {
          this.#ready++
          this.kept += call.name.length
        }
      }
      if (isObject(delta.extra_content)) {
        call.extra = delta.extra_content
        this.kept += weigh(call.extra)
      }
      const piece = call.args.add(part.arguments)
      if (call.index === undefined || !call.args.direct) this.kept += piece.length
      if (call.index !== undefined) this.#emit(call, piece, out)
      this.#goOn(out)
    }
  }

  #name(call: StreamedCall, id: string | undefined): void {
    if (call.id !== undefined || id === undefined) return
    call.id = id
    this.kept += id.length
    const key = textKey(id)
    this.#copies.set(key, (this.#copies.get(key) ?? 0) + 1)
    if (!this.#byId.has(key)) this.#byId.set(key, call)
  }

  /** Emits waiting calls (C18, C19); returns an error for an unusable call. */
  close(out: Event[]): GatewayError | undefined {
    for (const call of this.#calls) {
      const { name, args } = call
      if (name !== undefined) {
        if (call.index === undefined) this.#emit(call, '', out)
        if (!args.direct) {
          out.push({ type: 'tool', choice: this.#choice, index: call.index!, args: toolArguments(args.text.trim()) })
        }
      } else if (args.text.trim() !== '') return errors.invalidAnswer('a tool call has no name')
    }
    return undefined
  }

  /** Emits the received parts of waiting calls, for a truncated answer. */
  flush(out: Event[]): void {
    for (const call of this.#calls) if (call.index === undefined && call.name !== undefined) this.#emit(call, '', out)
  }

  /** The call that a delta continues, or a new one (C14, C15). */
  #callOf(delta: Json, part: Json, position: number | undefined): StreamedCall {
    const id = textIn(delta.id)
    const index = indexIn(delta.index)
    const known = id === undefined ? undefined : this.#byId.get(textKey(id))
    if (known && (index === undefined || known.slot === index)) return known

    const slot = index ?? position ?? this.#calls.at(-1)?.slot ?? 0
    const last = this.#bySlot.get(slot)
    if (last && continues(last, id, part, index !== undefined)) return last
    this.#count.begin()
    this.kept += CALL_CHARACTERS
    const custom = isCustom(delta)
    const args = new Arguments(custom, this.#count)
    const call: StreamedCall = {
      slot,
      custom,
      id: undefined,
      name: undefined,
      extra: undefined,
      index: undefined,
      args,
      isEmitted: false,
    }
    this.#calls.push(call)
    this.#bySlot.set(slot, call)
    return call
  }

  /** C22: one call after the other, in order of arrival. */
  #goOn(out: Event[]): void {
    while (this.#ready > 0 && (!this.#current || this.#current.args.whole)) {
      while (this.#calls[this.#next]?.index !== undefined) this.#next++
      let at = this.#next
      while (!isReady(this.#calls[at]!)) at++
      const next = this.#calls[at]!
      this.#current = next
      this.#emit(next, '', out)
    }
  }

  /** Emits the missing part of a named call: `piece`, or everything received when nothing was emitted. */
  #emit(call: StreamedCall, piece: string, out: Event[]): void {
    const { text, direct } = call.args
    const news = call.isEmitted ? piece : text
    call.isEmitted = direct
    const args = direct && news !== '' ? news : undefined
    if (call.index !== undefined && args === undefined) return
    const event: ToolEvent =
      call.index === undefined
        ? this.#open(call, call.name!)
        : { type: 'tool', choice: this.#choice, index: call.index }
    if (call.custom) event.custom = true
    if (args !== undefined) event.args = args
    out.push(event)
  }

  /** The first event of a call. An id used by another call would join the two, so it is replaced. */
  #open(call: StreamedCall, name: string): ToolEvent {
    const index = this.#opened++
    this.#ready--
    call.index = index
    const isOwn = call.id !== undefined && this.#copies.get(textKey(call.id)) === 1
    const id = !isOwn || call.id === undefined ? `call_${idSuffix(this.#answerId)}_${this.#choice}_${index}` : call.id
    const opened: ToolEvent = { type: 'tool', choice: this.#choice, index, id, name }
    if (call.extra) opened.signature = seal(this.#target, JSON.stringify({ extra_content: call.extra }))
    return opened
  }
}

const isReady = ({ index, name }: StreamedCall): boolean => index === undefined && name !== undefined

/** Some servers write the member of the other type too, empty: `type` decides, else the member that is not empty. */
const isCustom = ({ type, function: called, custom }: Json): boolean =>
  type === 'custom' || (type !== 'function' && isFilled(custom) && !isFilled(called))

const isFilled = (member: unknown): boolean =>
  isObject(member) && Object.values(member).some(value => value != null && value !== '')

/** A delta's fields under the names of a function call. */
function partOf(delta: Json): Json {
  const { function: called, custom } = delta
  if (isCustom(delta)) return isObject(custom) ? { name: custom.name, arguments: custom.input } : {}
  return objectIn(called)
}

/** Whether a delta for the slot of `call` continues it. */
function continues(call: StreamedCall, id: string | undefined, part: Json, numbered: boolean): boolean {
  const name = textIn(part.name)
  const more = textIn(part.arguments) !== undefined || isObject(part.arguments)
  if (id !== undefined && call.id !== undefined && id !== call.id) {
    // A new id begins a call, except where providers generate one per piece.
    return name === undefined && more && !call.args.isObject
  }
  if (name === undefined || call.name === undefined || (id !== undefined && id === call.id)) return true
  if (id !== undefined || (!numbered && name !== call.name)) return false
  return !(more && call.args.whole)
}
