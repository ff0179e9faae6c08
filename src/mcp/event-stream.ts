/** The HTTP+SSE transport of 2024-11-05: a stream names an address, and carries the answers to what is posted there. */

import { codes } from '../codecs/json-rpc.ts'
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { MessageStream, Principal, Services, StreamOwner } from '../core/ports.ts'
import type { Reply } from '../core/reply.ts'
import { errors } from '../lib/error.ts'
import { rpcError } from './message.ts'

const COMMENT = ': \n\n'

const ownerOf = (principal: Principal): StreamOwner => ({
  tenant: principal.orgId,
  key: principal.session?.id ?? principal.keyId,
})

/** Opens a stream; its client posts to `path`, which is relative because clients refuse another origin. */
export function openStream(ex: Exchange, { streams }: Services, path: string): Reply {
  if (!ex.caller.principal) throw errors.noCredentials()
  if (!streams) {
    const message = 'A gateway with workers does not serve the HTTP+SSE transport. Use Streamable HTTP.'
    throw rpcError(405, message, { code: codes.server, id: null }, { allow: 'POST' })
  }
  const stream = streams.open(ownerOf(ex.caller.principal), ex.snapshot.mcp.streams)
  ex.answer.endsOnDrain = true
  ex.signal.listen(() => stream.end())
  return { status: 200, headers: ['mcp-session-id', stream.id], events: eventsOf(stream, path) }
}

async function* eventsOf(stream: MessageStream, path: string): AsyncGenerator<readonly Event[]> {
  try {
    yield bytesOf(`event: endpoint\ndata: ${path}?session=${stream.id}\n\n`)
    for (let messages = await stream.next(); messages; messages = await stream.next()) {
      const texts = messages.map(message => `event: message\ndata: ${message}\n\n`)
      yield bytesOf(texts.join('') || COMMENT)
    }
  } finally {
    stream.end()
  }
}

const bytesOf = (text: string): readonly Event[] => [
  { type: 'bytes', bytes: Buffer.from(text), contentType: 'text/event-stream' },
]

/** The stream of a message; undefined without one. Throws 404 for a stream that has ended, 403 for another key's. */
export function streamOf(ex: Exchange, principal: Principal, { streams }: Services): MessageStream | undefined {
  const id = new URLSearchParams(ex.http.query).get('session')
  if (id === null) return undefined
  const stream = streams?.find(id)
  if (!stream) {
    const message = 'This node has no such stream: it has ended, or another node has it. Use Streamable HTTP.'
    throw rpcError(404, message, { code: codes.unauthorized, id: null })
  }
  if (stream.owner.key === ownerOf(principal).key) return stream
  throw rpcError(403, 'The stream of this session was opened with another key.', { code: codes.unauthorized, id: null })
}
