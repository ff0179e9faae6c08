/** Resolves the id or name that an operator gives. */
import { errors } from '../../lib/error.ts'

/** A record that an id or a name refers to. */
export interface Named {
  readonly id: string
  readonly name: string
}
/** A project, and the name of its organization. */
interface NamedProject extends Named {
  readonly organization: string
}

export const MAX_LISTED_NAMES = 20

/** For errors: name and id. */
export const showNamed = ({ id, name }: Named): string => `${name} (id ${id})`
/** For errors: name, id and organization. */
export const showProject = ({ id, name, organization }: NamedProject): string =>
  `${name} (id ${id}, of ${organization})`

/**
 * Returns the one of `found` that `wanted` means: ids precede names, which may be ambiguous. Undefined when nothing was
 * found; throws a 404 when several were.
 */
export function chosen<T extends Named>(
  what: string,
  wanted: string,
  found: readonly T[],
  show: (one: T) => string,
): T | undefined {
  const one = found.length === 1 ? found[0] : found.find(({ id }) => id === wanted)
  if (one || found.length === 0) return one
  throw errors.notFound(
    `"${wanted}" names ${found.length} ${what}s; give the id of one: ${found.map(show).join(', ')}.`,
  )
}

/** A 404 that lists the first existing records, at most `MAX_LISTED_NAMES`. */
export function unknownName<T extends Named>(
  what: string,
  wanted: string,
  known: readonly T[],
  show: (one: T) => string,
) {
  const there = known.length > 0 ? `There are: ${known.map(show).join(', ')}.` : 'There are none yet.'
  return errors.notFound(`There is no ${what} "${wanted}". ${there}`)
}

/** A 404 for a record identified by id, in the named organization if there is one. */
export const noSuch = (what: string, id: string, organization?: string) =>
  errors.notFound(
    `There is no ${what} with the id "${id}"${organization === undefined ? '' : ` in "${organization}"`}.`,
  )

/** The 404 for an unknown key. */
export const noSuchKey = (id: string) =>
  errors.notFound(`There is no key with the id "${id}". List the keys to see their ids.`)
