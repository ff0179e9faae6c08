/** Refuses what `node:http` lets through although two servers could read it in two ways. */
import type { IncomingMessage } from 'node:http'
import { errors, GatewayError } from '../lib/error.ts'

const MAX_HEADERS = 100
const MAX_TARGET_BYTES = 8192

/** Throws a GatewayError whose connection must be closed. */
export function checkRequest(req: IncomingMessage): void {
  const { rawHeaders, url = '', httpVersion } = req
  if (httpVersion !== '1.1' && httpVersion !== '1.0') throw errors.badRequest('The request is not HTTP/1.1.')
  if (rawHeaders.length > MAX_HEADERS * 2) throw tooManyHeaders()
  if (url.length > MAX_TARGET_BYTES) throw targetTooLong()
  if (url[0] !== '/' || url[1] === '/' || url.includes('\\')) {
    throw errors.badRequest('The request target must be a path that starts with one "/".')
  }
  checkDuplicates(req)
  const coding = req.headers['transfer-encoding']
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion === '1.0')) {
    throw errors.badRequest('Transfer-Encoding must be "chunked", on HTTP/1.1.')
  }
}

/** Refuses two hosts or none, and two different credentials of one kind, as ambiguous. */
function checkDuplicates({ rawHeaders: raw, headers, httpVersion }: IncomingMessage): void {
  let host: string | undefined
  let authorization: string | undefined
  let apiKey: string | undefined
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at]!
    const value = raw[at + 1]!
    switch (name.length) {
      case 4:
        if (name.toLowerCase() !== 'host') break
        if (host !== undefined) throw errors.badRequest('The request has two Host headers.')
        host = value
        break
      case 9:
        if (name.toLowerCase() !== 'x-api-key') break
        if (apiKey !== undefined && apiKey !== value) throw errors.ambiguousCredentials()
        // Node has joined two of them.
        if (apiKey !== undefined) headers['x-api-key'] = value
        apiKey = value
        break
      case 13:
        if (name.toLowerCase() !== 'authorization') break
        if (authorization !== undefined && authorization !== value) throw errors.ambiguousCredentials()
        authorization = value
        break
    }
  }
  if (host === undefined && httpVersion === '1.1') throw errors.badRequest('The request has no Host header.')
}

const tooManyHeaders = () =>
  new GatewayError({
    status: 431,
    type: 'invalid_request_error',
    code: 'too_many_headers',
    message: `The request has more than ${MAX_HEADERS} headers.`,
  })

const targetTooLong = () =>
  new GatewayError({
    status: 414,
    type: 'invalid_request_error',
    code: 'uri_too_long',
    message: `The request target is longer than ${MAX_TARGET_BYTES} bytes.`,
  })

/** Whether `checkRequest` accepts a request. */
export function isSound(req: IncomingMessage): boolean {
  try {
    checkRequest(req)
    return true
  } catch {
    return false
  }
}

/** Refuses every expectation but `100-continue`. */
export const expectation = (): GatewayError =>
  new GatewayError({
    status: 417,
    type: 'invalid_request_error',
    code: 'expectation_failed',
    message: 'The Expect header must be "100-continue".',
  })
