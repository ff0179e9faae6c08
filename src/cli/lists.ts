/** Lists as arguments: entries with commas between them. */

/** `a,b` → `['a', 'b']`; nothing at all is a list of nothing. */
export const listOf = (text: string): string[] =>
  text
    .split(',')
    .map(entry => entry.trim())
    .filter(Boolean)

/** The same, or `all`. */
export const listOrAll = (text: string): string | string[] => (text === 'all' ? text : listOf(text))
