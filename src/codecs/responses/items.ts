/** Output items, one open at a time: what comes for another one while a call is open waits for its end. */
import type { ReasoningEvent, SourceEvent, ToolEvent } from '../../core/event.ts'
import { isObject, type Json, textIn } from '../../core/json.ts'
import { CallItem } from './call-item.ts'
import { itemId } from './ids.ts'
import { MessageItem } from './message-item.ts'
import type { ChoiceEvent, Emit, OpenItem, Place, Status } from './open-item.ts'
import { ReasoningItem } from './reasoning-item.ts'
import type { ToolNames } from './tool-names.ts'
import { WaitingEvents } from './waiting-events.ts'

type SaidEvent = Extract<ChoiceEvent, { type: 'text' | 'refusal' }>

/** Of a provider that does not say what it searched for. */
const SEARCH: Readonly<Json> = { type: 'search', query: '' }

/** The action of a search by the provider, in the two forms that blocks of searches have. */
function searchOf({ type, name, action, input }: Json): unknown {
  if (type === 'web_search_call') return action ?? SEARCH
  if (type !== 'server_tool_use' || name !== 'web_search') return undefined
  return { type: 'search', query: isObject(input) ? (textIn(input.query) ?? '') : '' }
}

export class Items {
  readonly output: Json[] = []
  readonly #emit: Emit
  readonly #names: ToolNames
  readonly #id: string
  readonly #waiting = new WaitingEvents()
  #open: OpenItem | undefined
  #phase: string | undefined
  /** Those that came before the text which cites them. */
  #sources: SourceEvent[] = []
  /** Characters of text so far, of all messages. */
  #written = 0

  /** `id` is of the answer, and a part of each item's. */
  constructor(emit: Emit, names: ToolNames, id: string) {
    this.#emit = emit
    this.#names = names
    this.#id = id
  }

  add(event: ChoiceEvent): void {
    if (event.choice !== 0) return
    if (this.#open?.isPartial && !this.#open.takes(event)) this.#waiting.add(event)
    else this.#take(event)
    while (!this.#open?.isPartial) {
      const next = this.#waiting.shift()
      if (!next) break
      this.#take(next)
    }
  }

  /** Call it once, after the last event. `status` is of the item that is open then. */
  end(status: Status): void {
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) this.#take(next)
    this.#close(status)
  }

  #take(event: ChoiceEvent): void {
    switch (event.type) {
      case 'phase':
        this.#close('completed')
        this.#phase = event.phase
        break
      case 'text':
      case 'refusal':
        if (event.text !== '') this.#say(event)
        break
      case 'logprobs':
        if (this.#open instanceof MessageItem) this.#open.add(event)
        break
      case 'source':
        if (this.#open instanceof MessageItem) this.#open.add(event)
        else this.#sources.push(event)
        break
      case 'reasoning':
        this.#think(event)
        break
      case 'native':
        this.#thoughts().native.push(Object.assign({}, event.block, { provider: event.provider }))
        this.#search(searchOf(event.block))
        break
      case 'tool':
        this.#call(event)
        break
      case 'image':
        this.#image(event.url)
        break
    }
  }

  #say(event: SaidEvent): void {
    if (!this.#open?.takes(event)) this.#open = new MessageItem(this.#place('msg'), this.#phase, this.#written)
    this.#open.add(event)
    if (event.type !== 'text') return
    this.#written += event.text.length
    for (const source of this.#sources) this.#open!.add(source)
    if (this.#sources.length > 0) this.#sources = []
  }

  #think(event: ReasoningEvent): void {
    if (event.text === '' && event.signature === undefined && event.data === undefined) return
    if (!this.#open?.takes(event)) this.#open = new ReasoningItem(this.#place('rs'))
    this.#open!.add(event)
  }

  /** A piece without a name is of a call that is open, or of one that had its end. */
  #call(event: ToolEvent): void {
    const { name, signature } = event
    if (!this.#open?.takes(event)) {
      if (name === undefined) return
      // It goes with the reasoning before the call, of which it is the last.
      if (signature !== undefined) this.#thoughts().signature = signature
      const custom = event.custom || (event.namespace === undefined && this.#names.known(name).custom)
      const callId = event.id || `call_${this.#id}_${event.index}`
      this.#open = new CallItem(this.#place(custom ? 'ctc' : 'fc'), event, this.#names, callId)
    }
    this.#open!.add(event)
  }

  /** The open reasoning, or a new one: what only its provider reads goes with it. */
  #thoughts(): ReasoningItem {
    if (this.#open instanceof ReasoningItem) return this.#open
    const item = new ReasoningItem(this.#place('rs'))
    this.#open = item
    return item
  }

  #image(url: string): void {
    const result = /^data:[^,]*;base64,/.test(url) ? url.slice(url.indexOf(',') + 1) : url
    const { id, index } = this.#place('ig')
    const item = { id, type: 'image_generation_call', status: 'completed', result }
    const at = { output_index: index }
    this.#emit('output_item.added', { ...at, item: { ...item, status: 'in_progress', result: null } })
    this.#emit('image_generation_call.in_progress', { ...at, item_id: id })
    this.#emit('image_generation_call.completed', { ...at, item_id: id })
    this.#done(item)
  }

  /** What is to be replayed of it is in the reasoning before it. */
  #search(action: unknown): void {
    if (action === undefined) return
    const { id, index } = this.#place('ws')
    const item = { id, type: 'web_search_call', status: 'completed', action: isObject(action) ? action : SEARCH }
    const at = { output_index: index, item_id: id }
    this.#emit('output_item.added', { output_index: index, item: { ...item, status: 'in_progress' } })
    for (const stage of ['in_progress', 'searching', 'completed']) this.#emit(`web_search_call.${stage}`, at)
    this.#done(item)
  }

  /** Ends what is open: the next item is the one behind it. */
  #place(prefix: string): Place {
    this.#close('completed')
    const index = this.output.length
    return { id: itemId(prefix, this.#id, index), index, emit: this.#emit }
  }

  #close(status: Status): void {
    const open = this.#open
    this.#open = undefined
    if (open) this.#done(open.close(status))
  }

  #done(item: Json): void {
    this.#emit('output_item.done', { output_index: this.output.length, item })
    this.output.push(item)
  }
}
