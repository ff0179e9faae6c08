/** Output items, one open at a time: events of other items wait until an open call ends. */
import type { ChoiceEvent, ReasoningEvent, SourceEvent, ToolEvent } from '../../core/event.ts'
import { isObject, type Json, textIn } from '../../json/json.ts'
import { joins, waitable } from '../waiting-pieces.ts'
import { CallItem } from './call-item.ts'
import { MessageItem } from './message-item.ts'
import { type Emit, itemId, type OpenItem, type Place, type Status } from './open-item.ts'
import { ReasoningItem } from './reasoning-item.ts'
import type { ToolNames } from './tool-names.ts'

type SaidEvent = Extract<ChoiceEvent, { type: 'text' | 'refusal' }>

/** Query of a search that its provider does not report. */
const SEARCH: Readonly<Json> = { type: 'search', query: '' }

/** The action of a search by the provider, in the two forms that blocks of searches have. */
function searchOf({ type, name, action, input }: Json): unknown {
  if (type === 'web_search_call') return action ?? SEARCH
  if (type !== 'server_tool_use' || name !== 'web_search') return undefined
  return { type: 'search', query: isObject(input) ? (textIn(input.query) ?? '') : '' }
}

/** Folds the events of one answer into its items. */
export class Items {
  readonly output: Json[] = []
  readonly #emit: Emit
  readonly #names: ToolNames
  readonly #id: string
  readonly #waiting = new WaitingEvents()
  #open: OpenItem | undefined
  #phase: string | undefined
  /** Sources that arrived before the text that cites them. */
  #sources: SourceEvent[] = []
  /** Messages in order, for sources that arrive after other items. */
  readonly #messages: MessageItem[] = []
  /** Seals after a text. They are emitted before following content: sources of the text may come in between. */
  #late: ReasoningEvent[] = []
  /** Characters of text so far, of all messages. */
  #written = 0

  /** `id`: of the answer; each item's id contains it. */
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

  /** Call it once, after the last event. `status`: of the item that is still open. */
  end(status: Status): void {
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) this.#take(next)
    for (const source of this.#sources) this.#messages.at(-1)?.add(source)
    this.#emitLate()
    this.#close(status)
  }

  #take(event: ChoiceEvent): void {
    if (event.type !== 'source' && event.type !== 'logprobs' && !this.#isLate(event)) this.#emitLate()
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
        this.#cite(event)
        break
      case 'reasoning':
        if (this.#isLate(event)) this.#late.push(event)
        else this.#think(event)
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
    if (!this.#open?.takes(event)) {
      const message = new MessageItem(this.#place('msg'), this.#phase, this.#written)
      this.#messages.push(message)
      this.#open = message
    }
    this.#open.add(event)
    if (event.type !== 'text') return
    this.#written += event.text.length
    for (const source of this.#sources) this.#open!.add(source)
    if (this.#sources.length > 0) this.#sources = []
  }

  /** A source with a place belongs to the message there, one without to the open message or the next one. */
  #cite(source: SourceEvent): void {
    const { start } = source
    const cited = start === undefined ? undefined : this.#messages.findLast(message => message.covers(start))
    const message = cited ?? (this.#open instanceof MessageItem ? this.#open : undefined)
    if (message) message.add(source)
    else this.#sources.push(source)
  }

  #isLate(event: ChoiceEvent): event is ReasoningEvent {
    return event.type === 'reasoning' && event.text === '' && this.#open instanceof MessageItem
  }

  #emitLate(): void {
    const late = this.#late
    if (late.length === 0) return
    this.#late = []
    for (const seal of late) this.#think(seal)
  }

  #think(event: ReasoningEvent): void {
    if (event.text === '' && event.signature === undefined && event.data === undefined) return
    if (!this.#open?.takes(event)) this.#open = new ReasoningItem(this.#place('rs'))
    this.#open!.add(event)
  }

  /** A piece without a name belongs to an open call, or to one that has ended. */
  #call(event: ToolEvent): void {
    const { name, signature } = event
    if (!this.#open?.takes(event)) {
      if (name === undefined) return
      // The reasoning before the call carries it, as its last part.
      if (signature !== undefined) this.#thoughts().signature = signature
      const known = event.namespace === undefined ? this.#names.known(name) : undefined
      const prefix = event.custom || known?.custom ? 'ctc' : known?.search ? 'tsc' : 'fc'
      const callId = event.id || `call_${this.#id}_${event.index}`
      this.#open = new CallItem(this.#place(prefix), event, this.#names, callId)
    }
    this.#open!.add(event)
  }

  /** The open reasoning item, or a new one, which carries data for its provider. */
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

  /** The reasoning before it carries its replay. */
  #search(action: unknown): void {
    if (action === undefined) return
    const { id, index } = this.#place('ws')
    const item = { id, type: 'web_search_call', status: 'completed', action: isObject(action) ? action : SEARCH }
    const at = { output_index: index, item_id: id }
    this.#emit('output_item.added', { output_index: index, item: { ...item, status: 'in_progress' } })
    for (const stage of ['in_progress', 'searching', 'completed']) this.#emit(`web_search_call.${stage}`, at)
    this.#done(item)
  }

  /** Ends the open item. */
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

/** First in, first out. Joins the pieces of a call at its start, and adjacent pieces of a text or a thought. */
class WaitingEvents {
  #events: ChoiceEvent[] = []
  #next = 0
  /** Calls by index. */
  readonly #calls = new Map<number, ToolEvent>()

  add(event: ChoiceEvent): void {
    if (event.type === 'tool') {
      const call = this.#calls.get(event.index)
      if (call) call.args = (call.args ?? '') + (event.args ?? '')
      else {
        const own = Object.assign({}, event)
        this.#calls.set(event.index, own)
        this.#events.push(own)
      }
      return
    }
    const last = this.#next < this.#events.length ? this.#events.at(-1) : undefined
    if (!joins(last, event)) this.#events.push(waitable(event))
  }

  shift(): ChoiceEvent | undefined {
    const event = this.#events[this.#next++]
    if (event?.type === 'tool') this.#calls.delete(event.index)
    if (this.#next >= this.#events.length) {
      this.#events = []
      this.#next = 0
    }
    return event
  }
}
