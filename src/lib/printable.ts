/** Text that is safe on a terminal. */

/**
 * Removes control characters: names come from databases, files and servers, and must not steer the terminal or break
 * lines.
 */
export const printable = (text: string): string => text.replace(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, ' ')
