/** A tool call of an answer, as far as it is known. */
import type { ToolEvent, WireFields } from '../../core/event.ts'
import { type OpenBlock, WIRE } from './sink.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c

export class PendingTool {
  #id: string
  #name = ''
  #signature: string | undefined
  #own: WireFields['fields'] | undefined
  /** Its arguments so far, as JSON text. */
  args = ''
  /** Where in that text its end is: how many objects and lists are open, and whether a string is. */
  #depth = 0
  #inString = false
  #escaped = false
  #begun = false

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
    this.#follow(args)
  }

  /** True when nothing can follow: the object is closed. Until then pieces of it may come, whatever comes between. */
  get isComplete(): boolean {
    return this.#begun && this.#depth === 0
  }

  get id(): string {
    return this.#id
  }

  /** Sealed for the provider that made it. */
  get signature(): string | undefined {
    return this.#signature
  }

  /** Each piece is looked at once. */
  #follow(piece: string): void {
    for (let at = 0; at < piece.length; at++) {
      const code = piece.charCodeAt(at)
      if (this.#escaped) this.#escaped = false
      else if (code === QUOTE) this.#inString = !this.#inString
      else if (this.#inString) this.#escaped = code === BACKSLASH
      else if (isOpening(code)) {
        this.#begun = true
        this.#depth += 1
      } else if (isClosing(code)) this.#depth -= 1
    }
  }

  /** The block as it begins. What another wire signed travels in `extra_content`, as in a chat answer. */
  open(): OpenBlock {
    const signed = this.#signature !== undefined && {
      extra_content: { vendor: { thought_signature: this.#signature } },
    }
    return { type: 'tool_use', id: this.#id, name: this.#name, input: {}, ...signed, ...this.#own }
  }
}

/** `{` and `[`, `}` and `]`. */
const isOpening = (code: number): boolean => code === 0x7b || code === 0x5b
const isClosing = (code: number): boolean => code === 0x7d || code === 0x5d
