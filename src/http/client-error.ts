/** Answers what the HTTP parser could not read, in the interface's shape, and closes the connection. */
import type { Socket } from 'node:net'
import { errorBody, errors, type GatewayError } from '../core/error.ts'
import { requestId } from '../lib/id.ts'
import { isClosing, stopListening } from './closing.ts'
import type { InFlightRequest } from './in-flight-requests.ts'
import { rawAnswer } from './raw-answer.ts'

/** `requests` are those of this connection: earlier valid ones are answered first. `cors`: headers of every answer. */
export function answerClientError(
  cause: NodeJS.ErrnoException,
  socket: Socket,
  requests: readonly InFlightRequest[],
  cors: readonly string[],
): void {
  if (isClosing(socket)) return
  if (!socket.writable || cause.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  stopListening(socket)
  const error = errorOf(cause)
  const broken = requests.find(({ sink }) => !sink.received)
  if (broken?.guard.reading) {
    broken.sink.endConnection()
    broken.guard.abort(error)
  } else if (broken) socket.destroy()
  else if (requests.length > 0) afterAll(requests, () => socket.writable && refuse(socket, error, cors))
  else refuse(socket, error, cors)
}

/** Calls back when all of these have ended. Requests before what is broken were whole. */
export function afterAll(requests: readonly InFlightRequest[], then: () => void): void {
  let left = requests.length
  for (const { sink } of requests) {
    sink.onEnd(() => {
      if (--left === 0) then()
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
