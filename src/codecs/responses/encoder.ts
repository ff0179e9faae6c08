/** Writes answers as Responses, whole or as typed events with their numbers (docs/responses.md#the-stream). */

import type { Encoder } from '../../core/codec.ts'
import type { Event, FinishReason } from '../../core/event.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { ErrorAnswer } from '../../core/reply.ts'
import type { StoredResponses } from '../../core/stored-responses.ts'
import { CLIENT_CLOSED, errorBody, type GatewayError } from '../../lib/error.ts'
import { EVENT_STREAM, typedEvent, typedEventText } from '../event-stream.ts'
import { isOverflow, recognizable } from '../overflow.ts'
import { type Ending, idOf, ResponseObject } from './answer.ts'
import { Items } from './items.ts'
import { type Emit, responseId } from './open-item.ts'
import { toolNamesOf } from './tool-names.ts'

const REASONS: Readonly<Partial<Record<FinishReason, Ending['reason']>>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
}

/** Folds events into items, and determines how the answer ended. */
class Answer {
  readonly #ex: Exchange
  readonly #items: Items
  readonly #response: ResponseObject
  readonly #id: string
  #reason: Ending['reason']
  #ended: Ended | undefined

  constructor(ex: Exchange, response: ResponseObject, emit: Emit) {
    this.#ex = ex
    this.#response = response
    this.#id = idOf(ex)
    this.#items = new Items(emit, toolNamesOf(ex), this.#id)
  }

  add(event: Event): void {
    if (!('choice' in event)) return
    if (event.type === 'finish') this.#reason ??= REASONS[event.reason]
    else this.#items.add(event)
  }

  /** Ends the answer after its last event, and stores it. */
  async conclude(stored: StoredResponses, error?: GatewayError): Promise<void> {
    const ending = this.#close(error)
    const output = JSON.stringify(this.#items.output)
    await stored.store(responseId(this.#id), { output, answer: this.#response.at(ending) })
    this.#ended = this.#endedBy(ending, output)
  }

  /** Ends the items and the response. Call it after the last event. */
  end(error?: GatewayError): Ended {
    return this.#ended ?? this.#endedBy(this.#close(error), JSON.stringify(this.#items.output))
  }

  #close(error: GatewayError | undefined): Ending {
    this.#ex.meter.complete(error !== undefined)
    const reason = error ? undefined : this.#reason
    const status = error ? 'failed' : reason ? 'incomplete' : 'completed'
    this.#items.end(status === 'completed' ? 'completed' : 'incomplete')
    const completedAt = status === 'completed' ? Math.floor(Date.now() / 1000) : undefined
    return { status, reason, error, completedAt }
  }

  #endedBy(ending: Ending, output: string): Ended {
    return { status: ending.status, response: this.#response.at(ending, output) }
  }
}

interface Ended {
  readonly status: Ending['status']
  /** JSON text. */
  readonly response: string
}

/** Writes a response as one JSON object. */
export class WholeEncoder implements Encoder {
  readonly contentType = 'application/json'
  readonly #ex: Exchange
  readonly #answer: Answer

  constructor(ex: Exchange) {
    this.#ex = ex
    this.#answer = new Answer(ex, new ResponseObject(ex), () => {})
  }

  write(batch: readonly Event[]): undefined {
    for (const event of batch) this.#answer.add(event)
  }

  conclude(error: GatewayError | undefined): Promise<void> | undefined {
    const { stored } = this.#ex.input
    return stored?.isStored && !error ? this.#answer.conclude(stored) : undefined
  }

  end(): string {
    return this.#answer.end().response
  }

  fail(): undefined {}
}

/** Streams that a prompt is too long, as OpenAI does in place of a 400: its agents shorten their history for nothing else. */
export function streamedError(error: GatewayError, ex: Exchange): ErrorAnswer | undefined {
  if (!ex.streaming || !isOverflow(error)) return undefined
  // It is not stored.
  ex.input.stored = undefined
  return { status: 200, contentType: EVENT_STREAM, headers: [], body: new StreamEncoder(ex).fail(error) }
}

/** Writes a response as typed events. */
export class StreamEncoder implements Encoder {
  readonly contentType = EVENT_STREAM
  readonly #ex: Exchange
  /** Created with the first event, when the target is chosen. */
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

  /** Nothing is stored when the client has left: it received no end. */
  conclude(error: GatewayError | undefined): Promise<void> | undefined {
    const { stored } = this.#ex.input
    return stored?.isStored && error?.status !== CLIENT_CLOSED ? this.#begun().conclude(stored, error) : undefined
  }

  end(): string {
    this.#emitResponse(this.#begun().end())
    return this.#taken()
  }

  /**
   * Without `response.completed` clients treat the answer as incomplete. A prompt that is too long is an error event before
   * that, as OpenAI sends it.
   */
  fail(error: GatewayError): string {
    const answer = this.#begun()
    const named = error.with({ message: recognizable(error, 'your input exceeds the context window of this model') })
    if (isOverflow(error)) {
      this.#out += typedEvent('error', { ...errorBody(named), sequence_number: this.#number++ })
    }
    this.#emitResponse(answer.end(named))
    return this.#taken()
  }

  #begun(): Answer {
    if (this.#answer) return this.#answer
    const object = new ResponseObject(this.#ex)
    const response = object.at({ status: 'in_progress' })
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
