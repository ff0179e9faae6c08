/** Seals values under the master keys, for every store. */

import type { Sealed } from '../core/policy.ts'
import { errors } from '../lib/error.ts'
import { type Keyring, KeyringError } from './keyring.ts'

/** Keyring and clock of a store of sealed values. */
export interface SealingOptions {
  /** Opens the keyring when it is first needed. */
  readonly keyring: () => Keyring
  /** Wall clock, Unix milliseconds. */
  readonly now: () => number
}

/** Turns a KeyringError, which the operator must correct, into a 400. */
export function attempt<T>(work: () => T): T {
  try {
    return work()
  } catch (thrown) {
    throw thrown instanceof KeyringError ? errors.badRequest(`${thrown.message}.`) : thrown
  }
}

/** A secret under the newest master key; undefined when its own key is missing, or it was modified or moved. */
export function resealed(keyring: Keyring, sealed: Sealed, place: string): Sealed | undefined {
  return readable(() => keyring.seal(keyring.open(sealed, place), place))
}

/** Reseals a text of `sealText`. */
export function resealedText(keyring: Keyring, sealed: string, place: string): string | undefined {
  return readable(() => sealText(keyring, openText(keyring, sealed, place), place))
}

function readable<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (thrown) {
    if (!(thrown instanceof KeyringError)) throw thrown
    return undefined
  }
}

/** Version of the master key of a text of `sealText`. */
export const versionOf = (sealed: string): string => sealed.split('.', 1)[0]!

/** Seals a secret to text for a column, bound to its row. */
export function sealText(keyring: Keyring, text: string, place: string): string {
  const { version, nonce, ciphertext } = keyring.seal(text, place)
  return `${version}.${Buffer.from(nonce).toString('base64url')}.${Buffer.from(ciphertext).toString('base64url')}`
}

/** Throws a KeyringError when the key is missing, or the text was modified or moved. */
export function openText(keyring: Keyring, sealed: string, place: string): string {
  const [version = '', nonce = '', ciphertext = ''] = sealed.split('.')
  return keyring.open(
    { version, nonce: Buffer.from(nonce, 'base64url'), ciphertext: Buffer.from(ciphertext, 'base64url') },
    place,
  )
}
