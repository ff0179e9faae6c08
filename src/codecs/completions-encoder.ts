/** Writes text completions: only the text of each choice. */
import type { Encoder } from '../core/codec.ts'
import type { Event, FinishReason } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { GatewayError } from '../lib/error.ts'
import { answerIdOf, answerModelOf, metadataOf, usageOf } from './accounting.ts'
import { EVENT_STREAM } from './event-stream.ts'
import { openAiError } from './overflow.ts'

const headOf = (ex: Exchange) => ({
  id: `cmpl-${answerIdOf(ex)}`,
  object: 'text_completion',
  created: Math.floor((ex.answer.cached ?? ex).at / 1000),
  model: answerModelOf(ex),
})

/** No tools were offered, so a call by the model is a plain end. */
const finishOf = (reason: FinishReason): string => (reason === 'tool_calls' ? 'stop' : reason)

/** The prompt that begins a choice's text, if it must be repeated; none for more choices than the request names. */
function echoes(ex: Exchange): (choice: number) => string {
  const { echo, n, messages } = ex.chat
  if (!echo) return () => ''
  const each = n ?? 1
  return choice => (messages[Math.floor(choice / each)]?.content as string | undefined) ?? ''
}

/** Chunks of `text_completion`; the last one, with usage, precedes `[DONE]`. */
export class StreamEncoder implements Encoder {
  readonly contentType = EVENT_STREAM
  readonly #ex: Exchange
  readonly #echo: (choice: number) => string
  readonly #begun = new Set<number>()
  /** Empty until the first chunk. */
  #head = ''

  constructor(ex: Exchange) {
    this.#ex = ex
    this.#echo = echoes(ex)
  }

  write(batch: readonly Event[]): string | undefined {
    let out = ''
    for (const event of batch) {
      if (!('choice' in event)) continue
      if (this.#head === '') this.#open()
      if (event.type === 'text' || event.type === 'refusal') out += this.#text(event.choice, event.text)
      else if (event.type === 'finish')
        out += this.#chunk(event.choice, this.#first(event.choice), finishOf(event.reason))
    }
    return out === '' ? undefined : out
  }

  end(): string {
    this.#ex.meter.complete(false)
    return `${this.#last()}data: [DONE]\n\n`
  }

  fail(error: GatewayError): string {
    this.#ex.meter.complete(true)
    return `data: ${JSON.stringify(openAiError(error))}\n\n${this.#last()}data: [DONE]\n\n`
  }

  #open(): void {
    this.#head = `data: ${JSON.stringify(headOf(this.#ex)).slice(0, -1)},"choices":[`
  }

  #first(choice: number): string {
    if (this.#begun.has(choice)) return ''
    this.#begun.add(choice)
    return this.#echo(choice)
  }

  #text(choice: number, text: string): string {
    return this.#chunk(choice, this.#first(choice) + text, null)
  }

  #chunk(choice: number, text: string, finish: string | null): string {
    const reason = finish === null ? 'null' : `"${finish}"`
    return `${this.#head}{"text":${JSON.stringify(text)},"index":${choice},"logprobs":null,"finish_reason":${reason}}]}\n\n`
  }

  #last(): string {
    if (this.#head === '') this.#open()
    const usage = JSON.stringify(usageOf(this.#ex))
    return `${this.#head}],"usage":${usage},"metadata":${JSON.stringify(metadataOf(this.#ex))}}\n\n`
  }
}

interface Choice {
  text: string
  finish: FinishReason | undefined
}

/** One `text_completion` object with all choices. */
export class WholeEncoder implements Encoder {
  readonly contentType = 'application/json'
  readonly #ex: Exchange
  readonly #echo: (choice: number) => string
  /** Choices by index; sparse. */
  readonly #choices: Choice[] = []

  constructor(ex: Exchange) {
    this.#ex = ex
    this.#echo = echoes(ex)
  }

  write(batch: readonly Event[]): undefined {
    for (const event of batch) {
      if (!('choice' in event)) continue
      this.#choices[event.choice] ??= { text: this.#echo(event.choice), finish: undefined }
      const choice = this.#choices[event.choice]!
      if (event.type === 'text' || event.type === 'refusal') choice.text += event.text
      else if (event.type === 'finish') choice.finish ??= event.reason
    }
  }

  end(): string {
    const ex = this.#ex
    ex.meter.complete(false)
    const choices = this.#choices.map(({ text, finish }, index) => ({
      text,
      index,
      logprobs: null,
      finish_reason: finishOf(finish ?? 'stop'),
    }))
    const { id, object, created, model } = headOf(ex)
    const usage = usageOf(ex)
    const metadata = metadataOf(ex)
    return JSON.stringify({ id, object, created, model, choices: Object.values(choices), usage, metadata })
  }

  fail(): undefined {}
}
