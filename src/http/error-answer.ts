/** Answers outside every chain: the request never became an exchange, or is no HTTP. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Codec } from '../core/codec.ts'
import type { Route, Snapshot } from '../core/snapshot.ts'
import { errorBody, errors, type GatewayError } from '../lib/error.ts'
import { requestId } from '../lib/id.ts'
import { endLast, rawAnswer, stopListening } from './closing.ts'
import type { Connection } from './connection.ts'
import type { InFlightRequest } from './in-flight-requests.ts'
import type { IncomingRequest } from './incoming-request.ts'

/** `last` ends the connection in any case. `cors` are headers that every answer at the path gets. */
export function refuse(
  req: IncomingRequest,
  res: ServerResponse,
  error: GatewayError,
  { snapshot, last, cors }: { snapshot: Snapshot; last: boolean; cors: readonly string[] },
): void {
  const codec = codecOf({ method: req.method, path: pathOf(req) }, snapshot)
  const body = JSON.stringify(codec?.error(error, req.headers) ?? errorBody(error))
  const id = idOf(req)
  const idHeader = codec?.idHeader?.(req.headers)
  const close = last || (error.status !== 404 && error.status !== 405) || hasBody(req)
  res.writeHead(error.status, [
    ...Object.entries(error.headers).flat(),
    ...cors,
    ...['x-request-id', id, 'content-type', 'application/json'],
    ...(idHeader === undefined ? [] : [idHeader, id]),
    ...['content-length', String(Buffer.byteLength(body))],
    ...(close ? ['connection', 'close'] : []),
  ])
  if (close) endLast(req, res, body)
  else res.end(body)
}

/** Answers a preflight. */
export function permit(req: IncomingRequest, res: ServerResponse, headers: readonly string[], last: boolean): void {
  const close = last || hasBody(req)
  res.writeHead(204, [...headers, 'x-request-id', idOf(req), ...(close ? ['connection', 'close'] : [])])
  if (close) endLast(req, res, '')
  else res.end()
}

/** The request's target without its query, as it was sent: still percent-encoded. */
export const pathOf = ({ url = '' }: IncomingMessage): string => {
  const mark = url.indexOf('?')
  return mark < 0 ? url : url.slice(0, mark)
}

function idOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id']
  return requestId(typeof given === 'string' ? given : undefined)
}

/** Served to clients of every wire, which its codec tells apart by their headers. */
const CATALOGUE = '/v1/models'

/** Finds the codec that clients of the path read, for any error. Also covers paths below that of an endpoint. */
function codecOf(
  { method = '', path }: { method?: string | undefined; path: string },
  snapshot: Snapshot,
): Codec | undefined {
  const match = snapshot.match(method, path)
  if (match && 'value' in match) return match.value.endpoint.codec
  const isHere = ({ endpoint }: Route) => {
    const literal = endpoint.path.replace(/\/?\{.*/, '')
    return path === literal || path.startsWith(`${literal}/`)
  }
  const below = snapshot.routes().find(isHere) ?? snapshot.routes().find(({ endpoint }) => endpoint.path === CATALOGUE)
  return below?.endpoint.codec
}

/** Decides by headers, since `complete` is false before the first read even without a body. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/** The connection of a request that could not be read. */
interface Broken {
  readonly socket: Socket
  readonly connection: Connection
  /** Requests of the connection that are being served. */
  readonly requests: readonly InFlightRequest[]
}

/**
 * Answers what the HTTP parser could not read, and closes the connection. Earlier valid requests of the connection are
 * answered first. `cors`: headers of every answer.
 */
export function answerClientError(
  cause: NodeJS.ErrnoException,
  { socket, connection, requests }: Broken,
  cors: readonly string[],
): void {
  // The last request may be what is broken.
  if (connection.isOver() && requests.every(({ sink }) => sink.received)) return
  if (!socket.writable || cause.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const error = errorOf(cause)
  const broken = requests.find(({ sink }) => !sink.received)
  if (broken?.guard.reading) {
    stopListening(socket)
    broken.sink.endConnection()
    broken.guard.abort(error)
  } else if (broken) socket.destroy()
  else {
    connection.end()
    connection.afterAnswers(() => {
      stopListening(socket)
      if (socket.writable) refuseAtSocket(socket, error, cors)
    })
  }
}

function refuseAtSocket(socket: Socket, error: GatewayError, cors: readonly string[]): void {
  const headers = ['x-request-id', requestId(undefined), ...cors, 'content-type', 'application/json']
  socket.end(rawAnswer(error.status, headers, JSON.stringify(errorBody(error))), () => socket.destroy())
}

function errorOf({ code }: NodeJS.ErrnoException): GatewayError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return errors.badRequest('The request headers are larger than 16 KiB.').with({ status: 431 })
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return errors.badRequest('The extensions of a chunk are too large.').with({ status: 413 })
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return errors.requestTimeout()
    default:
      return errors.badRequest('The request is not valid HTTP/1.1.')
  }
}
