/** The simulated provider's chat answers in OpenAI's form. */
import type { Simulation } from '../../core/operation.ts'
import { answer, type DemoAnswer, type DemoRequest } from './simulated.ts'

/** The path of OpenAI's chat completions API. */
export const demo: Readonly<Record<string, Simulation>> = {
  '/chat/completions'({ json }) {
    const request = json as DemoRequest & { model: string }
    const reply = answer(request)
    if (!request.stream) return { json: whole(request.model, reply) }
    return { contentType: 'text/event-stream', chunks: stream(request.model, reply) }
  },
}

const usageOf = ({ usage }: DemoAnswer) => ({
  prompt_tokens: usage.prompt,
  completion_tokens: usage.completion,
  total_tokens: usage.prompt + usage.completion,
  completion_tokens_details: { reasoning_tokens: usage.reasoning },
})
const toolCalls = ({ tool }: DemoAnswer) => {
  const call = { index: 0, id: 'call_demo_1' }
  if (!tool) return undefined
  return ['input' in tool ? { ...call, type: 'custom', custom: tool } : { ...call, type: 'function', function: tool }]
}
const annotations = ({ source }: DemoAnswer) => source && [{ type: 'url_citation', url_citation: source }]

function whole(model: string, reply: DemoAnswer): object {
  const message = {
    role: 'assistant',
    content: reply.tool ? null : reply.text,
    ...(reply.reasoning === '' ? {} : { reasoning: reply.reasoning }),
    tool_calls: toolCalls(reply),
    annotations: annotations(reply),
  }
  return {
    id: 'demo',
    object: 'chat.completion',
    created: 0,
    model,
    choices: [{ index: 0, message, finish_reason: reply.finish }],
    usage: usageOf(reply),
  }
}

function* stream(model: string, reply: DemoAnswer): Generator<string> {
  const write = (choices: object[], more: object = {}) =>
    `data: ${JSON.stringify({ id: 'demo', object: 'chat.completion.chunk', created: 0, model, choices, ...more })}\n\n`
  const delta = (piece: object, finish: string | null = null) =>
    write([{ index: 0, delta: piece, finish_reason: finish }])
  yield delta({ role: 'assistant', content: reply.tool ? null : '' })
  if (reply.reasoning) yield delta({ reasoning: reply.reasoning })
  for (const [word] of reply.text.matchAll(/\S+\s*/g)) yield delta({ content: word })
  if (reply.source) yield delta({ annotations: annotations(reply) })
  if (reply.tool) yield delta({ tool_calls: toolCalls(reply) })
  yield delta({}, reply.finish)
  yield write([], { usage: usageOf(reply) })
  yield 'data: [DONE]\n\n'
}
