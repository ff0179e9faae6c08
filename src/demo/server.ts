/** The demo provider: a simulated upstream on a loopback port, so that a demo request takes the whole real path. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answer, type DemoAnswer, type DemoRequest } from './answer.ts'
import { type DemoInputs, DemoRefusal, embed } from './embed.ts'

export interface Demo {
  /** Base address for the demo manifest. */
  readonly url: string
  close(): Promise<void>
}

export function startDemo(): Promise<Demo> {
  const server: Server = createServer((req, res) => void serve(req, res))
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      const close = () =>
        new Promise<void>(done => {
          server.close(() => done())
          server.closeAllConnections()
        })
      resolve({ url: `http://127.0.0.1:${port}/v1`, close })
    })
  })
}

async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
  try {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const serveAt = routes[req.url ?? '']
    if (!serveAt) return refuse(res, 404, `the demo has no ${req.url}`)
    serveAt(res, JSON.parse(Buffer.concat(chunks).toString('utf8')))
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : 'unreadable request'
    refuse(res, 400, message, thrown instanceof DemoRefusal ? thrown : undefined)
  }
}

type ErrorFields = Record<'param' | 'code', string | null>

const routes: Readonly<Record<string, (res: ServerResponse, body: unknown) => void>> = {
  '/v1/chat/completions'(res, body) {
    const request = body as DemoRequest & { model: string }
    const reply = answer(request)
    if (request.stream) stream(res, request.model, reply)
    else send(res, 200, whole(request.model, reply))
  },
  '/v1/embeddings': (res, body) => send(res, 200, embed(body as DemoInputs & { model: string })),
}

function refuse(
  res: ServerResponse,
  status: number,
  message: string,
  { param = null, code = null }: Partial<ErrorFields> = {},
) {
  send(res, status, { error: { message, type: 'invalid_request_error', param, code } })
}

function send(res: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body)
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  res.end(text)
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

function stream(res: ServerResponse, model: string, reply: DemoAnswer): void {
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  const write = (choices: object[], more: object = {}) =>
    res.write(
      `data: ${JSON.stringify({ id: 'demo', object: 'chat.completion.chunk', created: 0, model, choices, ...more })}\n\n`,
    )
  const delta = (piece: object, finish: string | null = null) =>
    write([{ index: 0, delta: piece, finish_reason: finish }])
  delta({ role: 'assistant', content: reply.tool ? null : '' })
  if (reply.reasoning) delta({ reasoning: reply.reasoning })
  for (const word of reply.text.match(/\S+\s*/g) ?? []) delta({ content: word })
  if (reply.source) delta({ annotations: annotations(reply) })
  if (reply.tool) delta({ tool_calls: toolCalls(reply) })
  delta({}, reply.finish)
  write([], { usage: usageOf(reply) })
  res.end('data: [DONE]\n\n')
}
