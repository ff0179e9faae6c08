/** Reads a JSON request body: bounded, valid UTF-8, bounded in shape, free of prototype keys. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import secureJson from 'secure-json-parse'
import { errors } from '../core/error.ts'
import { scanShape } from './scan.ts'

/** Throws 400, 413, 415 or 499 as a GatewayError. `res` is told to go on when the client waits for a 100. */
export async function readJson(req: IncomingMessage, res: ServerResponse, limit: number): Promise<unknown> {
  checkHeaders(req, limit)
  if (/^100-continue$/i.test(req.headers.expect ?? '')) res.writeContinue()
  const body = await readBytes(req, limit)
  const start = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0
  if (!isUtf8(body)) throw errors.invalidJson('it is not valid UTF-8.')
  scanShape(body)
  try {
    return secureJson.parse(body.toString('utf8', start), { protoAction: 'remove', constructorAction: 'remove' })
  } catch (cause) {
    throw errors.invalidJson(body.length === 0 ? 'it is empty.' : describe(cause))
  }
}

function checkHeaders(req: IncomingMessage, limit: number): void {
  const type = req.headers['content-type']
  if (
    !/^application\/json\s*(;\s*charset="?utf-8"?\s*)?(;.*)?$/i.test(type ?? '') ||
    /charset=(?!"?utf-8)/i.test(type ?? '')
  ) {
    throw errors.unsupportedMediaType(type)
  }
  const encoding = req.headers['content-encoding']
  if (encoding && encoding !== 'identity') throw errors.unsupportedEncoding(encoding)
  if (Number(req.headers['content-length'] ?? 0) > limit) throw errors.tooLarge(limit)
}

function readBytes(req: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    req.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) {
        req.pause()
        req.removeAllListeners('data')
        reject(errors.tooLarge(limit))
      } else chunks.push(chunk)
    })
    req.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    const gone = () => {
      if (!req.complete) reject(errors.aborted())
    }
    req.on('error', gone)
    req.on('close', gone)
  })
}

/** The parser's own words, without the piece of the body that it quotes. */
const describe = (cause: unknown): string =>
  cause instanceof SyntaxError
    ? `${cause.message.replace(/,? (\.{3})?"[\s\S]*"(\.{3})? is not valid JSON$/, '')}.`
    : 'it cannot be read.'
