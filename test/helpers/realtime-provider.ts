/** A WebSocket provider of sessions that follows a script and records what it receives. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Scope } from './child.ts'

export interface SentEvent {
  readonly type: string
  readonly event_id?: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into events as they are
  readonly [name: string]: any
}

/** One session at the provider. */
export interface ProviderSession {
  readonly ws: WebSocket
  readonly socket: Socket
  readonly headers: IncomingMessage['headers']
  readonly url: string
  /** Events of the gateway, except its initial update. */
  readonly got: SentEvent[]
  /** The gateway's initial update. */
  first: SentEvent | undefined
  send(event: object): void
}

export interface RealtimeProvider {
  readonly url: string
  readonly sessions: ProviderSession[]
  /** Handles each event; by default answers responses with text, and echoes updates. */
  take: (session: ProviderSession, event: SentEvent) => void
  /** Rejects upgrades with this answer: all, or those with one secret. */
  refuse: { status: number; body: string; secret?: string } | undefined
  /** The first event of a session. */
  created: (session: ProviderSession) => object | undefined
  last(): ProviderSession
}

const usageOf = (input: number, output: number, audio = 0) => ({
  total_tokens: input + output,
  input_tokens: input,
  output_tokens: output,
  input_token_details: { text_tokens: input, audio_tokens: 0, cached_tokens: 0 },
  output_token_details: { text_tokens: output - audio, audio_tokens: audio },
})

let count = 0
/** The events of one response: 10 tokens read, 5 written. */
export function respond(session: ProviderSession, changes: object = {}, text = 'Hello'): string {
  const id = `resp_${++count}`
  session.send({ type: 'response.created', response: { id, status: 'in_progress', model: 'rt-1' } })
  session.send({ type: 'response.output_text.delta', response_id: id, delta: text })
  session.send({
    type: 'response.done',
    response: { id, status: 'completed', model: 'rt-1', output: [{}], usage: usageOf(10, 5), ...changes },
  })
  return id
}

export function usualTake(session: ProviderSession, event: SentEvent): void {
  if (event.type === 'session.update') {
    session.send({ type: 'session.updated', session: { model: 'rt-1', ...event.session } })
  } else if (event.type === 'response.create') respond(session)
}

export const usualCreated = () => ({
  type: 'session.created',
  session: {
    ...{ id: 'sess_up', object: 'realtime.session', type: 'realtime', model: 'rt-1' },
    audio: { input: { turn_detection: { type: 'server_vad', create_response: true } }, output: { voice: 'a' } },
  },
})

export async function realtimeProvider(t: Scope): Promise<RealtimeProvider> {
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false })
  const server = createServer((_req, res) => res.writeHead(404).end())
  const sessions: ProviderSession[] = []
  const provider: RealtimeProvider = {
    url: '',
    sessions,
    take: usualTake,
    refuse: undefined,
    created: usualCreated,
    last: () => sessions.at(-1)!,
  }
  server.on('upgrade', (req: IncomingMessage, socket: Socket, head: Buffer) => {
    const { status, body = '', secret } = provider.refuse ?? {}
    if (status && (secret === undefined || req.headers.authorization === `Bearer ${secret}`)) {
      socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`)
      return
    }
    sockets.handleUpgrade(req, socket, head, ws => {
      const session: ProviderSession = {
        ...{ ws, socket, headers: req.headers, url: req.url ?? '', got: [], first: undefined },
        send: event => ws.send(JSON.stringify(event)),
      }
      sessions.push(session)
      ws.on('error', () => undefined)
      ws.on('message', (data: Buffer) => {
        const event = JSON.parse(data.toString('utf8')) as SentEvent
        if (session.first) session.got.push(event)
        else session.first = event
        provider.take(session, event)
      })
      const created = provider.created(session)
      if (created) session.send(created)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const ws of sockets.clients) ws.terminate()
    server.close()
  })
  return Object.assign(provider, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` })
}
