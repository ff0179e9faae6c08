/** The log port over pino: one JSON object per line on standard error, without secrets. */
import { type DestinationStream, destination, pino, stdTimeFunctions } from 'pino'
import type { Log } from '../core/ports.ts'
import { cleanText, redactValue } from '../secrets/redact.ts'

/** The values of `GATEWAY_LOG_LEVEL`. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
/** The lowest level that is written; `silent` writes nothing. */
export type LogLevel = (typeof logLevels)[number]

/** The level of `GATEWAY_LOG_LEVEL`; `info` when unset. Throws a RangeError for an unknown level. */
export function logLevel(value: string | undefined): LogLevel {
  const level = logLevels.find(known => known === (value || 'info'))
  if (!level) throw new RangeError(`GATEWAY_LOG_LEVEL is "${value}"; it must be one of ${logLevels.join(', ')}`)
  return level
}

/** Writes synchronously, so that the last line before a crash is written. Every line has the fields of `base`. */
export function createLog(
  level: LogLevel,
  to: DestinationStream = destination({ dest: 2, sync: true }),
  base: object | null = null,
): Log {
  const logger = pino(
    {
      level,
      base,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      // Errors arrive redacted; pino's serializer would parse them again and drop fields.
      serializers: { err: err => err },
    },
    to,
  )
  const write =
    (at: 'debug' | 'info' | 'warn' | 'error') =>
    (fields: object, message: string): void => {
      if (logger.isLevelEnabled(at)) logger[at](redactValue(fields), cleanText(message))
    }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}
