/** Answers in Mistral's dialect of chat completions: thinking in signed parts, the service tier in the usage. */
import {
  type Decoder,
  type Event,
  type Frame,
  indexIn,
  isObject,
  type Json,
  jsonIn,
  listIn,
  objectIn,
  type Target,
  textIn,
} from '../../src/plugin.ts'
import { ChatDecoder } from '../shared/chat-completions/decoder.ts'
import { type Signatures, Thinking } from '../shared/chat-completions/thinking.ts'
import { named } from '../shared/tool-name.ts'

/** Marks reasoning details that only this wire can read. */
const FORMAT = 'mistral-thinking-v1'

/** A `ChatDecoder` whose reasoning keeps the signatures of its parts. */
export class MistralDecoder implements Decoder {
  readonly #chat: ChatDecoder
  readonly #thinking: Thinking
  #tier: string | undefined

  /** `choices`: how many were requested. */
  constructor(mode: 'stream' | 'unary', target: Target, choices = 1) {
    this.#chat = new ChatDecoder(mode, target, choices)
    this.#thinking = new Thinking(target, FORMAT)
  }

  get kept(): number {
    return this.#chat.kept
  }

  get done(): boolean {
    return this.#chat.done
  }

  get complete(): boolean {
    return this.#chat.complete
  }

  frame(frame: Frame): Event[] {
    if (this.done) return []
    const { data } = frame
    const events = named(this.#chat.frame(frame))
    // Few frames contain these keys; text cannot, since its quotes are escaped.
    const failed = events.at(-1)?.type === 'error'
    if (failed || (!data.includes('"signature"') && !data.includes('"service_tier"')))
      return this.#thinking.mark(events)
    const chunk = objectIn(jsonIn(data))
    const out = this.#thinking.mark(events, signaturesIn(chunk))
    const tier = tierIn(chunk)
    if (tier !== undefined && tier !== this.#tier) out.push({ type: 'tier', tier })
    this.#tier = tier ?? this.#tier
    return out
  }

  end(): Event[] {
    return this.#thinking.mark(named(this.#chat.end()))
  }
}

function signaturesIn({ choices }: Json): Signatures {
  const all = new Map<number, (string | undefined)[]>()
  listIn(choices).forEach((choice, position) => {
    if (!isObject(choice)) return
    const { index, delta, message } = choice
    const turn = isObject(delta) ? delta : objectIn(message)
    const found: (string | undefined)[] = [undefined]
    for (const part of listIn(turn.content)) {
      if (!isObject(part) || part.type !== 'thinking') continue
      if (hasText(part.thinking)) found.push(undefined)
      if (typeof part.signature === 'string') found[found.length - 1] = part.signature
    }
    all.set(indexIn(index) ?? position, found)
  })
  return all
}

/** Whether the decoder emits a reasoning event for it. */
const hasText = (thinking: unknown): boolean =>
  textIn(thinking) !== undefined || listIn(thinking).some(part => isObject(part) && textIn(part.text) !== undefined)

/** The served tier in the API's terms; undefined for tiers without an equivalent. */
function tierIn({ usage }: Json): string | undefined {
  const tier = objectIn(usage).service_tier
  return tier === 'standard' ? 'default' : tier === 'priority' ? tier : undefined
}
