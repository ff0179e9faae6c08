/** The tool calls of one choice, put together from deltas that number, name and quote them in many ways. */
import {
  type Event,
  errors,
  type GatewayError,
  indexIn,
  isObject,
  type Json,
  type ToolEvent,
  textIn,
  toolArguments,
} from '../../src/plugin.ts'
import { Arguments } from './arguments.ts'

interface Call {
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
  readonly #calls: Call[] = []
  #opened = 0
  /** The call that is being told. Others wait until it is whole: clients take a call for done when another begins. */
  #current: Call | undefined
  #answerId = ''

  constructor(choice: number) {
    this.#choice = choice
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
    for (let position = 0; position < list.length; position++) {
      const delta = list[position]
      if (!isObject(delta)) continue
      const part = partOf(delta)
      const call = this.#callOf(delta, part, list.length > 1 ? position : undefined)
      call.id ??= textIn(delta.id)
      call.name ??= textIn(part.name)
      const piece = call.args.add(part.arguments)
      if (call.index !== undefined) this.#tell(call, piece, out)
      this.#next(out)
    }
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
  #callOf(delta: Json, part: Json, position: number | undefined): Call {
    const id = textIn(delta.id)
    const index = indexIn(delta.index)
    const known = id === undefined ? undefined : this.#calls.find(call => call.id === id)
    if (known && (index === undefined || known.slot === index)) return known

    const slot = index ?? position ?? this.#calls.at(-1)?.slot ?? 0
    const last = this.#calls.findLast(call => call.slot === slot)
    if (last && continues(last, id, part, index !== undefined)) return last
    const custom = isCustom(delta)
    const call: Call = { slot, custom, id, name: undefined, index: undefined, args: new Arguments(custom), told: false }
    this.#calls.push(call)
    return call
  }

  /** C22: one call after the other, in the order in which they came. */
  #next(out: Event[]): void {
    while (!this.#current || this.#current.args.whole) {
      const next = this.#calls.find(({ index, name }) => index === undefined && name !== undefined)
      if (!next) return
      this.#current = next
      this.#tell(next, '', out)
    }
  }

  /** Tells of a call that has a name what the client lacks: `piece`, unless it lacks all that came before, too. */
  #tell(call: Call, piece: string, out: Event[]): void {
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
  #open(call: Call, name: string): ToolEvent {
    const index = this.#opened++
    call.index = index
    const taken = call.id === undefined || this.#calls.some(other => other !== call && other.id === call.id)
    const id = taken || call.id === undefined ? `call_${shortened(this.#answerId)}_${this.#choice}_${index}` : call.id
    return { type: 'tool', choice: this.#choice, index, id, name }
  }
}

const isCustom = ({ type, custom }: Json): boolean => type === 'custom' || isObject(custom)

/** What a delta tells of its call, under the names that a function's has. */
function partOf({ function: called, custom }: Json): Json {
  if (isObject(called)) return called
  return isObject(custom) ? { name: custom.name, arguments: custom.input } : {}
}

/** As much of an id as another id may hold. */
const shortened = (id: string): string => id.replace(/[^A-Za-z0-9]/g, '').slice(-24)

/** Whether a delta for the slot of `call` is more of it. */
function continues(call: Call, id: string | undefined, part: Json, numbered: boolean): boolean {
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
