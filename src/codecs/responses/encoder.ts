/** Writes answers as Responses, whole or as typed events with their numbers (docs/responses.md#the-stream). */
import type { Encoder } from '../../core/codec.ts'
import type { GatewayError } from '../../core/error.ts'
import type { Event, FinishReason } from '../../core/event.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { Json } from '../../core/json.ts'
import { nativeFormOf } from '../../core/translator.ts'
import { answerIdOf } from '../accounting.ts'
import { EVENT_STREAM, typedEvent } from '../event-stream.ts'
import { type Ending, responseOf } from './answer.ts'
import { Items } from './items.ts'
import { ToolNames } from './tool-names.ts'

const REASONS: Readonly<Partial<Record<FinishReason, Ending['reason']>>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
}

/** Folds events into items, and knows how the answer ended. */
class Answer {
  readonly #ex: Exchange
  readonly items: Items
  #reason: Ending['reason']

  constructor(ex: Exchange, tell: (type: string, fields: Json) => void) {
    this.#ex = ex
    const translator = ex.target?.translator
    const isNative = translator !== undefined && nativeFormOf(translator, ex.native) !== undefined
    this.items = new Items(tell, new ToolNames(ex.native?.body.tools), answerIdOf(ex), isNative)
  }

  add(event: Event): void {
    if (!('choice' in event)) return
    if (event.type === 'finish') this.#reason ??= REASONS[event.reason]
    else this.items.add(event)
  }

  /** What is known of it when all events have come. */
  end(): Json {
    this.#ex.completeUsage(false)
    this.items.end(this.#reason ? 'incomplete' : 'completed')
    const { output } = this.items
    const status = this.#reason ? 'incomplete' : 'completed'
    return responseOf(this.#ex, { status, output, reason: this.#reason })
  }

  fail(error: GatewayError): Json {
    this.#ex.completeUsage(true)
    this.items.end('incomplete')
    return responseOf(this.#ex, { status: 'failed', output: this.items.output, error })
  }
}

export class WholeEncoder implements Encoder {
  readonly contentType = 'application/json'
  readonly #answer: Answer

  constructor(ex: Exchange) {
    this.#answer = new Answer(ex, () => {})
  }

  write(batch: readonly Event[]): undefined {
    for (const event of batch) this.#answer.add(event)
  }

  end(): string {
    return JSON.stringify(this.#answer.end())
  }

  fail(): undefined {}
}

export class StreamEncoder implements Encoder {
  readonly contentType = EVENT_STREAM
  readonly #ex: Exchange
  /** Made with the first event: by then it is known who answers. */
  #answer: Answer | undefined
  #number = 0
  #out = ''

  constructor(ex: Exchange) {
    this.#ex = ex
  }

  write(batch: readonly Event[]): string | undefined {
    for (const event of batch) if ('choice' in event) this.#begun().add(event)
    return this.#out === '' ? undefined : this.#taken()
  }

  end(): string {
    const response = this.#begun().end()
    this.#tell(String(response.status), { response })
    return this.#taken()
  }

  /** Without `response.completed` no client takes it for a whole answer. */
  fail(error: GatewayError): string {
    this.#tell('failed', { response: this.#begun().fail(error) })
    return this.#taken()
  }

  #begun(): Answer {
    if (this.#answer) return this.#answer
    const response = responseOf(this.#ex, { status: 'in_progress', output: [] })
    this.#tell('created', { response })
    this.#tell('in_progress', { response })
    this.#answer = new Answer(this.#ex, (type, fields) => this.#tell(type, fields))
    return this.#answer
  }

  #tell(type: string, fields: Json): void {
    this.#out += typedEvent(`response.${type}`, { ...fields, sequence_number: this.#number++ })
  }

  #taken(): string {
    const out = this.#out
    this.#out = ''
    return out
  }
}
