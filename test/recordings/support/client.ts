/** What clients of all wires share: what they ask for, what they have seen, and how they read. */
import type { Gateway } from '../../helpers/gateway.ts'
import type { Answer, Draft, Raw, Usage } from './answer.ts'
import { eventsIn } from './sse.ts'

export interface Asked {
  readonly model: string
  readonly isStream: boolean
  readonly tools: readonly string[]
  readonly searches: boolean
  readonly schema: object | undefined
}
export interface Seen {
  readonly status: number
  readonly answer: Answer
  /** Whether it says that it failed. */
  readonly failed: boolean
  /** Of its row; undefined where the answer failed. */
  readonly requestId: string | undefined
}
export interface Client {
  readonly name: string
  ask(gateway: Gateway, asked: Asked): Promise<Seen>
}

export const parameters = { type: 'object', additionalProperties: true }
export const words = 'Please answer as the recording does.'

/** What the answer is, whole or as events; `[DONE]` is left out. */
export async function piecesOf(response: Response): Promise<Raw[]> {
  const text = await response.text()
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return [JSON.parse(text)]
  return eventsIn(text).flatMap(({ data }) => (data === '[DONE]' ? [] : [JSON.parse(data)]))
}

export const usageOf = (input: number, output: number, rest: Partial<Usage>): Usage => {
  const { cached = 0, written = 0, written1h = 0, reasoning = 0 } = rest
  return { input, output, cached, written, written1h, reasoning }
}

export const seen = (response: Response, draft: Draft, metadata: Raw): Seen => {
  const answer = draft.answer()
  const requestId = answer.finish ? (metadata?.request_id ?? metadata?.requestId) : undefined
  return { status: response.status, answer, failed: draft.failed, requestId }
}
