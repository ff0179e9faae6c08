/** Values as the ledger's functions read them. */

/** How `JSON.stringify` writes characters that PostgreSQL's text cannot hold: NUL, and halves of pairs. */
const ESCAPED = /\\u(?:0000|d[89a-f])/
const NUL = /\0/g

/** The JSON of a value whose texts are well-formed: odd characters are replaced, since one may not fail a batch. */
export function jsonOf(value: unknown): string {
  const json = JSON.stringify(value)
  if (!ESCAPED.test(json)) return json
  return JSON.stringify(value, (_, one: unknown) => (typeof one === 'string' ? wellFormed(one) : one))
}

const wellFormed = (text: string): string => Buffer.from(text, 'utf8').toString('utf8').replace(NUL, '\ufffd')
