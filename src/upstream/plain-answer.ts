/** Answers about jobs without a content coding. */

import type { JobAnswer } from '../core/ports.ts'
import { errors } from '../lib/error.ts'
import { decoded, isCoded, type PlainSource } from './encoding.ts'

/** Headers that count packed bytes. */
const OF_PACKED: ReadonlySet<string> = new Set(['content-encoding', 'content-length', 'accept-ranges'])

/**
 * Returns the answer with decoded bytes. An unknown coding, or a part of a coded answer, ends it with a GatewayError.
 */
export function plainAnswer(answer: JobAnswer): JobAnswer {
  const coding = answer.header('content-encoding')
  if (!isCoded(coding)) return answer
  try {
    if (answer.status === 206) throw errors.invalidAnswer('a part of it is compressed', 206)
    const packed = answer.chunks[Symbol.asyncIterator]()
    const take = async () => {
      const { done, value } = await packed.next()
      return done ? undefined : [value]
    }
    const source = decoded({ take }, coding)
    return {
      status: answer.status,
      masked: answer.masked,
      header: name => (OF_PACKED.has(name) ? undefined : answer.header(name)),
      chunks: chunksOf(source),
      destroy: () => {
        source.free?.()
        answer.destroy()
      },
    }
  } catch (thrown) {
    answer.destroy()
    throw thrown
  }
}

/** Yields each batch as one chunk: a write to a client costs more than a copy. */
export async function* chunksOf(source: PlainSource): AsyncGenerator<Buffer> {
  try {
    for (let batch = await source.take(); batch; batch = await source.take()) {
      yield batch.length === 1 ? batch[0]! : Buffer.concat(batch)
    }
  } finally {
    source.free?.()
  }
}
