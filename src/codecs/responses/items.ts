/** Output items, one open at a time: what comes for another one while a call is open waits for its end. */
import { type Json, textIn } from '../../core/json.ts'
import { CallItem } from './call-item.ts'
import { MessageItem } from './message-item.ts'
import type { ChoiceEvent, OpenItem, Place, Status, Tell } from './open-item.ts'
import { ReasoningItem } from './reasoning-item.ts'
import type { ToolNames } from './tool-names.ts'

export class Items {
  readonly output: Json[] = []
  readonly #tell: Tell
  readonly #names: ToolNames
  readonly #id: string
  /** Items that this wire has itself are shown as they came. */
  readonly #isNative: boolean
  #open: OpenItem | undefined
  #waiting: ChoiceEvent[] = []
  #phase: string | undefined
  /** Characters of text so far, of all messages. */
  #written = 0

  constructor(tell: Tell, names: ToolNames, id: string, isNative: boolean) {
    this.#tell = tell
    this.#names = names
    this.#id = id
    this.#isNative = isNative
  }

  add(event: ChoiceEvent): void {
    if (event.choice !== 0 || event.type === 'finish') return
    if (this.#open?.isWaiting && !this.#open.takes(event)) this.#wait(event)
    else this.#take(event)
    if (this.#waiting.length > 0 && !this.#open?.isWaiting) this.#drain()
  }

  /** Call it once, after the last event. */
  end(status: Status): void {
    this.#close(this.#waiting.length > 0 ? 'completed' : status)
    while (this.#waiting.length > 0) {
      this.#drain()
      this.#close(this.#waiting.length > 0 ? 'completed' : status)
    }
  }

  /** Tells what waited, up to the next call that is not whole. Its own pieces go before the rest, in their order. */
  #drain(): void {
    const left = this.#waiting
    this.#waiting = []
    for (const event of left) {
      if (this.#open?.isWaiting && !this.#open.takes(event)) this.#wait(event)
      else this.#take(event)
    }
  }

  /** Pieces of one call, or of one text, wait as one. */
  #wait(event: ChoiceEvent): void {
    const waiting = this.#waiting
    const last = waiting.length - 1
    const at = event.type === 'tool' ? waiting.findIndex(other => isSameCall(other, event.index)) : last
    const other = waiting[at]
    if (other?.type === 'tool' && event.type === 'tool') {
      waiting[at] = Object.assign({}, other, { args: (other.args ?? '') + (event.args ?? '') })
    } else if (other?.type === 'text' && event.type === 'text') {
      waiting[at] = Object.assign({}, other, { text: other.text + event.text })
    } else waiting.push(event)
  }

  #take(event: ChoiceEvent): void {
    if (event.type === 'phase') {
      this.#close('completed')
      this.#phase = event.phase
      return
    }
    if (event.type === 'text' || event.type === 'refusal') {
      if (event.text === '') return
    }
    if (event.type === 'reasoning' && event.text === '' && event.signature === undefined && event.data === undefined)
      return
    if (event.type === 'native') this.#native(event.provider, event.block)
    else if (event.type === 'image') this.#image(event.url)
    else {
      if (!this.#open?.takes(event)) this.#begin(event)
      this.#open?.add(event)
      if (event.type === 'text') this.#written += event.text.length
    }
  }

  #begin(event: ChoiceEvent): void {
    if (event.type === 'tool') {
      if (event.name === undefined) return
      if (event.signature !== undefined) this.#signed(event.signature)
      this.#close('completed')
      const callId = event.id || `call_${this.#id}_${event.index}`
      const custom = event.custom || this.#names.known(event.name).custom
      this.#open = new CallItem(this.#place(custom ? 'ctc' : 'fc'), event, this.#names, callId)
    } else if (event.type === 'reasoning') {
      this.#close('completed')
      this.#open = new ReasoningItem(this.#place('rs'))
    } else if (event.type === 'text' || event.type === 'refusal') {
      this.#close('completed')
      this.#open = new MessageItem(this.#place('msg'), this.#phase, this.#written)
    }
  }

  /** A call's own signature rides with the reasoning before it, of which it is the last. */
  #signed(signature: string): void {
    if (this.#isNative) return
    this.#thoughts().signature = signature
  }

  /** What only its provider reads; a search is told in this wire's words. */
  #native(provider: string, given: Json): void {
    const { position: _, seal: __, ...block } = given
    if (this.#isNative) {
      this.#whole({ ...block, id: textIn(block.id) ?? this.#place('ws').id })
      return
    }
    this.#thoughts().native.push(Object.assign({}, given, { provider }))
  }

  /** The open reasoning, or a new one. */
  #thoughts(): ReasoningItem {
    if (this.#open instanceof ReasoningItem) return this.#open
    this.#close('completed')
    const opened = new ReasoningItem(this.#place('rs'))
    this.#open = opened
    return opened
  }

  #image(url: string): void {
    const result = /^data:[^,]*;base64,/.test(url) ? url.slice(url.indexOf(',') + 1) : url
    this.#whole({ id: this.#place('ig').id, type: 'image_generation_call', status: 'completed', result })
  }

  #whole(item: Json): void {
    this.#close('completed')
    const at = { output_index: this.output.length }
    const { type, id } = item
    const shown = type === 'web_search_call' || type === 'image_generation_call'
    this.#tell('output_item.added', { ...at, item: shown ? { ...item, status: 'in_progress' } : item })
    if (shown) {
      this.#tell(`${type}.in_progress`, { ...at, item_id: id })
      this.#tell(`${type}.completed`, { ...at, item_id: id })
    }
    this.#tell('output_item.done', { ...at, item })
    this.output.push(item)
  }

  #place(prefix: string): Place {
    const index = this.output.length
    return { id: `${prefix}_${this.#id}_${index}`, index, tell: this.#tell }
  }

  #close(status: Status): void {
    if (!this.#open) return
    const index = this.output.length
    const item = this.#open.close(status)
    this.#open = undefined
    this.output.push(item)
    this.#tell('output_item.done', { output_index: index, item })
  }
}

const isSameCall = (event: ChoiceEvent, index: number): boolean => event.type === 'tool' && event.index === index
