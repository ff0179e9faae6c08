/** Comma-separated lists as arguments. */

/** `a,b` → `['a', 'b']`; an empty text is an empty list. */
export const listOf = (text: string): string[] =>
  text
    .split(',')
    .map(entry => entry.trim())
    .filter(Boolean)

/** The same, or `all`. */
export const listOrAll = (text: string): string | string[] => (text === 'all' ? text : listOf(text))
