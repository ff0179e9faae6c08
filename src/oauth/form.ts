/** Parses bodies and queries of `application/x-www-form-urlencoded`, and refuses repeated parameters. */
import type { Exchange } from '../core/exchange.ts'
import { oauthError } from './errors.ts'

const MAX_FIELDS = 50
const FORM = /^application\/x-www-form-urlencoded\s*(;.*)?$/i

/** Throws 400 for a repeated parameter, of which two parsers could use different values. */
export function fieldsOf(text: string, repeatable: readonly string[] = []): URLSearchParams {
  const found = new URLSearchParams(text)
  const names = [...found.keys()]
  if (names.length > MAX_FIELDS)
    throw oauthError(400, 'invalid_request', `There are more than ${MAX_FIELDS} parameters.`)
  const repeated = names.find((name, at) => names.indexOf(name) !== at && !repeatable.includes(name))
  if (repeated === undefined) return found
  throw oauthError(400, 'invalid_request', `The parameter ${repeated.slice(0, 50)} is repeated.`)
}

/** The form in the body; for endpoints that read raw bodies. Throws 400 for another content type. */
export async function formOf(ex: Exchange, repeatable?: readonly string[]): Promise<URLSearchParams> {
  if (!FORM.test(ex.header('content-type') ?? '')) {
    throw oauthError(400, 'invalid_request', 'The body must be application/x-www-form-urlencoded.')
  }
  return fieldsOf(((await ex.input.read()) as Buffer).toString('utf8'), repeatable)
}
