/** Answers what the HTTP parser could not read, in the interface's shape, and closes the connection. */
import type { Socket } from 'node:net'
import { errorBody, errors, type GatewayError } from '../lib/error.ts'
import { requestId } from '../lib/id.ts'
import { rawAnswer, stopListening } from './closing.ts'
import type { Connection } from './connection.ts'
import type { InFlightRequest } from './in-flight-requests.ts'

/** Where it came. */
interface Broken {
  readonly socket: Socket
  readonly connection: Connection
  /** Requests of the connection that are being served. */
  readonly requests: readonly InFlightRequest[]
}

/** Earlier valid requests of the connection are answered first. `cors`: headers of every answer. */
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
      if (socket.writable) refuse(socket, error, cors)
    })
  }
}

function refuse(socket: Socket, error: GatewayError, cors: readonly string[]): void {
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
