/** Writes chat answers in the OpenAI form: chunks by template, or one body at the end. */
import type { Encoder } from '../core/codec.ts'
import type { ChoiceEvent, Event, FinishReason, LogprobsEvent, ReasoningEvent, ToolEvent } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import { type Infer, s } from '../core/schema.ts'
import type { GatewayError } from '../lib/error.ts'
import { type Choice, Fold } from '../wire/fold.ts'
import { answererOf, answerIdOf, answerModelOf, metadataOf, usageOf } from './accounting.ts'
import { EVENT_STREAM } from './event-stream.ts'
import { functionCallDelta, functionCallOf, wantsFunctionCall } from './functions.ts'
import { openAiError } from './overflow.ts'
import { annotation, StreamedChoice } from './streamed-choice.ts'

/** The schema of `compat`. */
export const chatCompat = s.object({
  /** Also writes reasoning as `reasoning_content`, the only name that some clients read. */
  reasoning_content: s.default(s.boolean(), true),
})
/** The options, with defaults filled in. */
export type ChatCompat = Infer<typeof chatCompat>

/** Common beginning of chunks and whole answers. Known from the first visible event on. */
const headOf = (ex: Exchange, object: 'chat.completion' | 'chat.completion.chunk') => ({
  id: `chatcmpl-${answerIdOf(ex)}`,
  object,
  created: Math.floor((ex.answer.cached ?? ex).at / 1000),
  model: answerModelOf(ex),
  system_fingerprint: ex.answer.fingerprint ?? null,
  provider: answererOf(ex),
})

/** One write per batch; chunks share a prefix built once. */
export class StreamEncoder implements Encoder {
  readonly contentType = EVENT_STREAM
  readonly #ex: Exchange
  readonly #compat: ChatCompat
  /** Empty until the first chunk. */
  #head = ''
  #prefix = ''
  /** Choices by index; sparse. */
  readonly #choices: StreamedChoice[] = []
  readonly #oneCall: boolean

  constructor(ex: Exchange, compat: ChatCompat) {
    this.#ex = ex
    this.#compat = compat
    this.#oneCall = wantsFunctionCall(ex.chat)
  }

