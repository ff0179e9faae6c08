/** A tool call of an answer, as far as it is known. */
import type { ToolEvent } from '../../core/event.ts'
import type { OpenBlock } from './sink.ts'

export class PendingTool {
  #id: string
  #name = ''
  #signature: string | undefined
  /** Its arguments so far, as JSON text. */
  args = ''
  /** True once its block has begun. */
  isOpened = false

  /** `id` is for a call that comes without one. */
  constructor(id: string) {
    this.#id = id
  }

  add({ id, name, args, signature }: ToolEvent): void {
    if (id) this.#id = id
    if (name) this.#name = name
    this.#signature ??= signature
    this.args += args ?? ''
  }

  /** True when nothing can follow: no text before the end of a JSON object is one. */
  get isComplete(): boolean {
    if (!this.args.trimEnd().endsWith('}')) return false
    try {
      JSON.parse(this.args)
      return true
    } catch {
      return false
    }
  }

  /** The block as it begins. What another wire signed travels in `extra_content`, as in a chat answer. */
  open(): OpenBlock {
    this.isOpened = true
    const signed = this.#signature !== undefined && {
      extra_content: { vendor: { thought_signature: this.#signature } },
    }
    return { type: 'tool_use', id: this.#id, name: this.#name, input: {}, ...signed }
  }
}
