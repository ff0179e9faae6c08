/** The tool calls of one choice, put together from deltas that number, name and quote them in many ways. */
import {
  type Count,
  type Event,
  entriesIn,
  errors,
  type GatewayError,
  indexIn,
  isObject,
  type Json,
  MAX_CALLS,
  type ToolEvent,
  textIn,
  toolArguments,
  tooManyCalls,
} from '../../../src/plugin.ts'
import { Arguments } from './arguments.ts'

interface StreamedCall {
  /** The number that the provider uses for it, or its position. */
  readonly slot: number
  /** A call of a custom tool, whose input is any text. */
  readonly custom: boolean
  /** The provider's id. */
  id: string | undefined
  name: string | undefined
  /** Its number in our answer; undefined until the client knows of it. */
  index: number | undefined
  /** Those that begin like an object go out as they come; others wait until they can be repaired. */
  readonly args: Arguments
  /** The client has all of them that came. */
  told: boolean
}

export class ToolCalls {
  readonly #choice: number
  readonly #calls: StreamedCall[] = []
  /** The first call of each id, how many have it, and the last call of each slot. */
  readonly #byId = new Map<string, StreamedCall>()
  readonly #copies = new Map<string, number>()
  readonly #bySlot = new Map<number, StreamedCall>()
  /** Of all calls of the answer. */
  readonly #count: Count
  /** Calls before this one have been opened. */
  #next = 0
  #opened = 0
  /** The call that is being told. Others wait until it is whole: clients take a call for done when another begins. */
  #current: StreamedCall | undefined
  #answerId = ''

  constructor(choice: number, count: Count) {
    this.#choice = choice
    this.#count = count
  }

  get empty(): boolean {
    return this.#opened === 0
  }

  /** True when one of the calls could be made as it stands. */
  get anyComplete(): boolean {
    return this.#calls.some(({ name, custom, args }) => name !== undefined && (custom || !args.direct || args.isObject))
  }

  /** Reads `tool_calls` of a delta or message. `answerId` makes ids for calls that have none. */
  read(list: readonly unknown[], answerId: string, out: Event[]): void {
    this.#answerId = answerId
    for (const [position, delta] of entriesIn(list).entries()) {
      if (!isObject(delta)) continue
      const part = partOf(delta)
      const call = this.#callOf(delta, part, list.length > 1 ? position : undefined)
      this.#name(call, textIn(delta.id))
      call.name ??= textIn(part.name)
      const piece = call.args.add(part.arguments)
      if (call.index !== undefined) this.#tell(call, piece, out)
      this.#goOn(out)
    }
  }

  #name(call: StreamedCall, id: string | undefined): void {
    if (call.id !== undefined || id === undefined) return
    call.id = id
    this.#copies.set(id, (this.#copies.get(id) ?? 0) + 1)
    if (!this.#byId.has(id)) this.#byId.set(id, call)
  }

  /** Gives what waited (C18, C19); returns an error when there is a call that cannot be made. */
  close(out: Event[]): GatewayError | undefined {
    for (const call of this.#calls) {
      const { name, args } = call
      if (name !== undefined) {
        if (call.index === undefined) this.#tell(call, '', out)
        if (!args.direct) {
          out.push({ type: 'tool', choice: this.#choice, index: call.index!, args: toolArguments(args.text.trim()) })
        }
      } else if (args.text.trim() !== '') return errors.invalidAnswer('a tool call has no name')
    }
    return undefined
  }

  /** Gives the calls that waited as far as they came, for an answer that was cut short. */
  flush(out: Event[]): void {
    for (const call of this.#calls) if (call.index === undefined && call.name !== undefined) this.#tell(call, '', out)
  }

  /** The call that a delta continues, or a new one (C14, C15). */
  #callOf(delta: Json, part: Json, position: number | undefined): StreamedCall {
    const id = textIn(delta.id)
    const index = indexIn(delta.index)
    const known = id === undefined ? undefined : this.#byId.get(id)
    if (known && (index === undefined || known.slot === index)) return known

    const slot = index ?? position ?? this.#calls.at(-1)?.slot ?? 0
    const last = this.#bySlot.get(slot)
    if (last && continues(last, id, part, index !== undefined)) return last
    if (this.#calls.length === MAX_CALLS) throw tooManyCalls()
    const custom = isCustom(delta)
    const args = new Arguments(custom, this.#count)
    const call: StreamedCall = { slot, custom, id: undefined, name: undefined, index: undefined, args, told: false }
    this.#calls.push(call)
    this.#bySlot.set(slot, call)
    return call
  }

  /** C22: one call after the other, in the order in which they came. */
  #goOn(out: Event[]): void {
    while (!this.#current || this.#current.args.whole) {
      while (this.#calls[this.#next]?.index !== undefined) this.#next++
      let at = this.#next
      while (at < this.#calls.length && !isReady(this.#calls[at]!)) at++
      const next = this.#calls[at]
      if (!next) return
      this.#current = next
      this.#tell(next, '', out)
    }
  }

  /** Tells of a call that has a name what the client lacks: `piece`, unless it lacks all that came before, too. */
  #tell(call: StreamedCall, piece: string, out: Event[]): void {
    const { text, direct } = call.args
    const news = call.told ? piece : text
    call.told = direct
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

  /** The event that first shows a call. An id that another call has would join the two, so it is replaced. */
  #open(call: StreamedCall, name: string): ToolEvent {
    const index = this.#opened++
    call.index = index
    const isOwn = call.id !== undefined && this.#copies.get(call.id) === 1
    const id = !isOwn || call.id === undefined ? `call_${shortened(this.#answerId)}_${this.#choice}_${index}` : call.id
    return { type: 'tool', choice: this.#choice, index, id, name }
  }
}

const isReady = ({ index, name }: StreamedCall): boolean => index === undefined && name !== undefined

const isCustom = ({ type, custom }: Json): boolean => type === 'custom' || isObject(custom)

/** What a delta tells of its call, under the names that a function's has. */
function partOf({ function: called, custom }: Json): Json {
  if (isObject(called)) return called
  return isObject(custom) ? { name: custom.name, arguments: custom.input } : {}
}

/** As much of an id as another id may hold. */
const shortened = (id: string): string => id.replace(/[^A-Za-z0-9]/g, '').slice(-24)

/** Whether a delta for the slot of `call` is more of it. */
function continues(call: StreamedCall, id: string | undefined, part: Json, numbered: boolean): boolean {
  const name = textIn(part.name)
  const more = textIn(part.arguments) !== undefined || isObject(part.arguments)
  if (id !== undefined && call.id !== undefined && id !== call.id) {
    // A new id begins a call, except where providers make one up for every piece.
    return name === undefined && more && !call.args.isObject
  }
  if (name === undefined || call.name === undefined || (id !== undefined && id === call.id)) return true
  if (id !== undefined || (!numbered && name !== call.name)) return false
  return !(more && call.args.whole)
}
