/** Names of documents in the wire's alphabet: letters, digits, single spaces, hyphens, () and []. */

const MAX_NAME = 200

/** A name without its extension; for `UniqueNames`. */
export function documentName(filename: string, count: number): string {
  const plain = filename
    .replace(/\.[^.]*$/, '')
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
  const words = plain.replace(/[^a-zA-Z0-9\-()[\]]+/g, ' ').trim()
  const suffix = count === 1 ? '' : ` (${count})`
  return (words || 'document').slice(0, MAX_NAME - suffix.length).trimEnd() + suffix
}
