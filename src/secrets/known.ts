/** Keeps the secrets of the process's files, and masks of the credentials in use, to find them in what is shown. */
import { MASK, Mask, MIN_SECRET_CHARACTERS, type SentSecrets } from './mask.ts'

const MAX_MASKS = 256

/** Once they are as many as may be, the most recently used is the last. */
const masks = new Map<string, Mask>()
/** Known secrets by their source. */
const known = new Map<string, readonly string[]>()

/** Keeps the secrets of one source, such as the configuration, out of logs; they replace its earlier ones. */
export function knowSecrets(source: string, secrets: Iterable<string>): void {
  known.set(
    source,
    [...new Set(secrets)].filter(secret => secret.length >= MIN_SECRET_CHARACTERS),
  )
}

/**
 * The mask of a credential and of what its provider gets beside it, kept for the next answer and for the log. Undefined
 * when all is too short.
 */
export function maskOf(secret: string, sent?: SentSecrets): Mask | undefined {
  if (secret.length < MIN_SECRET_CHARACTERS && sent === undefined) return undefined
  const key = sent === undefined ? secret : `${secret}\0${sent.key}`
  const found = masks.get(key)
  if (found && masks.size < MAX_MASKS) return found
  const mask = found ?? new Mask(secret, sent)
  masks.delete(key)
  const [oldest] = masks.keys()
  if (masks.size >= MAX_MASKS) masks.delete(oldest!)
  masks.set(key, mask)
  return mask
}

/** `text` without any secret that is known. Costs a search for each: not for answers. */
export function maskAll(text: string): string {
  if (text.length < MIN_SECRET_CHARACTERS) return text
  let clean = text
  for (const secrets of known.values()) for (const secret of secrets) clean = clean.replaceAll(secret, MASK)
  for (const mask of masks.values()) clean = mask.strict(clean)
  return clean
}
