/** A call of a function or custom tool, under the client's name of the tool. */
import type { ChoiceEvent, ToolEvent } from '../../core/event.ts'
import { type Json, jsonIn, objectIn } from '../../json/json.ts'
import { Shape } from '../../json/shape.ts'
import type { OpenItem, Place, Status } from './open-item.ts'
import type { Known, ToolNames } from './tool-names.ts'

/** The item of one call, written while its arguments arrive. */
export class CallItem implements OpenItem {
  readonly #place: Place
  readonly #head: Json
  readonly #index: number
  /** Its input is any text; undefined for a function. */
  readonly #custom: 'own' | 'wrapped' | undefined
  /** The client searches for tools: its arguments are no text. */
  readonly #searches: boolean
  readonly #shape = new Shape({ values: Number.POSITIVE_INFINITY })
  #args = ''

  constructor(place: Place, event: ToolEvent, names: ToolNames, callId: string) {
    this.#place = place
    this.#index = event.index
    const given = event.name ?? ''
    // A provider with namespaces returns the client's own names.
    const known = event.namespace === undefined ? names.known(given) : { name: given, namespace: event.namespace }
    const { name, namespace, custom, search }: Known = known
    this.#searches = search === true
    this.#custom = event.custom ? 'own' : custom ? 'wrapped' : undefined
    const type = this.#custom ? 'custom_tool_call' : 'function_call'
    this.#head = search
      ? { id: place.id, type: 'tool_search_call', call_id: callId, execution: 'client' }
      : { id: place.id, type, call_id: callId, name, ...(namespace !== undefined && { namespace }) }
    place.emit('output_item.added', { output_index: place.index, item: this.#item('in_progress', '') })
  }

  get isPartial(): boolean {
    return this.#custom !== 'own' && !this.#shape.closed
  }

  takes(event: ChoiceEvent): boolean {
    return event.type === 'tool' && event.index === this.#index
  }

  add({ args }: ToolEvent): void {
    if (!args) return
    this.#args += args
    if (this.#custom !== 'own') this.#shape.add(args)
    if (this.#searches) return
    if (this.#custom === 'own') this.#emit('custom_tool_call_input.delta', { delta: args })
    else if (this.#custom === undefined) this.#emit('function_call_arguments.delta', { delta: args })
  }

  close(status: Status): Json {
    const { name } = this.#head
    if (this.#searches) return this.#item(status, this.#args)
    if (this.#custom === undefined) {
      const args = this.#args.trim() === '' ? '{}' : this.#args
      if (args !== this.#args) this.#emit('function_call_arguments.delta', { delta: args })
      this.#emit('function_call_arguments.done', { name, arguments: args })
      return this.#item(status, args)
    }
    const input = this.#custom === 'wrapped' ? unwrapped(this.#args) : this.#args
    if (this.#custom === 'wrapped') this.#emit('custom_tool_call_input.delta', { delta: input })
    this.#emit('custom_tool_call_input.done', { input })
    return this.#item(status, input)
  }

  #emit(type: string, fields: Json): void {
    const { id, index, emit } = this.#place
    emit(type, { item_id: id, output_index: index, ...fields })
  }

  #item(status: string, args: string): Json {
    if (this.#searches) return { ...this.#head, arguments: objectIn(jsonIn(args)), status }
    return { ...this.#head, ...(this.#custom ? { input: args } : { arguments: args }), status }
  }
}

/** The text of a custom tool's input; arguments that are not of its schema are the input themselves. */
function unwrapped(args: string): string {
  const { input } = objectIn(jsonIn(args))
  return typeof input === 'string' ? input : args
}
