/** Ids that are made of other ids. */
import { createHash } from 'node:crypto'

/** Length of generated ids, in characters. */
const ID_CHARACTERS = 24
/** Characters of the provider's id that are read: others than letters and digits are left out. */
const READ_CHARACTERS = 64

/** The last letters and digits of a provider's id, for ids that are made of it. */
export const idSuffix = (id: string): string =>
  id
    .slice(-READ_CHARACTERS)
    .replace(/[^A-Za-z0-9]/g, '')
    .slice(-ID_CHARACTERS)

/** The id of a tool call in the place of one that a wire does not take. Equal texts give equal ids. */
export const hashedCallId = (text: string): string =>
  `call_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
