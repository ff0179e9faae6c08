/** Provider keys under the master keys, wherever they are kept. */
import { errors } from '../core/error.ts'
import type { Sealed, SealedKey } from '../core/policy.ts'
import { type Keyring, KeyringError, placeOf } from './keyring.ts'

/** What is wrong with the master keys is the operator's to put right: throws a 400. */
export function attempt<T>(work: () => T): T {
  try {
    return work()
  } catch (thrown) {
    throw thrown instanceof KeyringError ? errors.badRequest(`${thrown.message}.`) : thrown
  }
}

/** The same secret under the newest master key; undefined when its own is missing, or it was changed or moved. */
export function resealed(
  key: Pick<SealedKey, 'id' | 'orgId' | 'provider' | 'sealed'>,
  keyring: Keyring,
): Sealed | undefined {
  const place = placeOf(key)
  try {
    return keyring.seal(keyring.open(key.sealed, place), place)
  } catch (thrown) {
    if (!(thrown instanceof KeyringError)) throw thrown
    return undefined
  }
}

/** A secret as text for a column, bound to the row that it stands in. */
export function sealText(keyring: Keyring, text: string, place: string): string {
  const { version, nonce, ciphertext } = keyring.seal(text, place)
  return `${version}.${Buffer.from(nonce).toString('base64url')}.${Buffer.from(ciphertext).toString('base64url')}`
}

/** Throws a KeyringError: the key is not there, or the text was changed or moved. */
export function openText(keyring: Keyring, sealed: string, place: string): string {
  const [version = '', nonce = '', ciphertext = ''] = sealed.split('.')
  return keyring.open(
    { version, nonce: Buffer.from(nonce, 'base64url'), ciphertext: Buffer.from(ciphertext, 'base64url') },
    place,
  )
}
