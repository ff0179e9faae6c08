/** Converts a provider's error response. */

import type { Target } from '../core/translator.ts'
import type { GatewayError } from '../lib/error.ts'
import type { Mask } from '../secrets/mask.ts'
import { MAX_ERROR_BYTES, upstreamErrorOf } from '../wire/upstream-error.ts'
import type { PlainSource } from './encoding.ts'
import { maskedError } from './masking.ts'
import { retryAfterMs } from './retry-after.ts'

/** The head of a provider's error. */
interface ErrorHead {
  readonly status: number
  readonly header: (name: string) => string | undefined
}

/** The provider's error without the credential, and with the wait that it names. */
export function providerError(
  { status, header }: ErrorHead,
  body: Buffer,
  target: Target,
  mask: Mask | undefined,
): GatewayError {
  const reported = upstreamErrorOf(target, status, body)
  const error = mask ? maskedError(reported, mask) : reported
  const wait = retryAfterMs(header, error.detail ?? error.message)
  return wait === undefined ? error : error.with({ retryAfterMs: wait })
}

/** Adds what comes of an error's body to `into`, up to a bounded length. */
export async function readErrorBody(source: PlainSource, into: Buffer[]): Promise<void> {
  let size = 0
  try {
    for (let batch = await source.take(); batch && size < MAX_ERROR_BYTES; batch = await source.take()) {
      for (const chunk of batch) {
        into.push(chunk)
        size += chunk.length
      }
    }
  } finally {
    source.free?.()
  }
}
