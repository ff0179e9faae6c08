/**
 * Input items as chat messages. The reasoning, text and calls of one answer become one assistant turn again; what stands
 * between its calls and their outputs follows the outputs, because other wires allow nothing between them.
 */

import type { ContentPart, FunctionCall, Message } from '../../core/chat-request.ts'
import { excerptOf, isObject, type Json, listIn, textIn } from '../../json/json.ts'
import type { Count } from '../../json/shape.ts'
import { textKey } from '../../json/text-key.ts'
import { errors } from '../../lib/error.ts'
import type { ReasoningDetail } from '../../wire/fold.ts'
import { type Carried, carried, restore } from '../carried-reasoning.ts'
import { ToolJson } from '../tool-json.ts'
import { partsOf } from './parts.ts'
import type { ToolNames } from './tool-names.ts'

/** Items that only their provider can read. */
const LEFT_OUT: ReadonlySet<unknown> = new Set(['web_search_call', 'image_generation_call'])

/** The names of what a search of the client found; the tools themselves are among those of the request. */
const foundIn = ({ tools }: Json): Json => ({
  tools: listIn(tools).flatMap(tool => (isObject(tool) ? (textIn(tool.name) ?? []) : [])),
})

/** Reads the items of one request, in order. */
export class InputReader {
  readonly #messages: Message[] = []
  /** Path of the first part or item that only providers of this wire can read. */
  only: string | undefined
  readonly #names: ToolNames
  readonly #count: Count
  readonly #json = new ToolJson()
  readonly #calls = new Set<string>()
  /** Calls of the last turn that have no output yet, and the messages that wait for those. */
  readonly #unanswered = new Set<string>()
  #held: Message[] = []
  /** The assistant turn that the next items may extend. */
  #turn: Message | undefined
  /** Signature of the next call, from the reasoning before it. */
  #signature: string | undefined

  constructor(names: ToolNames, count: Count) {
    this.#names = names
    this.#count = count
  }

  /** Throws a 400 that names the item. */
  read(item: Json, at: string): void {
    const type = item.type ?? (item.role !== undefined ? 'message' : textIn(item.id) && 'item_reference')
    switch (type) {
      case 'message':
        this.#message(item, at)
        break
      case 'reasoning':
        this.#reasoning(item)
        break
      case 'function_call':
      case 'custom_tool_call':
        this.#call(item, type === 'custom_tool_call', at)
        break
      case 'tool_search_call':
        if (item.execution !== 'client') this.#pass(at)
        else this.#call({ ...item, name: this.#names.search, arguments: this.#argumentsOf(item, at) }, false, at)
        break
      case 'tool_search_output':
        if (item.execution !== 'client') this.#pass(at)
        else this.#output({ ...item, output: this.#json.resultOf(foundIn(item), `${at}.tools`) }, at)
        break
      case 'function_call_output':
      case 'custom_tool_call_output':
        this.#output(item, at)
        break
      case 'item_reference':
        throw errors.invalidField(`${at}.id`, `no item "${excerptOf(item.id)}" is stored; send it, with store: false`)
      default:
        if (textIn(type) === undefined) throw errors.invalidField(`${at}.type`, 'must be string')
        if (!LEFT_OUT.has(type)) this.#pass(at)
    }
  }

