/** Errors of ElevenLabs. */
import { errorReader, isObject, objectIn, textIn, upstreamError } from '../../src/plugin.ts'
import { findingsError } from '../shared/findings.ts'

/** `{detail: {status, message}}`; a spent quota also has status 401. Other bodies are read in the common dialects. */
export const error = errorReader((body, target, status) => {
  const detail = objectIn(body).detail
  if (!isObject(detail)) return findingsError(body, target, status)
  const code = textIn(detail.status)
  const reported = { message: textIn(detail.message) ?? code ?? 'unknown error', code }
  return upstreamError(code === 'quota_exceeded' ? 402 : status, reported, target)
})
