/** The demo provider: a simulated upstream on a loopback port, so that a demo request takes the whole real path. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Operation, type SimulatedAnswer, SimulatedError, type Simulation } from '../core/operation.ts'
import { Router } from '../core/router.ts'
import { serveSessions } from './sessions.ts'

const BASE = '/v1'
/** Simulations distinguish methods themselves. */
const ANY = 'ANY'

/** A running demo provider. */
export interface Demo {
  /** Base address for the demo manifest. */
  readonly url: string
  close(): Promise<void>
}

/** Serves the simulated answers of the operations. */
export function startDemo(operations: Iterable<Operation>): Promise<Demo> {
  const all = [...operations]
  // Operations may share simulations.
  const byPath = new Map(all.flatMap(({ demo = {} }) => Object.entries(demo)))
  const simulations = new Router<Simulation>()
  for (const [path, simulate] of byPath) simulations.add(ANY, BASE + path, simulate)
  const server: Server = createServer((req, res) => void serve(simulations, req, res))
  const sessions = all.flatMap(({ demoSession = {} }) => Object.entries(demoSession))
  const endSessions = serveSessions(server, new Map(sessions.map(([path, session]) => [BASE + path, session])))
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      const close = () =>
        new Promise<void>(done => {
          endSessions()
          server.close(() => done())
          server.closeAllConnections()
        })
      resolve({ url: `http://127.0.0.1:${port}${BASE}`, close })
    })
  })
}

async function serve(simulations: Router<Simulation>, req: IncomingMessage, res: ServerResponse): Promise<void> {
  try {
    const match = simulations.match(ANY, pathOf(req))
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    if (!match || 'allow' in match) return refuse(res, 404, `the demo provider does not serve ${req.url}`)
    const body = Buffer.concat(chunks)
    const contentType = req.headers['content-type'] ?? ''
    const json: unknown = contentType.startsWith('application/json') ? JSON.parse(body.toString('utf8')) : undefined
    const { method = '' } = req
    send(res, match.value({ json, body, contentType, method, params: match.params }))
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : 'the request body is not valid'
    refuse(res, 400, message, thrown instanceof SimulatedError ? thrown : undefined)
  }
}

const pathOf = ({ url = '' }: IncomingMessage): string => url.replace(/\?.*/s, '')

type ErrorFields = Record<'param' | 'code', string | null>

function refuse(
  res: ServerResponse,
  status: number,
  message: string,
  { param = null, code = null }: Partial<ErrorFields> = {},
): void {
  sendJson(res, status, { error: { message, type: 'invalid_request_error', param, code } })
}

function send(res: ServerResponse, answer: SimulatedAnswer): void {
  if ('json' in answer) {
    sendJson(res, 200, answer.json)
    return
  }
  res.writeHead(200, { 'content-type': answer.contentType })
  for (const chunk of answer.chunks) res.write(chunk)
  res.end()
}

function sendJson(res: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body)
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  res.end(text)
}
