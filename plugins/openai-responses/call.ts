/** A growing call of a function or custom tool. */
import { type Event, type Json, newCallId, type ToolEvent, textIn, toolArguments } from '../../src/plugin.ts'
import { Arguments } from '../shared/chat-completions/arguments.ts'
import type { Answer } from './answer.ts'
import { PARALLEL, wrappedCalls } from './parallel.ts'
import { sealNamespace } from './replay.ts'

/** Streams arguments once the call has a name, and for a function once they begin like an object. */
export class CallItem {
  readonly #answer: Answer
  /** Its input is free text. */
  readonly #custom: boolean
  #id: string | undefined
  readonly #callIds = new Set<string>()
  #name: string | undefined
  /** Its index in the gateway's answer; undefined until it was emitted. */
  #index: number | undefined
  /** Arguments held back: until the call has a name, and those of a function until they begin like an object. */
  readonly #held: Arguments
  #streamed = false
  #state: 'held' | 'direct' | 'closed' = 'held'

  /** `item`: its first state on the wire. */
  constructor(item: Json, answer: Answer, out: Event[]) {
    this.#answer = answer
    this.#custom = item.type === 'custom_tool_call'
    this.#held = new Arguments(this.#custom, answer.count)
    answer.place()
    this.#begin(item, out)
  }

  /** Ids that the wire gave it: some servers change them while it grows. */
  get callIds(): ReadonlySet<string> {
    return this.#callIds
  }

  /** True for arguments without a function name. */
  get isNameless(): boolean {
    return this.#name === undefined && this.#held.text.trim() !== ''
  }

  /** `arguments` and `input` are complete values, and add nothing after a `delta`. */
  piece(_kind: string, { delta, arguments: all, input }: Json, out: Event[]): void {
    const piece = this.#streamed ? delta : (delta ?? all ?? input)
    if (typeof piece !== 'string' || piece === '') return
    this.#streamed = true
    this.#write(piece, out)
  }

  done(item: Json, out: Event[]): void {
    this.#begin(item, out)
    const args = this.#custom ? (item.input ?? '') : (item.arguments ?? {})
    if (!this.#streamed) {
      this.#streamed = true
      this.#write(typeof args === 'string' ? args : JSON.stringify(args), out)
    }
    this.close(out)
  }

  /** Emits held arguments once the name is known (docs/contributing/edge-cases.md#chat-chunks C17 to C19). */
  close(out: Event[]): void {
    if (this.#state === 'held' && this.#name === undefined) return
    if (this.#state === 'held') this.#flush(this.#name!, out)
    this.#state = 'closed'
  }

  #begin(item: Json, out: Event[]): void {
    const callId = textIn(item.call_id)
    if (callId !== undefined) this.#callIds.add(callId)
    // The last id counts, until a client has one.
    if (this.#index === undefined) this.#id = callId ?? this.#id ?? textIn(item.id)
    this.#name ??= textIn(item.name)
    if (this.#name !== undefined && !this.#isParallel) this.#open(this.#name, item.namespace, out)
  }

  get #isParallel(): boolean {
    return this.#name === PARALLEL && !this.#custom
  }

  #flush(name: string, out: Event[]): void {
    const wrapped = this.#isParallel ? wrappedCalls(this.#held.text) : undefined
    for (const [i, { name, args }] of wrapped?.entries() ?? []) {
      out.push({ type: 'tool', choice: 0, index: this.#answer.call(), id: `${this.#clientId()}_${i}`, name, args })
    }
    if (wrapped) return
    const index = this.#open(name, undefined, out)
    const { text } = this.#held
    if (!this.#custom) this.#emit(index, toolArguments(text.trim()), out)
    else if (text !== '') this.#emit(index, text, out)
  }

  #emit(index: number, args: string, out: Event[]): void {
    if (this.#custom) out.push({ type: 'tool', choice: 0, index, custom: true, args })
    else out.push({ type: 'tool', choice: 0, index, args })
  }

  #open(name: string, namespace: unknown, out: Event[]): number {
    if (this.#index !== undefined) return this.#index
    this.#index = this.#answer.call()
    const group = textIn(namespace)
    const event: ToolEvent = { type: 'tool', choice: 0, index: this.#index, id: this.#clientId(), name }
    if (this.#custom) event.custom = true
    if (group !== undefined && this.#answer.isNative) event.namespace = group
    else if (group !== undefined) event.signature = sealNamespace(group, this.#answer.target)
    out.push(event)
    return this.#index
  }

  #write(piece: string, out: Event[]): void {
    if (this.#state === 'closed' || piece === '') return
    let args = piece
    if (this.#state === 'held') {
      this.#held.add(piece)
      if (this.#index === undefined || !this.#held.direct) return
      this.#state = 'direct'
      args = this.#held.text
    }
    this.#emit(this.#index!, args, out)
  }

  /** C15: a call without an id gets one that no other answer has. */
  #clientId(): string {
    this.#id ??= newCallId()
    return this.#id
  }
}
