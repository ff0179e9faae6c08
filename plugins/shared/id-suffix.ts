/** Letters and digits that ids of one answer end with. */

/** Length of generated ids, in characters. */
const LENGTH = 24
/** Characters of the provider's id that are read: others than letters and digits are left out. */
const READ = 64

/** The last letters and digits of a provider's id, for ids that are made of it. */
export const idSuffix = (id: string): string =>
  id
    .slice(-READ)
    .replace(/[^A-Za-z0-9]/g, '')
    .slice(-LENGTH)
