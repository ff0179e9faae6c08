/** A growing tool call of an answer. */
import type { ToolEvent, WireFields } from '../../core/event.ts'
import { Shape } from '../../json/shape.ts'
import { type OpenBlock, WIRE } from './sink.ts'

/** Collects the pieces of a call. An id that the provider sends replaces the given one. */
export class PendingTool {
  #id: string
  #name = ''
  #signature: string | undefined
  #own: WireFields['fields'] | undefined
  /** Its arguments so far, as JSON text. */
  args = ''
  /** Finds the end of the arguments. The decoder has checked their bounds. */
  readonly #shape = new Shape({ values: Number.POSITIVE_INFINITY })

  /** `id`: for a call without one. */
  constructor(id: string) {
    this.#id = id
  }

  add({ id, name, args, signature, own }: ToolEvent): void {
    if (id) this.#id = id
    if (name) this.#name = name
    this.#signature ??= signature
    if (own?.wire === WIRE) this.#own = own.fields
    if (!args) return
    this.args += args
    this.#shape.add(args)
  }

  /** True when nothing can follow: the object is closed. Until then more pieces may arrive. */
  get isComplete(): boolean {
    return this.#shape.closed
  }

  get id(): string {
    return this.#id
  }

  /** Sealed for the provider that made it. */
  get signature(): string | undefined {
    return this.#signature
  }

  /** The initial block. Signatures of other wires are in `extra_content`, as in a chat answer. */
  open(): OpenBlock {
    const signed = this.#signature !== undefined && {
      extra_content: { vendor: { thought_signature: this.#signature } },
    }
    return { type: 'tool_use', id: this.#id, name: this.#name, input: {}, ...signed, ...this.#own }
  }
}
