/** Events of an answer. A reply is a stream of events; a whole reply is the same stream read to its end. */
import type { GatewayError } from '../lib/error.ts'
import type { Requests } from './money.ts'
import type { Usage } from './usage.ts'

/** Finish reasons as clients see them; every wire maps its own to these. */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter'

/** Purpose of a text: thinking aloud between tool calls, or the answer itself. */
export type Phase = 'commentary' | 'final_answer'

/** Fields of a provider's wire that no event has, for clients of the same wire. */
export interface WireFields {
  readonly wire: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** One piece of a choice's reasoning. Pieces with one `block` number belong together, in order. */
export interface ReasoningEvent {
  type: 'reasoning'
  choice: number
  text: string
  /** Which dialect may replay it: `anthropic-claude-v1`, `google-gemini-v1`, …; unset for plain text. */
  format?: string
  block?: number
  /** Sealed for the provider that made it (see `seal`). */
  signature?: string
  /** Sealed ciphertext of a block whose text is hidden. */
  data?: string
}

/** A piece of a tool call. `id` and `name` come once, on the first piece; `args` is a fragment of JSON text. */
export interface ToolEvent {
  type: 'tool'
  choice: number
  index: number
  id?: string
  name?: string
  /** The group of a tool that its client grouped, where the provider supports groups. */
  namespace?: string
  args?: string
  /** On every piece of a call of a custom tool, whose `args` are any text. */
  custom?: true
  signature?: string
  /** Once, on the first piece. */
  own?: WireFields
}

/** A cited address. `start` and `end`: the part of the choice's text that cites it, in UTF-16 units, both or neither. */
export interface SourceEvent {
  type: 'source'
  choice: number
  url: string
  title?: string
  start?: number
  /** Exclusive. */
  end?: number
}

/** Log probabilities of tokens already emitted, in OpenAI's form. */
export interface LogprobsEvent {
  type: 'logprobs'
  choice: number
  of: 'content' | 'refusal'
  tokens: readonly unknown[]
}

/** The provider's description of the images that it makes. */
export interface ImageDescription {
  readonly background?: string | undefined
  readonly output_format?: string | undefined
  readonly quality?: string | undefined
  readonly size?: string | undefined
}

/**
 * A piece of an answer, the same for all wires: decoders of provider wires make them, encoders of client wires write
 * them.
 */
export type Event =
  /** `fingerprint`: the provider's `system_fingerprint`. */
  | { type: 'start'; id?: string; model?: string; fingerprint?: string }
  | { type: 'text'; choice: number; text: string }
  /** `wire`: that whose clients read the same text in the answer's ending. */
  | { type: 'refusal'; choice: number; text: string; wire?: string }
  | ReasoningEvent
  | ToolEvent
  | LogprobsEvent
  | { type: 'image'; choice: number; url: string }
  | SourceEvent
  /** The text that follows is an item of its own, of this phase. */
  | { type: 'phase'; choice: number; phase: Phase }
  /** Ends a block of text. `citations`: in the provider's form, for clients of the same wire. */
  | { type: 'passage'; wire: string; citations: readonly unknown[] }
  /** A content block with no OpenAI form, replayed only to `provider`. */
  | { type: 'native'; choice: number; provider: string; block: Record<string, unknown> }
  /** `ending`: what the provider's wire says beyond the reason. `free`: nothing is charged for the answer. */
  | { type: 'finish'; choice: number; reason: FinishReason; ending?: WireFields; free?: true }
  /**
   * Cumulative: merged by maximum, never summed. `billed` is what stands for it in the price, where that is less.
   * `estimated` where our own measure stands in for the provider's. `read`: bytes of text that the provider's own tools
   * have read since the last report of the prompt, which is to come with the next one. `written`: bytes of the answer
   * that have come, and are in none of its events. `requests`: those that the report is the sum of, where those are
   * several.
   */
  | {
      type: 'usage'
      usage: Partial<Usage>
      billed?: Partial<Usage>
      estimated?: true
      read?: number
      written?: number
      requests?: Requests
    }
  /** The provider's count so far. A later count may be lower; `usage` at the end replaces it. */
  | { type: 'progress'; usage: Partial<Usage> }
  /** The tier that the provider really served. */
  | { type: 'tier'; tier: string }
  /** Whole answer of a non-chat operation; `bytes` is JSON that need not be made again, a string once it was kept. */
  | { type: 'result'; value?: unknown; bytes?: Buffer | string }
  /** A preview of an image of the answer; `index` counts them from 0. */
  | { type: 'partial_image'; index: number; b64: string; description: ImageDescription }
  /** A piece of an answer that is neither text nor JSON. `contentType` stands on the first. */
  | { type: 'bytes'; bytes: Buffer; contentType?: string }
  /**
   * The answer is not whole: what stands at `url` is read next by the same decoder, a JSON body after `afterMs`, or the
   * bytes of a file. Always the last event of an answer; the terminal keeps it to itself.
   */
  | { type: 'wait'; url: string; afterMs: number }
  | { type: 'fetch'; url: string }
  /** The provider has begun work that outlives the request. */
  | { type: 'job'; upstreamId: string; state: 'queued' | 'in_progress'; progress?: number }
  | { type: 'error'; error: GatewayError }

/** Usage counted by the provider, or by the gateway in its place. */
export type UsageReport = Extract<Event, { type: 'usage' }>
/** An event of one choice of an answer. */
export type ChoiceEvent = Extract<Event, { choice: number }>

/** True for events that a client can see: from the first of them on, nothing may be repeated by another provider. */
export const isContent = (event: Event): boolean =>
  event.type !== 'start' &&
  event.type !== 'usage' &&
  event.type !== 'progress' &&
  event.type !== 'tier' &&
  event.type !== 'phase' &&
  event.type !== 'passage' &&
  event.type !== 'logprobs' &&
  event.type !== 'error'
