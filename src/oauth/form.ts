/** Bodies and queries of `application/x-www-form-urlencoded`, in which nothing stands twice. */
import type { Exchange } from '../core/exchange.ts'
import { oauthError } from './errors.ts'

export type Fields = ReadonlyMap<string, string>

const MAX_FIELDS = 50
const FORM = /^application\/x-www-form-urlencoded\s*(;.*)?$/i

/** Throws 400 for a parameter that stands twice: two readers could take different ones. */
export function fieldsOf(text: string, repeatable: readonly string[] = []): URLSearchParams {
  const found = new URLSearchParams(text)
  const names = [...found.keys()]
  if (names.length > MAX_FIELDS) throw oauthError(400, 'invalid_request', 'There are too many parameters.')
  const twice = names.find((name, at) => names.indexOf(name) !== at && !repeatable.includes(name))
  if (twice === undefined) return found
  throw oauthError(400, 'invalid_request', `The parameter ${twice.slice(0, 50)} stands twice.`)
}

/** Of a request whose endpoint reads raw bodies. */
export async function formOf(ex: Exchange, repeatable?: readonly string[]): Promise<URLSearchParams> {
  if (!FORM.test(ex.header('content-type') ?? '')) {
    throw oauthError(400, 'invalid_request', 'The body must be application/x-www-form-urlencoded.')
  }
  return fieldsOf(((await ex.body()) as Buffer).toString('utf8'), repeatable)
}
