/** A tool call of an answer, as far as it is known. */
import type { ToolEvent, WireFields } from '../../core/event.ts'
import { Shape } from '../../core/shape.ts'
import { type OpenBlock, WIRE } from './sink.ts'

export class PendingTool {
  #id: string
  #name = ''
  #signature: string | undefined
  #own: WireFields['fields'] | undefined
  /** Its arguments so far, as JSON text. */
  args = ''
  /** Where in that text its end is. Its bounds were checked where it came in. */
  readonly #shape = new Shape({ values: Number.POSITIVE_INFINITY })

  /** `id` is for a call that comes without one. */
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

  /** True when nothing can follow: the object is closed. Until then pieces of it may come, whatever comes between. */
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

  /** The block as it begins. What another wire signed travels in `extra_content`, as in a chat answer. */
  open(): OpenBlock {
    const signed = this.#signature !== undefined && {
      extra_content: { vendor: { thought_signature: this.#signature } },
    }
    return { type: 'tool_use', id: this.#id, name: this.#name, input: {}, ...signed, ...this.#own }
  }
}
