/** Resolves the id or name that an operator gives. */
import { errors } from '../../lib/error.ts'

/** A record that an id or a name refers to. */
export interface Named {
  readonly id: string
  readonly name: string
}
/** A project, and the name of its organization. */
export interface NamedProject extends Named {
  readonly organization: string
}

/** Existing records listed in an error. */
export const MAX_NAMED = 20

/** For errors: name and id. */
export const showNamed = ({ id, name }: Named): string => `${name} (id ${id})`
/** For errors: name, id and organization. */
export const showProject = ({ id, name, organization }: NamedProject): string =>
  `${name} (id ${id}, of ${organization})`

/**
 * The one of `found` that `wanted` means: ids precede names, which may be ambiguous. Throws a 404 that lists at most
 * `MAX_NAMED` of `all`.
 */
export function chosen<T extends Named>(
  what: string,
  wanted: string,
  found: readonly T[],
  all: () => readonly T[],
  show: (one: T) => string,
): T {
  const one = found.length === 1 ? found[0] : found.find(({ id }) => id === wanted)
  if (one) return one
  if (found.length > 1) {
    throw errors.notFound(
      `"${wanted}" names ${found.length} ${what}s; give the id of one: ${found.map(show).join(', ')}.`,
    )
  }
  const known = all()
  const there = known.length > 0 ? `There are: ${known.map(show).join(', ')}.` : 'There are none yet.'
  throw errors.notFound(`There is no ${what} "${wanted}". ${there}`)
}

/** A 404 for a record identified by id, in the named organization if there is one. */
export const noSuch = (what: string, id: string, organization?: string) =>
  errors.notFound(
    `There is no ${what} with the id "${id}"${organization === undefined ? '' : ` in "${organization}"`}.`,
  )

/** The 404 for an unknown key. */
export const noSuchKey = (id: string) =>
  errors.notFound(`There is no key with the id "${id}". List the keys to see their ids.`)