  write(batch: readonly Event[]): string | undefined {
    let out = ''
    for (const event of batch) {
      if (!('choice' in event)) continue
      if (this.#head === '') this.#open()
      out += this.#chunk(event)
    }
    return out === '' ? undefined : out
  }

  end(): string {
    this.#ex.meter.complete(false)
    return `${this.#last()}data: [DONE]\n\n`
  }

  fail(error: GatewayError): string {
    this.#ex.meter.complete(true)
    const left = this.#choices.map((streamed, choice) => this.#delta(choice, streamed.leftOfText())).join('')
    return `${left}data: ${JSON.stringify(openAiError(error))}\n\n${this.#last()}data: [DONE]\n\n`
  }

  #open(): void {
    const head = JSON.stringify(headOf(this.#ex, 'chat.completion.chunk'))
    this.#head = `data: ${head.slice(0, -1)},"choices":[`
    this.#prefix = `${this.#head}{"index":`
  }

  /** The chunk before the terminator: no choice, but usage and routing (docs/contract.md#chat-answers). */
  #last(): string {
    if (this.#head === '') this.#open()
    const usage = JSON.stringify(usageOf(this.#ex))
    return `${this.#head}],"usage":${usage},"metadata":${JSON.stringify(metadataOf(this.#ex))}}\n\n`
  }

  #chunk(event: ChoiceEvent): string {
    const { choice } = event
    this.#choices[choice] ??= new StreamedChoice()
    const streamed = this.#choices[choice]
    if (event.type === 'text' && streamed.isPlainText) {
      streamed.characters += event.text.length
      return `${this.#prefix}${choice},"delta":{"content":${JSON.stringify(event.text)}},"finish_reason":null}]}\n\n`
    }
    if (event.type === 'finish') {
      const left = this.#delta(choice, streamed.left())
      // C5: also for an empty answer; clients reject a message without a role.
      const role = streamed.begin() ? '"role":"assistant","content":null' : ''
      const reason = finishOf(event.reason, this.#oneCall)
      return `${left}${this.#prefix}${choice},"delta":{${role}},"finish_reason":"${reason}"}]}\n\n`
    }
    if (event.type === 'logprobs') return this.#rated(event, streamed)
    const members = streamed.add(event) ? this.#members(event, streamed) : ''
    // Held content is charged from now on, so the stream must begin here, even if it fails later.
    if (!streamed.begin()) return this.#delta(choice, members)
    if (event.type === 'text') return this.#delta(choice, `"role":"assistant",${members}`)
    return this.#delta(choice, `"role":"assistant","content":null${members && `,${members}`}`)
  }

  /** A chunk of log probabilities only: their text has its own chunk. */
  #rated({ choice, of, tokens }: LogprobsEvent, streamed: StreamedChoice): string {
    const begun = streamed.begin() ? this.#delta(choice, '"role":"assistant","content":null') : ''
    const logprobs = JSON.stringify({ content: null, refusal: null, [of]: tokens })
    return `${begun}${this.#prefix}${choice},"delta":{},"logprobs":${logprobs},"finish_reason":null}]}\n\n`
  }

  #members(event: ChoiceEvent, streamed: StreamedChoice): string {
    if (event.type === 'reasoning') return reasoningDelta(event, streamed, this.#compat)
    return this.#oneCall && event.type === 'tool' ? functionCallDelta(event) : deltaOf(event)
  }

  /** The chunk of a delta with `members`; '' when these are empty. */
  #delta(choice: number, members: string): string {
    return members && `${this.#prefix}${choice},"delta":{${members}},"finish_reason":null}]}\n\n`
  }
}

/** The members of a delta, without braces; '' for events held until the end. */
function deltaOf(event: ChoiceEvent): string {
  switch (event.type) {
    case 'text':
      return `"content":${JSON.stringify(event.text)}`
    case 'refusal':
      return `"refusal":${JSON.stringify(event.text)}`
    case 'phase':
      return `"phase":"${event.phase}"`
    case 'tool':
      return `"tool_calls":[${JSON.stringify(toolDelta(event))}]`
    case 'image':
      return `"images":${JSON.stringify([image(event.url)])}`
    default:
      return ''
  }
}

/** The text, for display, and the same text as a detail for replay. */
function reasoningDelta(event: ReasoningEvent, streamed: StreamedChoice, compat: ChatCompat): string {
  const text = JSON.stringify(event.text)
  const shown = compat.reasoning_content ? `"reasoning":${text},"reasoning_content":${text}` : `"reasoning":${text}`
  return event.format === undefined
    ? shown
    : `${shown},"reasoning_details":[${JSON.stringify(streamed.pieceOf(event))}]`
}

function toolDelta({ index, id, name, args = '', custom, signature }: ToolEvent): object {
  const extra = signature === undefined ? {} : { extra_content: { vendor: { thought_signature: signature } } }
  if (custom && id === undefined) return { index, custom: { input: args }, ...extra }
  if (custom) return { index, id, type: 'custom', custom: { name, input: args }, ...extra }
  if (id === undefined) return { index, function: { arguments: args }, ...extra }
  return { index, id, type: 'function', function: { name, arguments: args }, ...extra }
}

const image = (url: string) => ({ type: 'image_url', image_url: { url } })

/** Folds the events and writes one body. */
export class WholeEncoder implements Encoder {
  readonly contentType = 'application/json'
  readonly #ex: Exchange
  readonly #compat: ChatCompat
  readonly #fold = new Fold()

  constructor(ex: Exchange, compat: ChatCompat) {
    this.#ex = ex
    this.#compat = compat
  }

  write(batch: readonly Event[]): undefined {
    this.#fold.add(batch)
  }

  end(): string {
    this.#ex.meter.complete(false)
    const { id, object, created, model, system_fingerprint, provider } = headOf(this.#ex, 'chat.completion')
    return JSON.stringify({
      id,
      object,
      created,
      model,
      system_fingerprint,
      provider,
      choices: choicesOf(this.#fold.choices, this.#compat, wantsFunctionCall(this.#ex.chat)),
      usage: usageOf(this.#ex),
      metadata: metadataOf(this.#ex),
    })
  }

  fail(): undefined {}
}

const some = <T>(list: readonly T[]): readonly T[] | undefined => (list.length === 0 ? undefined : list)

/** Without the holes of choices that emitted nothing. */
const present = (sparse: object[]): object[] => Object.values(sparse)

/** Nearly every answer has exactly one choice. */
const choicesOf = (choices: readonly Choice[], compat: ChatCompat, oneCall: boolean): object[] =>
  choices.length === 1
    ? [choiceOf(choices[0]!, 0, compat, oneCall)]
    : present(choices.map((choice, index) => choiceOf(choice, index, compat, oneCall)))

/** Finish reason of a choice; `oneCall`: the answer has the legacy form. */
const finishOf = (reason: FinishReason, oneCall: boolean): string =>
  oneCall && reason === 'tool_calls' ? 'function_call' : reason

function choiceOf(choice: Choice, index: number, compat: ChatCompat, oneCall: boolean): object {
  const { refusal, reasoning, details, tools, items, images, sources, native } = choice
  const message = {
    role: 'assistant',
    content: choice.sawText || tools.length === 0 ? choice.text : null,
    refusal: refusal === '' ? undefined : refusal,
    reasoning: reasoning === '' ? undefined : reasoning,
    reasoning_content: reasoning === '' || !compat.reasoning_content ? undefined : reasoning,
    reasoning_details: some(details),
    tool_calls: tools.length === 0 || oneCall ? undefined : present(tools.map(toolCallOf)),
    function_call: oneCall ? functionCallOf(tools) : undefined,
    content_before_tool_calls: choice.textBeforeTools ? true : undefined,
    phase: items.at(-1)?.phase,
    message_items: some(items),
    images: some(images)?.map(image),
    annotations: some(sources)?.map(source => annotation(source, choice.text.length)),
    provider_native_blocks: some(native),
  }
  return { index, message, logprobs: choice.logprobs, finish_reason: finishOf(choice.finish ?? 'stop', oneCall) }
}

function toolCallOf({ id, name, args, custom, signature }: Choice['tools'][number]): object {
  const extra = signature === undefined ? {} : { extra_content: { vendor: { thought_signature: signature } } }
  if (custom) return { id, type: 'custom', custom: { name, input: args }, ...extra }
  return { id, type: 'function', function: { name, arguments: args === '' ? '{}' : args }, ...extra }
}
