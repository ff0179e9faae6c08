/** Removes secrets from log fields, by field name and by the form of the value. */
import { MASK, maskAll } from '../lib/mask.ts'
import { isSecretName, redactText } from '../lib/redact.ts'

const MAX_DEPTH = 6

/** Also removes the credentials in use, which may have any form. */
export const cleanText = (text: string): string => redactText(maskAll(text))

/**
 * A copy of `value` that is safe to log: secret fields and values masked, errors as plain objects with their causes,
 * bigints as strings, nesting cut at six levels.
 */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (typeof value === 'bigint') return value.toString()
  if (typeof value !== 'object' || value === null) return value
  if (depth >= MAX_DEPTH) return '[deeper]'
  if (value instanceof Error) return redactError(value, depth)
  if (value instanceof Date) return value
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (Array.isArray(value)) return value.map(item => redact(item, depth + 1))
  const clean: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(value)) {
    const secret = field !== undefined && field !== null && isSecretName(name)
    clean[name] = secret ? MASK : redact(field, depth + 1)
  }
  return clean
}

/** Other fields of foreign errors may hold requests, headers and bodies. */
const ERROR_FIELDS = ['code', 'status', 'syscall', 'file', 'line', 'column'] as const

function redactError(error: Error, depth: number): object {
  const clean: Record<string, unknown> = { type: error.name, message: cleanText(error.message) }
  for (const name of ERROR_FIELDS) {
    const field: unknown = Reflect.get(error, name)
    if (typeof field === 'string' || typeof field === 'number') clean[name] = redact(field)
  }
  if (error.stack !== undefined) clean.stack = cleanText(error.stack)
  if (error.cause !== undefined) clean.cause = redact(error.cause, depth + 1)
  return clean
}
