/** An answer outside every chain: the request never became an exchange. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { errorBody, type GatewayError } from '../core/error.ts'
import { requestId } from '../core/id.ts'
import type { Snapshot } from '../core/snapshot.ts'
import { endLast } from './closing.ts'

/** `last` ends the connection in any case. */
export function refuse(
  req: IncomingMessage,
  res: ServerResponse,
  error: GatewayError,
  snapshot: Snapshot,
  last: boolean,
): void {
  const body = JSON.stringify(bodyOf(error, snapshot.match('POST', (req.url ?? '').replace(/\?.*/s, ''))))
  const close = last || (error.status !== 404 && error.status !== 405) || hasBody(req)
  const given = req.headers['x-request-id']
  res.writeHead(error.status, {
    ...error.headers,
    'x-request-id': requestId(typeof given === 'string' ? given : undefined),
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(close && { connection: 'close' }),
  })
  if (close) endLast(req, res, body)
  else res.end(body)
}

/** In the form that clients of the path read, whatever they did wrong. */
function bodyOf(error: GatewayError, route: ReturnType<Snapshot['match']>): unknown {
  return route && 'endpoint' in route ? route.endpoint.codec.error(error) : errorBody(error)
}

/** Asked before anything is read: a request is never complete then, though nothing else belongs to it. */
const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
