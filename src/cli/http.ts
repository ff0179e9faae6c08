/** HTTP over node:http alone: loading a larger client would take longer than most commands. */
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import { Readable } from 'node:stream'
import { errorCode, Failure } from './io.ts'

const SILENCE_MS = 60_000

/** A multipart body of known length. An error of its pieces fails the call. */
export interface FormContent {
  readonly contentType: string
  readonly size: number
  pieces(): AsyncIterable<Buffer>
}

/** A request; `body` and `form` exclude each other. */
export interface HttpCall {
  readonly method: 'GET' | 'POST'
  readonly headers?: Record<string, string>
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent instead of `body`, while it is read. */
  readonly form?: FormContent
  /** Time without data after which the call fails; a minute by default. */
  readonly silenceMs?: number | undefined
}

/** Resolves with the head of the answer; rejects with the system's error. Uses one connection per call. */
export async function call(
  url: URL,
  { method, headers, body, form, silenceMs = SILENCE_MS }: HttpCall,
): Promise<IncomingMessage> {
  const { request } = url.protocol === 'https:' ? await import('node:https') : await import('node:http')
  const payload = body === undefined ? undefined : JSON.stringify(body)
  const options: RequestOptions = {
    method,
    agent: false,
    timeout: silenceMs,
    headers: {
      ...headers,
      ...(payload !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(payload),
      }),
      ...(form && { 'content-type': form.contentType, 'content-length': form.size }),
    },
  }
  return new Promise((resolve, reject) => {
    const outgoing = request(url, options, resolve)
    outgoing.once('timeout', () => outgoing.destroy(new Error(`${url.origin} was silent for ${silenceMs / 1000} s`)))
    // An error answer may arrive before everything is sent, and the connection then break: that is no failure of the
    // call.
    outgoing.on('error', reject)
    if (form) sendForm(form, outgoing)
    else outgoing.end(payload)
  })
}

function sendForm(form: FormContent, outgoing: ClientRequest): void {
  const pieces = Readable.from(form.pieces())
  pieces.once('error', error => outgoing.destroy(error))
  outgoing.once('close', () => pieces.destroy())
  pieces.pipe(outgoing)
}

/** The body to its end, as UTF-8; rejects when the connection breaks. */
export async function readText(response: IncomingMessage): Promise<string> {
  response.setEncoding('utf8')
  let text = ''
  for await (const chunk of response as AsyncIterable<string>) text += chunk
  return text
}

const MAX_DOWNLOAD_BYTES = 64 * 1024 * 1024

/** The body of an answer with status 200, as UTF-8. Throws a Failure that shows no query and no part of the body. */
export async function download(url: URL, key?: string): Promise<string> {
  const where = `${url.origin}${url.pathname}`
  try {
    const response = await call(url, { method: 'GET', ...(key && { headers: { authorization: `Bearer ${key}` } }) })
    const pieces: Buffer[] = []
    let size = 0
    for await (const piece of response as AsyncIterable<Buffer>) {
      size += piece.length
      if (size > MAX_DOWNLOAD_BYTES) throw new Failure(`${where} has more than ${MAX_DOWNLOAD_BYTES / 1024 / 1024} MiB`)
      pieces.push(piece)
    }
    if (response.statusCode === 200) return Buffer.concat(pieces).toString()
    throw new Failure(`${where} answered with status ${response.statusCode}; 200 is needed`)
  } catch (thrown) {
    if (thrown instanceof Failure) throw thrown
    throw new Failure(`${where} cannot be reached: ${errorCode(thrown) ?? 'the connection broke'}`)
  }
}

/**
 * `127.0.0.1:9901`, `http://gateway:9901/` → a URL; throws a Failure that shows `example` for anything else. An address
 * with a password is refused without being repeated.
 */
export function parseUrl(text: string, example: string): URL {
  const full = /^[a-z]+:\/\//i.test(text) ? text : `http://${text}`
  const url = URL.canParse(full) ? new URL(full) : undefined
  if (url?.password) throw new Failure(`an address must not contain a password; write it like ${example}`)
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url
  throw new Failure(`"${text}" is not an http(s) address; write it like ${example}`)
}

const UNREACHABLE = new Set('ECONNREFUSED ECONNRESET ETIMEDOUT EHOSTUNREACH ENETUNREACH ENOTFOUND EAI_AGAIN'.split(' '))

/** Whether a system error means that no server is reachable. */
export const unreachable = (thrown: unknown): boolean => UNREACHABLE.has(errorCode(thrown) ?? '')
