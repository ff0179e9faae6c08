/** A provider in the test process: gives scripted answers and records its requests. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Scope } from './child.ts'

export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** The body as JSON; undefined for any other. */
  readonly json: unknown
}

/** An object is answered as JSON with 200; a function answers itself. */
export type Answer =
  | { readonly status?: number; readonly json: unknown }
  | { readonly status?: number; readonly type: string; readonly body: string | Buffer }
  | ((res: ServerResponse, got: Received) => unknown)

export interface Scripted {
  /** Including `/v1`. */
  readonly url: string
  readonly got: Received[]
  /** Answers to the next requests, in order; the last one repeats. */
  answers(...next: Answer[]): void
  last(): Received
}

export async function scripted(t: Scope): Promise<Scripted> {
  const got: Received[] = []
  let queue: Answer[] = [{ status: 500, json: { error: { message: 'the test says no answer' } } }]
  const serve = async (req: IncomingMessage, res: ServerResponse) => {
    const received = await receive(req)
    got.push(received)
    const answer = queue.length > 1 ? queue.shift()! : queue[0]!
    if (typeof answer === 'function') {
      await answer(res, received)
      return
    }
    const [type, body] =
      'json' in answer ? ['application/json', JSON.stringify(answer.json)] : [answer.type, answer.body]
    res.writeHead(answer.status ?? 200, { 'content-type': type, 'content-length': Buffer.byteLength(body) })
    res.end(body)
  }
  const server = createServer((req, res) => void serve(req, res).catch(() => res.destroy())).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    got,
    answers(...next) {
      queue = next
    },
    last: () => got.at(-1)!,
  }
}

async function receive(req: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  const { method = '', url: path = '', headers } = req
  const body = Buffer.concat(chunks)
  const json = headers['content-type']?.startsWith('application/json')
    ? (JSON.parse(String(body)) as unknown)
    : undefined
  return { method, path, headers, body, json }
}
