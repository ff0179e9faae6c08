/** Names of documents in the wire's alphabet: letters, digits, single spaces, hyphens, () and []. */

const MAX_NAME = 200
/** Characters that are read of a name: more than it has, since marks and spaces in a row are left out. */
const READ_LIMIT = 4 * MAX_NAME

/** A name without its extension; for `UniqueNames`. */
export function documentName(filename: string, count: number): string {
  const dot = filename.lastIndexOf('.')
  const plain = filename
    .slice(0, dot < 0 ? READ_LIMIT : Math.min(dot, READ_LIMIT))
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
  const words = plain.replace(/[^a-zA-Z0-9\-()[\]]+/g, ' ').trim()
  const suffix = count === 1 ? '' : ` (${count})`
  return (words || 'document').slice(0, MAX_NAME - suffix.length).trimEnd() + suffix
}
