/** Gathers an answer and writes it as one body of the Messages form. */
import type { Encoder } from '../../core/codec.ts'
import type { Event } from '../../core/event.ts'
import type { Exchange } from '../../core/exchange.ts'
import { parseLossless, stringifyLossless } from '../../json/lossless.ts'
import { answerIdOf, metadataOf } from '../accounting.ts'
import { contextOf, endingOf, headOf, totalsOf } from './answer.ts'
import { Blocks } from './blocks.ts'
import { hidesReasoning } from './hidden-reasoning.ts'
import type { BlockSink, OpenBlock } from './sink.ts'

/** The content is the blocks of a stream, each read to its end. */
export class WholeEncoder implements Encoder, BlockSink {
  readonly contentType = 'application/json'
  readonly #ex: Exchange
  readonly #blocks: Blocks
  readonly #content: Record<string, unknown>[] = []
  #text = ''
  #signature = ''

  constructor(ex: Exchange) {
    this.#ex = ex
    this.#blocks = new Blocks(this, answerIdOf(ex), hidesReasoning(ex))
  }

  write(batch: readonly Event[]): undefined {
    for (const event of batch) {
      if (event.type === 'passage') this.#blocks.passage(event)
      else if ('choice' in event) this.#blocks.add(event)
    }
  }

  end(): string {
    this.#blocks.end()
    this.#ex.meter.complete(false)
    const answer = {
      ...headOf(this.#ex),
      content: this.#content,
      ...endingOf(this.#blocks),
      ...contextOf(this.#blocks),
      usage: totalsOf(this.#ex),
      metadata: metadataOf(this.#ex),
    }
    return stringifyLossless(JSON.stringify(answer))
  }

  fail(): undefined {}

  open(block: OpenBlock): void {
    this.#content.push({ ...block })
    this.#text = ''
    this.#signature = ''
  }

  text(piece: string): void {
    this.#text += piece
  }

  cite(citation: unknown): void {
    const block = this.#content.at(-1)!
    block.citations ??= []
    ;(block.citations as unknown[]).push(citation)
  }

  thinking(piece: string): void {
    this.#text += piece
  }

  signature(value: string): void {
    this.#signature = value
  }

  json(piece: string): void {
    this.#text += piece
  }

  close(): void {
    const block = this.#content.at(-1)!
    if (block.type === 'tool_use') block.input = inputOf(this.#text)
    else if (block.type === 'thinking') Object.assign(block, { thinking: this.#text, signature: this.#signature })
    else block.text = this.#text
  }

  whole(block: Record<string, unknown>): void {
    this.#content.push(block)
  }
}

/** Truncated arguments are omitted: a whole answer contains objects. */
function inputOf(args: string): unknown {
  try {
    const input = parseLossless(args)
    return typeof input === 'object' && input !== null ? input : {}
  } catch {
    return {}
  }
}
