/** Secrets of several parts: how they are written. Nothing that is said here shows anything of a secret. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { type Json, jsonIn, textIn } from '../json/json.ts'
import { urlOf } from '../lib/url.ts'

/** Content of a secret, or the reason, in an operator's words, why it is unusable. */
export type Parsed<T> = { readonly value: T } | { readonly issue: string }

/** Credentials with which requests are signed (Signature Version 4). */
interface AwsKeys {
  readonly id: string
  readonly secret: string
  /** Only temporary keys have one. */
  readonly session: string | undefined
}

const AWS_KEYS = /^([\w.-]{1,128}):([\x21-\x39\x3b-\x7e]+)(?::([\x21-\x39\x3b-\x7e]+))?$/

/** Reads `ACCESS_KEY_ID:SECRET_ACCESS_KEY[:SESSION_TOKEN]`: none of the three holds a colon. */
export function awsKeys(text: string): Parsed<AwsKeys> {
  const [, id, secret, session] = AWS_KEYS.exec(text) ?? []
  if (id && secret) return { value: { id, secret, session } }
  return { issue: 'expected "ACCESS_KEY_ID:SECRET_ACCESS_KEY", and ":SESSION_TOKEN" behind it for temporary keys' }
}

/** A Google service account: signs assertions that are exchanged for access tokens. */
export interface ServiceAccount {
  readonly email: string
  readonly key: KeyObject
  readonly keyId: string | undefined
  /** The endpoint for tokens; undefined for the usual one. */
  readonly tokenUri: string | undefined
}

/** Reads the JSON of a service account's key file: `private_key`, `client_email`, `private_key_id?`, `token_uri?`. */
export function serviceAccount(text: string): Parsed<ServiceAccount> {
  // Nothing of the parser's message, which repeats a part of the text.
  const parsed = jsonIn(text)
  if (typeof parsed !== 'object' || parsed === null)
    return { issue: `expected the JSON of a service account's key file, such as "\${file:key.json}"` }
  const account = parsed as Json
  const missing = ['private_key', 'client_email'].find(key => !textIn(account[key]))
  if (missing) return { issue: `the JSON of a service account needs the key "${missing}"` }
  const key = rsaKey(textIn(account.private_key)!)
  if (!key) return { issue: 'the "private_key" of the service account is no RSA key of at most 4,096 bits in PEM form' }
  const tokenUri = textIn(account.token_uri)
  if (tokenUri !== undefined && !urlOf(tokenUri)) {
    return { issue: 'the "token_uri" of the service account is no address' }
  }
  return { value: { email: textIn(account.client_email)!, key, keyId: textIn(account.private_key_id), tokenUri } }
}

/** Bits of its modulus. To sign with a longer key, or with a longer exponent, takes up to seconds. */
const MAX_RSA_BITS = 4096
/** Maximum base64url characters of the public exponent; 65,537 has four. */
const MAX_EXPONENT = 6

function rsaKey(pem: string): KeyObject | undefined {
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyType !== 'rsa' || key.asymmetricKeyDetails!.modulusLength! > MAX_RSA_BITS) return undefined
    const { n = '', e = '', d = '' } = key.export({ format: 'jwk' })
    return d.length <= n.length && e.length <= MAX_EXPONENT ? key : undefined
  } catch {
    return undefined
  }
}
