/** Writes answers as Responses, whole or as typed events with their numbers (docs/responses.md#the-stream). */
import type { Encoder } from '../../core/codec.ts'
import type { GatewayError } from '../../core/error.ts'
import type { Event, FinishReason } from '../../core/event.ts'
import type { Exchange } from '../../core/exchange.ts'
import { answerIdOf } from '../accounting.ts'
import { EVENT_STREAM, typedEvent, typedEventText } from '../event-stream.ts'
import { type Ending, ResponseObject } from './answer.ts'
import { Items } from './items.ts'
import type { Emit } from './open-item.ts'
import { toolNamesOf } from './tool-names.ts'

const REASONS: Readonly<Partial<Record<FinishReason, Ending['reason']>>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
}

/** Folds events into items, and knows how the answer ended. */
class Answer {
  readonly #ex: Exchange
  readonly #items: Items
  readonly #response: ResponseObject
  #reason: Ending['reason']

  constructor(ex: Exchange, response: ResponseObject, emit: Emit) {
    this.#ex = ex
    this.#response = response
    this.#items = new Items(emit, toolNamesOf(ex), answerIdOf(ex))
  }

  add(event: Event): void {
    if (!('choice' in event)) return
    if (event.type === 'finish') this.#reason ??= REASONS[event.reason]
    else this.#items.add(event)
  }

  /** Call `end` or `fail` once, after the last event: the items and the response have their ends. */
  end(): Ended {
    this.#ex.completeUsage(false)
    const reason = this.#reason
    const status = reason ? 'incomplete' : 'completed'
    this.#items.end(status)
    return { status, response: this.#response.at({ status, output: this.#items.output, reason }) }
  }

  fail(error: GatewayError): Ended {
    this.#ex.completeUsage(true)
    this.#items.end('incomplete')
    const status = 'failed'
    return { status, response: this.#response.at({ status, output: this.#items.output, error }) }
  }
}

interface Ended {
  readonly status: Ending['status']
  /** JSON text. */
  readonly response: string
}

export class WholeEncoder implements Encoder {
  readonly contentType = 'application/json'
  readonly #answer: Answer

  constructor(ex: Exchange) {
    this.#answer = new Answer(ex, new ResponseObject(ex), () => {})
  }

  write(batch: readonly Event[]): undefined {
    for (const event of batch) this.#answer.add(event)
  }

  end(): string {
    return this.#answer.end().response
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
    this.#emitResponse(this.#begun().end())
    return this.#taken()
  }

  /** Without `response.completed` no client takes it for a whole answer. */
  fail(error: GatewayError): string {
    this.#emitResponse(this.#begun().fail(error))
    return this.#taken()
  }

  #begun(): Answer {
    if (this.#answer) return this.#answer
    const object = new ResponseObject(this.#ex)
    const response = object.at({ status: 'in_progress', output: [] })
    this.#emitResponse({ status: 'created', response })
    this.#emitResponse({ status: 'in_progress', response })
    this.#answer = new Answer(this.#ex, object, (type, fields) => {
      this.#out += typedEvent(`response.${type}`, { ...fields, sequence_number: this.#number++ })
    })
    return this.#answer
  }

  #emitResponse({ status, response }: { status: string; response: string }): void {
    this.#out += typedEventText(`response.${status}`, `"sequence_number":${this.#number++},"response":${response}`)
  }

  #taken(): string {
    const out = this.#out
    this.#out = ''
    return out
  }
}
