/** Errors of servers that check requests by a schema: FastAPI's 422, which Mistral, ElevenLabs and many others send. */
import { isObject, type Json, readProviderError, type Target, textIn, upstreamError } from '../../src/plugin.ts'

/** A validator's findings become the message, the first field the param. Undefined for a body without any. */
export function findingsError(body: unknown, target: Target, status: number) {
  const findings = findingsIn(body)
  const reported = readProviderError(body)
  if (findings.length === 0 || !reported) return undefined
  const [first] = findings
  return upstreamError(
    status,
    {
      ...reported,
      message: findings.map(({ field, text }) => (field ? `${field}: ${text}` : text)).join('; '),
      code: reported.code ?? first?.kind,
      param: reported.param ?? first?.field,
    },
    target,
  )
}

interface Finding {
  readonly field: string | undefined
  readonly text: string
  readonly kind: string | undefined
}

/** `detail` of a 422, in `message` or at the top: `[{type, loc: ["body", "user"], msg}]`. */
function findingsIn(body: unknown): Finding[] {
  if (!isObject(body)) return []
  const detail = isObject(body.message) ? body.message.detail : body.detail
  if (!Array.isArray(detail)) return []
  return detail.flatMap((entry: unknown) => {
    const text = isObject(entry) ? textIn(entry.msg) : undefined
    if (!isObject(entry) || text === undefined) return []
    return [{ field: pathOf(entry), text, kind: textIn(entry.type) }]
  })
}

/** `["body", "messages", 0, "content"]` → `messages[0].content`. */
function pathOf({ loc }: Json): string | undefined {
  if (!Array.isArray(loc)) return undefined
  let path = ''
  for (const step of loc[0] === 'body' ? loc.slice(1) : loc) {
    if (typeof step === 'number') path += `[${step}]`
    else path += path === '' ? String(step) : `.${step}`
  }
  return path || undefined
}
