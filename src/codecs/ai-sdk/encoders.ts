/** Answers of the protocol: a stream of parts, or one object of the same parts put together. */
import type { Encoder } from '../../core/codec.ts'
import type { Event } from '../../core/event.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { Json } from '../../json/json.ts'
import type { GatewayError } from '../../lib/error.ts'
import { answerIdOf, answerModelOf } from '../accounting.ts'
import { EVENT_STREAM } from '../event-stream.ts'
import { StreamEncoder as ChatStream } from '../openai-chat-encoder.ts'
import { callOf, type ProtocolCall } from './call.ts'
import { generationIdOf, streamError } from './error.ts'
import { PartWriter } from './parts.ts'

type TextEvent = Extract<Event, { type: 'text' }>

/** Chunks of a chat stream as raw parts. */
const rawParts = (chunks = ''): string =>
  chunks
    .split('\n\n')
    .map(chunk => chunk && `data: {"type":"raw","rawValue":${chunk.slice('data: '.length)}}\n\n`)
    .join('')

const line = (part: Json | object): string => `data: ${JSON.stringify(part)}\n\n`

/** An SSE stream of parts: `stream-start` first, `finish` and `[DONE]` last, after a failure too. */
export class StreamEncoder implements Encoder {
  readonly contentType = EVENT_STREAM
  readonly #ex: Exchange
  readonly #call: ProtocolCall
  readonly #parts: PartWriter
  /** Writes the chunks of a chat answer, which are the raw parts. */
  readonly #raw: ChatStream | undefined
  #begun = false
  #identified = false

  constructor(ex: Exchange) {
    this.#ex = ex
    this.#call = callOf(ex)
    this.#parts = new PartWriter(ex)
    this.#raw = this.#call.raw ? new ChatStream(ex, { reasoning_content: false }) : undefined
  }

  write(batch: readonly Event[]): string | undefined {
    let out = ''
    for (const event of batch) out += this.#piece(event)
    const raw = rawParts(this.#raw?.write(batch))
    if (out === '' && raw === '') return undefined
    return this.#head() + this.#identity() + raw + out
  }

  end(): string {
    let out = this.#head() + this.#identity()
    this.#ex.meter.complete(false)
    for (const part of this.#parts.end()) out += line(part)
    return `${out}${line({ type: 'finish', ...this.#parts.finish })}data: [DONE]\n\n`
  }

  fail(error: GatewayError): string {
    this.#ex.meter.complete(true)
    let out = this.#head()
    for (const part of this.#parts.cut()) out += line(part)
    const { finish } = this.#parts
    const finishReason = this.#call.version.finish('error', error.code ?? undefined)
    return `${out}${line({ type: 'error', error: streamError(error) })}${line({ type: 'finish', ...finish, finishReason })}data: [DONE]\n\n`
  }

  #piece(event: Event): string {
    const id = event.type === 'text' && event.choice === 0 && event.text !== '' ? this.#parts.text : undefined
    if (id !== undefined) {
      return `data: {"type":"text-delta","id":"${id}","delta":${JSON.stringify((event as TextEvent).text)}}\n\n`
    }
    let out = ''
    for (const part of this.#parts.add(event)) out += line(part)
    return out
  }

  /** Warnings count only before all other parts. */
  #head(): string {
    if (this.#begun) return ''
    this.#begun = true
    return line({ type: 'stream-start', warnings: this.#call.warnings })
  }

  /** Known from the first content on. */
  #identity(): string {
    if (this.#identified) return ''
    this.#identified = true
    const ex = this.#ex
    const timestamp = new Date((ex.answer.cached ?? ex).at).toISOString()
    return line({
      type: 'response-metadata',
      id: generationIdOf(answerIdOf(ex)),
      timestamp,
      modelId: answerModelOf(ex),
    })
  }
}

/** The JSON object of a `doGenerate` call. Failures are refusals, in `aiSdkError`'s form. */
export class WholeEncoder implements Encoder {
  readonly contentType = 'application/json'
  readonly #ex: Exchange
  readonly #parts: PartWriter
  readonly #content: Json[] = []
  /** The last block of text or reasoning. */
  #block: Json = {}

  constructor(ex: Exchange) {
    this.#ex = ex
    this.#parts = new PartWriter(ex)
  }

  write(batch: readonly Event[]): undefined {
    for (const event of batch) for (const part of this.#parts.add(event)) this.#put(part)
  }

  end(): string {
    this.#ex.meter.complete(false)
    for (const part of this.#parts.end()) this.#put(part)
    return JSON.stringify({ content: this.#content, ...this.#parts.finish, warnings: callOf(this.#ex).warnings })
  }

  fail(): undefined {}

  /** Blocks never overlap, but sources may stand between the deltas of one. */
  #put(part: Json): void {
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
        this.#block = { type: part.type === 'text-start' ? 'text' : 'reasoning', text: '' }
        this.#content.push(this.#block)
        break
      case 'text-delta':
      case 'reasoning-delta':
        this.#block.text = `${this.#block.text as string}${part.delta as string}`
        break
      case 'text-end':
      case 'reasoning-end':
        if (part.providerMetadata) this.#block.providerMetadata = part.providerMetadata
        break
      case 'tool-input-start':
      case 'tool-input-delta':
      case 'tool-input-end':
        break
      default:
        this.#content.push(part)
    }
  }
}
