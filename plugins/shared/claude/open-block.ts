/**
 * Content blocks whose input arrives in pieces: client tool calls, structured answers, and blocks without a chat form.
 */
import {
  type Event,
  GatewayError,
  type Json,
  newCallId,
  parseAnswer,
  textIn,
  toolArguments,
} from '../../../src/plugin.ts'
import { fromWireName, JSON_TOOL } from '../tool-name.ts'
import type { Block } from './blocks.ts'
import { mayBeEnvelope, unwrapped } from './envelope.ts'

/** A block between its start and its stop; each method returns the events to emit. */
export interface OpenBlock {
  /** True for a call that the client must answer. */
  readonly isTool: boolean
  start(): Event[]
  /** A piece of the block's input as JSON text, never empty. */
  json(piece: string): Event[]
  /** A delta of a kind specific to this block. */
  merge(delta: Record<string, unknown>): void
  stop(): Event[]
}

/** `tools`: client tool calls before this block; `schema`: of an answer by tool. */
export function openBlock(block: Block, tools: number, provider: string, schema?: Json): OpenBlock {
  if (block.type !== 'tool_use') return new NativeBlock(block, provider)
  return block.name === JSON_TOOL ? new JsonAnswer(block, schema) : new ToolCall(block, tools)
}

/** Input arrives in pieces, or whole at the start, or not at all. */
abstract class ArgumentsBlock implements OpenBlock {
  abstract readonly isTool: boolean
  readonly block: Block
  #streamed = false

  constructor(block: Block) {
    this.block = block
  }

  start(): Event[] {
    return []
  }

  json(piece: string): Event[] {
    this.#streamed = true
    return [this.piece(piece)]
  }

  merge(): void {}

  stop(): Event[] {
    return this.#streamed ? [] : [this.piece(toolArguments(this.block.input))]
  }

  protected abstract piece(text: string): Event
}

class ToolCall extends ArgumentsBlock {
  readonly isTool = true
  readonly #index: number

  constructor(block: Block, index: number) {
    super(block)
    this.#index = index
  }

  override start(): Event[] {
    const { id, name, caller } = this.block
    return [
      {
        type: 'tool',
        choice: 0,
        index: this.#index,
        // C15: without an id the call and its name would be lost.
        id: textIn(id) ?? newCallId(),
        ...(typeof name === 'string' && { name: fromWireName(name) }),
        // Code that calls tools waits for their results, which must name the caller.
        ...(caller != null && { own: { wire: 'anthropic.messages', fields: { caller } } }),
      },
    ]
  }

  protected piece(args: string): Event {
    return { type: 'tool', choice: 0, index: this.#index, args }
  }
}

/** The answer itself, as the input of the gateway's answer tool. It is held while it may be in an envelope. */
export class JsonAnswer extends ArgumentsBlock {
  readonly isTool = false
  readonly #schema: Json | undefined
  #held: string[] | undefined
  #isEnvelope = false

  constructor(block: Block, schema: Json | undefined) {
    super(block)
    this.#schema = schema
    if (schema) this.#held = []
  }

  override json(piece: string): Event[] {
    super.json(piece)
    if (!this.#held || !this.#schema) return [this.piece(piece)]
    this.#held.push(piece)
    if (this.#isEnvelope) return []
    const head = this.#held.join('')
    const isEnvelope = mayBeEnvelope(head, this.#schema)
    this.#isEnvelope = isEnvelope === true
    if (isEnvelope !== false) return []
    this.#held = undefined
    return [this.piece(head)]
  }

  override stop(): Event[] {
    const held = this.#held
    if (!held || !this.#schema) return super.stop()
    this.#held = undefined
    const text = held.length > 0 ? held.join('') : toolArguments(this.block.input)
    return [this.piece(unwrapped(text, this.#schema))]
  }

  protected piece(text: string): Event {
    return { type: 'text', choice: 0, text }
  }
}

/** Kept whole for replay to the provider. */
class NativeBlock implements OpenBlock {
  readonly isTool = false
  readonly #provider: string
  readonly #block: Block
  readonly #pieces: string[] = []

  constructor(block: Block, provider: string) {
    this.#block = { ...block }
    this.#provider = provider
  }

  start(): Event[] {
    return []
  }

  json(piece: string): Event[] {
    this.#pieces.push(piece)
    return []
  }

  /** Text is appended, other fields are replaced. */
  merge({ type: _, ...fields }: Record<string, unknown>): void {
    for (const [name, value] of Object.entries(fields)) {
      const before = this.#block[name]
      const grown = typeof value === 'string' && typeof before === 'string' ? before + value : value
      // Not by assignment: a field may be called __proto__.
      Object.defineProperty(this.#block, name, { value: grown, writable: true, enumerable: true, configurable: true })
    }
  }

  stop(): Event[] {
    const block = this.#pieces.length > 0 ? { ...this.#block, input: this.#input() } : this.#block
    return [{ type: 'native', choice: 0, provider: this.#provider, block }]
  }

  /** Input truncated by the token limit becomes an empty object, as replay requires an object. */
  #input(): unknown {
    try {
      return parseAnswer(this.#pieces.join(''))
    } catch (thrown) {
      if (thrown instanceof GatewayError) throw thrown
      return {}
    }
  }
}