  /** An item that goes to providers of this wire as it came. */
  #pass(at: string): void {
    this.only ??= `${at}.type`
  }

  /** All messages, once no item follows. */
  end(): Message[] {
    this.#release()
    return this.#messages
  }

  #message({ role, content, phase }: Json, at: string): void {
    if (role !== 'user' && role !== 'system' && role !== 'developer' && role !== 'assistant') {
      throw errors.invalidField(`${at}.role`, 'must be one of "user", "assistant", "system", "developer"')
    }
    const parts = this.#parts(content, `${at}.content`)
    if (role !== 'assistant') {
      this.#end()
      const message: Message = { role, content: typeof content === 'string' ? content : plain(parts) }
      if (this.#unanswered.size > 0) this.#held.push(message)
      else this.#messages.push(message)
      return
    }
    const turn = this.#begin()
    if (turn.tool_calls) turn.content_before_tool_calls = false
    if (Array.isArray(turn.content)) for (const part of parts) turn.content.push(part)
    else turn.content = parts
    if (phase === 'commentary' || phase === 'final_answer') {
      turn.message_items ??= []
      const text = parts.map(part => (part.type === 'text' ? part.text : '')).join('')
      turn.message_items.push({ text, phase, preceding_tool_calls: turn.tool_calls?.length ?? 0 })
    }
  }

  #reasoning({ encrypted_content: sealed }: Json): void {
    const found = typeof sealed === 'string' ? carried(sealed, this.#count) : undefined
    if (!found) return
    const turn = this.#begin()
    if (beginsAgain(turn, found)) Object.assign(turn, { reasoning: '', reasoning_details: [] })
    restore(turn, found)
    this.#signature = found.signature
  }

  #argumentsOf({ arguments: args }: Json, at: string): string {
    return this.#json.argumentsOf(args ?? {}, `${at}.arguments`)
  }

  #call({ call_id: id, name, namespace, arguments: args, input }: Json, custom: boolean, at: string): void {
    if (textIn(id) === undefined) throw errors.invalidField(`${at}.call_id`, 'is required')
    if (textIn(name) === undefined) throw errors.invalidField(`${at}.name`, 'is required')
    const text = custom ? input : args
    if (typeof text !== 'string') throw errors.invalidField(`${at}.${custom ? 'input' : 'arguments'}`, 'must be string')
    const turn = this.#begin()
    const call: FunctionCall = {
      id: String(id),
      type: 'function',
      function: {
        name: this.#names.flat(String(name), namespace),
        arguments: custom ? this.#json.argumentsOf({ input: text }, `${at}.input`) : text || '{}',
      },
    }
    if (this.#signature !== undefined) {
      call.extra_content = { vendor: { thought_signature: this.#signature } }
      this.#signature = undefined
    }
    turn.tool_calls ??= []
    turn.tool_calls.push(call)
    const key = textKey(call.id)
    this.#calls.add(key)
    this.#unanswered.add(key)
  }

  #output({ call_id: id, output }: Json, at: string): void {
    const called = textIn(id)
    if (called === undefined) throw errors.invalidField(`${at}.call_id`, 'is required')
    if (!this.#calls.has(textKey(called))) {
      throw errors.invalidField(`${at}.call_id`, `no call in input before it has the id "${called.slice(0, 100)}"`)
    }
    const parts = this.#parts(output, `${at}.output`)
    this.#end()
    this.#messages.push({
      role: 'tool',
      tool_call_id: called,
      content: typeof output === 'string' ? output : plain(parts),
    })
    if (this.#unanswered.delete(textKey(called)) && this.#unanswered.size === 0) this.#release()
  }

  #parts(content: unknown, at: string): ContentPart[] {
    if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
    if (!Array.isArray(content)) throw errors.invalidField(at, 'must be string or array')
    return content.flatMap((part: unknown, i) => {
      const where = `${at}[${i}]`
      if (!isObject(part)) throw errors.invalidField(where, 'must be object')
      if (textIn(part.file_id) !== undefined) this.only ??= `${where}.file_id`
      return partsOf(part, where)
    })
  }

  #begin(): Message {
    if (this.#turn) return this.#turn
    this.#release()
    this.#turn = { role: 'assistant' }
    this.#messages.push(this.#turn)
    return this.#turn
  }

  /** No more outputs of the last turn are waited for. */
  #release(): void {
    this.#unanswered.clear()
    for (const message of this.#held) this.#messages.push(message)
    this.#held = []
  }

  #end(): void {
    this.#turn = undefined
    this.#signature = undefined
  }
}

/** Whether reasoning is of a new answer, which replaces one that was cut: its blocks are counted from the start. */
function beginsAgain({ reasoning_details: before }: Message, { details = [] }: Carried): boolean {
  const first = details[0]?.block_index ?? Number.POSITIVE_INFINITY
  return listIn(before).some(detail => ((detail as ReasoningDetail).block_index ?? -1) >= first)
}

/** Text alone is a string, as most clients send it. */
function plain(parts: ContentPart[]): ContentPart[] | string {
  const [first, second] = parts
  if (first === undefined) return ''
  return second === undefined && first.type === 'text' ? first.text : parts
}
