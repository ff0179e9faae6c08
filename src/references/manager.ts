/** Sends requests to secret managers, says why they fail, and finds fields of secrets. */
import { readFile } from 'node:fs/promises'
import { type Env, systemErrorText } from '../config/reference.ts'
import { ProxyError } from '../egress/tunnel.ts'
import { isObject, jsonIn } from '../json/json.ts'
import type { Egress } from '../lib/egress.ts'
import { didYouMean } from '../lib/nearest.ts'
import { cleanText } from '../secrets/redact.ts'
import type { CredentialSources } from '../upstream/auth/credential-sources.ts'
import type { callEndpoint, EndpointAnswer, EndpointRequest } from '../upstream/auth/endpoint.ts'

const DEADLINE_MS = 10_000
const MAX_REASON_CHARACTERS = 300

/** Environment of the process, and its connections. */
export interface ManagerContext {
  readonly env: Env
  /** Home folder of the user. */
  readonly home: string
  readonly call: typeof callEndpoint
  readonly egress?: () => Egress | undefined
}

/** Where keys and tokens of clouds are found. */
export const sourcesOf = ({ env, home, call, egress }: ManagerContext): CredentialSources => ({
  env,
  home,
  call,
  egress: egress?.(),
  async read(path) {
    try {
      return await readFile(path, 'utf8')
    } catch (thrown) {
      const { code } = thrown as NodeJS.ErrnoException
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
      throw new Error(`the file "${path}" cannot be read: ${systemErrorText(thrown)}`)
    }
  },
})

/** Resolves with a secret by its id: a text, or its fields. Rejects with an Error that shows nothing of a secret. */
export type ReadSecret = (id: string) => Promise<string | Readonly<Record<string, unknown>>>

/** The answer of a manager called `who`. Rejects with an Error that says why there is none. */
export async function answerOf(
  who: string,
  { call }: ManagerContext,
  url: string,
  request: Omit<EndpointRequest, 'deadlineMs'> = {},
): Promise<EndpointAnswer> {
  try {
    return await call(url, { ...request, deadlineMs: DEADLINE_MS })
  } catch (thrown) {
    const { status, cause } = thrown as { status?: number; cause?: { code?: unknown } }
    const place = `${who} at ${new URL(url).origin}`
    if (status === 504) throw new Error(`${place} did not answer within ${DEADLINE_MS / 1000} s`)
    const { code } = cause ?? {}
    const why = cause instanceof ProxyError ? cause.message : code
    throw new Error(`${place} cannot be reached${typeof why === 'string' ? `: ${why}` : ''}`)
  }
}

/** Says that a manager refused a request, with its reason, which may repeat a secret that it got. */
export function managerError(who: string, status: number, reason: unknown): Error {
  const text = typeof reason === 'string' ? cleanText(reason).trim().replace(/\s+/g, ' ') : ''
  return new Error(`${who} answered with status ${status}${text && `: ${text.slice(0, MAX_REASON_CHARACTERS)}`}`)
}

/** The text of a secret's field, or of the whole secret where `field` is undefined. Throws an Error. */
export function textOf(secret: Awaited<ReturnType<ReadSecret>>, field: string | undefined): string {
  if (field === undefined) {
    if (typeof secret === 'string') return secret
    throw new Error('it has fields; name one behind "#"')
  }
  const fields = typeof secret === 'string' ? fieldsIn(secret) : secret
  if (!Object.hasOwn(fields, field))
    throw new Error(`it has no field "${field}"${didYouMean(field, Object.keys(fields))}`)
  const value = fields[field]
  if (value === null || value === '') throw new Error(`its field "${field}" is empty`)
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function fieldsIn(text: string): Readonly<Record<string, unknown>> {
  const value = jsonIn(text)
  if (isObject(value)) return value
  // The text itself is a secret.
  throw new Error('it is no JSON object, so that it has no fields; leave out "#" and what follows')
}
