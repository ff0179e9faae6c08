/** Bodies of requests to the admin listener. */
import type { IncomingMessage } from 'node:http'
import { errors } from '../lib/error.ts'

/** Reads a whole body. Throws 413 for one of more than `limit` bytes. */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    // Keep the socket open after a refusal, or the caller could not read it.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > limit) break
      chunks.push(chunk)
    }
  } catch {
    throw errors.aborted()
  }
  if (size > limit) throw errors.tooLarge(limit)
  return Buffer.concat(chunks)
}
