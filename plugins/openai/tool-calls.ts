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

/** Characters of the arguments of one call. */
const MAX_ARGS = 32 * 1024 * 1024

interface Call {
  /** The number that the provider uses for it, or its position. */
  readonly slot: number
  /** The provider's id. */
  id: string | undefined
  name: string | undefined
  /** Its number in our answer; undefined until the client knows of it. */
  index: number | undefined
  /** All of its arguments so far. */
  args: string
  /** The first character of its arguments that is no space; undefined until it is there. */
  opening: string | undefined
  /** Its arguments so far end like an object. */
  closed: boolean
  /** Its arguments begin like an object and go out as they come; others wait until they can be repaired. */
  direct: boolean
  /** Its arguments came as an object: nothing can follow. */
  whole: boolean
}

export class ToolCalls {
  readonly #choice: number
  readonly #calls: Call[] = []
  #opened = 0

  constructor(choice: number) {
    this.#choice = choice
  }

  get empty(): boolean {
    return this.#opened === 0
  }

  /** True when one of the calls could be made as it stands. */
  get anyComplete(): boolean {
    return this.#calls.some(call => call.index !== undefined && (!call.direct || isObjectText(call)))
  }

  /** Reads `tool_calls` of a delta or message. `answerId` makes ids for calls that have none. */
  read(list: readonly unknown[], answerId: string, out: Event[]): void {
    for (let position = 0; position < list.length; position++) {
      const delta = list[position]
      if (!isObject(delta)) continue
      const part = isObject(delta.function) ? delta.function : {}
      const call = this.#callOf(delta, part, list.length > 1 ? position : undefined)
      call.id ??= textIn(delta.id)
      call.name ??= textIn(part.name)
      this.#add(call, part.arguments, answerId, out)
    }
  }

  /** Gives the arguments that waited (C18, C19); returns an error when there is a call that cannot be made. */
  close(out: Event[]): GatewayError | undefined {
    for (const { index, direct, args } of this.#calls) {
      if (index !== undefined) {
        if (!direct) out.push({ type: 'tool', choice: this.#choice, index, args: toolArguments(args.trim()) })
      } else if (args.trim() !== '') return errors.invalidAnswer('a tool call has no name')
    }
    return undefined
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
    const call: Call = {
      slot,
      id,
      name: undefined,
      index: undefined,
      args: '',
      opening: undefined,
      closed: false,
      direct: false,
      whole: false,
    }
    this.#calls.push(call)
    return call
  }

  #add(call: Call, value: unknown, answerId: string, out: Event[]): void {
    let piece = ''
    if (!call.whole) {
      if (typeof value === 'string') piece = value
      else if (typeof value === 'object' && value !== null && call.args === '') {
        piece = JSON.stringify(value)
        call.whole = true
      }
      call.args += piece
      if (call.args.length > MAX_ARGS) throw errors.invalidAnswer('the arguments of a tool call are larger than 32 MiB')
      // Piece by piece: to look at all of a text that grows costs the square of its length.
      const said = piece.trim()
      if (said !== '') {
        call.opening ??= said[0]
        call.closed = said.endsWith('}')
      }
    }
    if (call.name === undefined) return
    if (!call.direct && call.opening === '{') {
      call.direct = true
      piece = call.args
    }
    const args = call.direct && piece !== '' ? { args: piece } : undefined
    if (call.index === undefined) out.push({ ...this.#open(call, call.name, answerId), ...args })
    else if (args) out.push({ type: 'tool', choice: this.#choice, index: call.index, ...args })
  }

  /** The event that first shows a call. An id that another call has would join the two, so it is replaced. */
  #open(call: Call, name: string, answerId: string): ToolEvent {
    const index = this.#opened++
    call.index = index
    const taken = call.id === undefined || this.#calls.some(other => other !== call && other.id === call.id)
    const id = taken || call.id === undefined ? `call_${shortened(answerId)}_${this.#choice}_${index}` : call.id
    return { type: 'tool', choice: this.#choice, index, id, name }
  }
}

/** As much of an id as another id may hold. */
const shortened = (id: string): string => id.replace(/[^A-Za-z0-9]/g, '').slice(-24)

/** Whether a delta for the slot of `call` is more of it. */
function continues(call: Call, id: string | undefined, part: Json, numbered: boolean): boolean {
  const name = textIn(part.name)
  const more = textIn(part.arguments) !== undefined || isObject(part.arguments)
  if (id !== undefined && call.id !== undefined && id !== call.id) {
    // A new id begins a call, except where providers make one up for every piece.
    return name === undefined && more && !isObjectText(call)
  }
  if (name === undefined || call.name === undefined || (id !== undefined && id === call.id)) return true
  if (id !== undefined || (!numbered && name !== call.name)) return false
  return !(more && (call.whole || isObjectText(call)))
}

/** True when the arguments are the whole text of a JSON object. */
function isObjectText({ args, closed }: Call): boolean {
  if (!closed) return false
  try {
    return isObject(JSON.parse(args))
  } catch {
    return false
  }
}
