/** Writes a streamed answer in the Messages form, by template. */
import type { Encoder } from '../../core/codec.ts'
import type { Event } from '../../core/event.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { GatewayError } from '../../lib/error.ts'
import { answerIdOf, metadataOf } from '../accounting.ts'
import { EVENT_STREAM } from '../event-stream.ts'
import { contextOf, endingOf, firstTokensOf, headOf, totalsOf } from './answer.ts'
import { Blocks } from './blocks.ts'
import { streamError } from './error.ts'
import { hidesReasoning } from './hidden-reasoning.ts'
import type { BlockSink, OpenBlock } from './sink.ts'

const DELTA = 'event: content_block_delta\ndata: {"type":"content_block_delta","index":'

/** One write per batch; repeated parts of events are constant text. */
export class StreamEncoder implements Encoder, BlockSink {
  readonly contentType = EVENT_STREAM
  readonly #ex: Exchange
  readonly #blocks: Blocks
  #begun = false
  /** Index of the open block, else of the next one. */
  #index = 0
  #out = ''

  constructor(ex: Exchange) {
    this.#ex = ex
    this.#blocks = new Blocks(this, answerIdOf(ex), hidesReasoning(ex))
  }

  write(batch: readonly Event[]): string | undefined {
    for (const event of batch) {
      if (event.type === 'passage') this.#blocks.passage(event)
      if (!('choice' in event)) continue
      if (!this.#begun) this.#begin()
      this.#blocks.add(event)
    }
    return this.#out === '' ? undefined : this.#taken()
  }

  end(): string {
    if (!this.#begun) this.#begin()
    this.#blocks.end()
    this.#ex.meter.complete(false)
    const delta = JSON.stringify(endingOf(this.#blocks))
    const rest = { ...contextOf(this.#blocks), usage: totalsOf(this.#ex), metadata: metadataOf(this.#ex) }
    this.#event('message_delta', `"delta":${delta},${JSON.stringify(rest).slice(1, -1)}`)
    return `${this.#taken()}event: message_stop\ndata: {"type":"message_stop"}\n\n`
  }

  /** The error ends the stream: without `message_stop` clients consider the answer incomplete. */
  fail(error: GatewayError): string {
    this.#ex.meter.complete(true)
    return `${this.#taken()}event: error\ndata: ${JSON.stringify(streamError(error))}\n\n`
  }

  open(block: OpenBlock): void {
    this.#event('content_block_start', `"index":${this.#index},"content_block":${JSON.stringify(block)}`)
  }

  text(piece: string): void {
    this.#out += `${DELTA}${this.#index},"delta":{"type":"text_delta","text":${JSON.stringify(piece)}}}\n\n`
  }

  cite(citation: unknown): void {
    this.#out += `${DELTA}${this.#index},"delta":{"type":"citations_delta","citation":${JSON.stringify(citation)}}}\n\n`
  }

  thinking(piece: string): void {
    this.#out += `${DELTA}${this.#index},"delta":{"type":"thinking_delta","thinking":${JSON.stringify(piece)}}}\n\n`
  }

  signature(value: string): void {
    this.#out += `${DELTA}${this.#index},"delta":{"type":"signature_delta","signature":${JSON.stringify(value)}}}\n\n`
  }

  json(piece: string): void {
    this.#out += `${DELTA}${this.#index},"delta":{"type":"input_json_delta","partial_json":${JSON.stringify(piece)}}}\n\n`
  }

  close(): void {
    this.#event('content_block_stop', `"index":${this.#index}`)
    this.#index += 1
  }

  whole(block: Record<string, unknown>): void {
    this.#event('content_block_start', `"index":${this.#index},"content_block":${JSON.stringify(block)}`)
    this.close()
  }

  #begin(): void {
    this.#begun = true
    const usage = firstTokensOf(this.#ex)
    const message = { ...headOf(this.#ex), content: [], stop_reason: null, stop_sequence: null, usage }
    this.#event('message_start', `"message":${JSON.stringify(message)}`)
  }

  /** `members`: the payload besides its type. */
  #event(type: string, members: string): void {
    this.#out += `event: ${type}\ndata: {"type":"${type}",${members}}\n\n`
  }

  #taken(): string {
    const out = this.#out
    this.#out = ''
    return out
  }
}
