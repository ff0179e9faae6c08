/** Errors of ElevenLabs. */
import { isObject, refusals, textIn, upstreamError } from '../../src/plugin.ts'

/** `{detail: {status, message}}`; a quota that is spent comes with 401, too. Other forms are read as those of others. */
export const error = refusals((body, target, status) => {
  const detail = isObject(body) ? body.detail : undefined
  if (!isObject(detail)) return undefined
  const code = textIn(detail.status)
  const reported = { message: textIn(detail.message) ?? code ?? 'unknown error', code }
  return upstreamError(code === 'quota_exceeded' ? 402 : status, reported, target.credential?.secret)
})
