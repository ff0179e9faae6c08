/** Names and values of the GenAI semantic conventions, version 1.45. */
import type { Exchange } from '../core/exchange.ts'
import type { Cost } from '../core/money.ts'
import { labelsOf } from '../core/offer.ts'
import type { Usage } from '../core/usage.ts'
import { Values } from './histograms.ts'

/** Nano-USD per USD. */
const NANO = 1e9
/** Longest text of a prompt that a span carries, in characters. */
const MAX_PROMPT_CHARACTERS = 16_384

/** Names what was asked for; the same on every client wire. */
export const operationOf = ({ endpoint }: Exchange): string => endpoint.operation?.name ?? endpoint.name

/** Undefined for a request that succeeded, and for one whose client has left. */
export function errorTypeOf({ answer }: Exchange): string | undefined {
  if (answer.outcome !== 'error') return undefined
  return answer.failure?.code ?? String(answer.failure?.status ?? '_OTHER')
}

/** Undefined where nothing was used, or its price is unknown. */
export const usdOf = (usage: Usage, cost: Cost | null | undefined): number | undefined =>
  cost && Object.keys(usage).length > 0 ? Number(cost.total) / NANO : undefined

/** The prompt of a chat, without media and tool calls; undefined for requests without messages. */
export function contentOf(request: object | undefined): string | undefined {
  if (!request || !('messages' in request) || !Array.isArray(request.messages)) return undefined
  let left = MAX_PROMPT_CHARACTERS
  const written: object[] = []
  for (const { role, content } of request.messages) {
    if (left <= 0) break
    const texts: string[] = typeof content === 'string' ? [content] : textsOf(content)
    const parts = texts.map(text => {
      const kept = text.slice(0, Math.max(0, left))
      left -= text.length
      return { type: 'text', content: kept }
    })
    written.push({ role, parts })
  }
  return JSON.stringify(written)
}

const textsOf = (content: unknown): string[] =>
  Array.isArray(content) ? content.flatMap(({ text }) => (typeof text === 'string' ? [text] : [])) : []

/** Bounds that the conventions advise. */
const durations = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const tokens = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]
const firstTokens = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/** Counts requests that have ended; those that reached no provider have none of these metrics. */
export function genAiMetrics(): { readonly all: readonly Values[]; measure(ex: Exchange): void } {
  const usage = new Values('gen_ai.client.token.usage', '{token}', 'Tokens of a request.', tokens)
  const duration = new Values('gen_ai.client.operation.duration', 's', 'Time of a request.', durations)
  const firstToken = new Values('gen_ai.server.time_to_first_token', 's', 'Time to the first content.', firstTokens)
  return {
    all: [usage, duration, firstToken],
    measure(ex) {
      const { target, timings } = ex
      if (!target || ex.answer.cached || timings.sent === 0) return
      const { provider, model } = labelsOf(target.mapping)
      const operation = operationOf(ex)
      const error = errorTypeOf(ex)
      duration.record(Math.max(0, timings.end - timings.start) / 1000, [
        operation,
        provider,
        model,
        'error.type',
        error,
      ])
      if (ex.streaming && timings.firstToken > 0) {
        firstToken.record((timings.firstToken - timings.start) / 1000, [operation, provider, model])
      }
      const { prompt, completion } = ex.usage
      const type = 'gen_ai.token.type'
      if (prompt !== undefined) usage.record(prompt, [operation, provider, model, type, 'input'])
      if (completion !== undefined) usage.record(completion, [operation, provider, model, type, 'output'])
    },
  }
}
