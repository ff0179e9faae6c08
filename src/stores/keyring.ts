/** Master keys that seal stored secrets: AES-256-GCM, each secret bound to its place. */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { Sealed, SealedKey } from '../core/policy.ts'
import type { SealKeys } from '../core/seals.ts'
import { knowSecrets } from '../secrets/known.ts'
import { makeFolder } from './make-folder.ts'

const ALGORITHM = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const MIN_KEY_CHARACTERS = 16

/** Path of the master keys of a database when the environment gives none. */
export const keyFile = (database: string): string => join(dirname(database), 'master.key')

/** Place of a provider key, so that no row can be substituted for another. */
export const placeOf = ({ orgId, provider, id }: Pick<SealedKey, 'orgId' | 'provider' | 'id'>): string =>
  [orgId, provider, id].join('|')

/** A master key is unavailable, or a secret cannot be opened. The message contains no part of either. */
export class KeyringError extends Error {
  override readonly name = 'KeyringError'
}

interface MasterKey {
  /** Identifies the key in sealed secrets without revealing it. */
  readonly version: string
  readonly key: Buffer
  /** Derived key for the seals of values that clients keep. */
  readonly seals: KeyObject
  derive(purpose: string): Buffer
}

/**
 * Delay between readings of the file for unknown versions: another process may have added a key, but a forged version
 * must stay cheap.
 */
const LOOK_AGAIN_MS = 10_000

interface KeyringOptions {
  /** `GATEWAY_MASTER_KEY`: one or several comma-separated keys, newest first. */
  readonly given: string | undefined
  /** File of the keys when none is given, one per line; created with mode 0600 when missing. */
  readonly file: string
}

/** Seals with the newest key; opens with any. */
export class Keyring {
  readonly #options: KeyringOptions
  #keys: readonly MasterKey[]
  /** Whether this process has made the file. */
  readonly isNew: boolean

  /** Throws a KeyringError that says what to do. */
  constructor(options: KeyringOptions) {
    this.#options = options
    this.isNew = given(options).length === 0 && !existsSync(options.file)
    if (this.isNew) makeFile(options.file)
    this.#keys = this.#read()
  }

  /** Version of the sealing key. */
  get version(): string {
    return this.#keys[0]!.version
  }

  /** Versions that can be opened, newest first. */
  get versions(): readonly string[] {
    return this.#keys.map(({ version }) => version)
  }

  /** Removes the file of a new key, which has sealed nothing. */
  discard(): void {
    unlinkSync(this.#options.file)
  }

  /** Keys derived for `purpose` from all master keys, newest first. */
  derived(purpose: string): Buffer[] {
    return this.#keys.map(({ derive }) => derive(purpose))
  }

  /** Opening needs the same `place`: a sealed secret copied elsewhere stays closed. */
  seal(secret: string, place: string): Sealed {
    const { version, key } = this.#keys[0]!
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(`${version}|${place}`))
    const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return { version, nonce, ciphertext }
  }

  /**
   * Seals of values in clients' histories: a value that no key verifies is dropped, so a missing key fails no request.
   */
  readonly seals: SealKeys = ringOfSeals(
    () => this.#keys,
    () => {
      if (existsSync(this.#options.file)) this.#keys = this.#read()
    },
  )

  /** Throws a KeyringError when the key is missing, or the stored value was modified or moved. */
  open({ version, nonce, ciphertext }: Sealed, place: string): string {
    const { key } = this.#keyOf(version)
    try {
      const end = ciphertext.length - TAG_BYTES
      const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
        .setAAD(Buffer.from(`${version}|${place}`))
        .setAuthTag(ciphertext.subarray(end))
      return Buffer.concat([decipher.update(ciphertext.subarray(0, end)), decipher.final()]).toString('utf8')
    } catch {
      throw new KeyringError('the stored secret was changed, or was moved from another record')
    }
  }

  /**
   * Creates a key that seals from now on; returns its version. Only for keys in the file. Old keys stay in the file,
   * because other processes and backups need them.
   */
  addKey(): string {
    if (given(this.#options).length > 0) {
      throw new KeyringError(
        'the master keys are given by GATEWAY_MASTER_KEY: put the new one before the old one, with a comma between ' +
          'them, then restart',
      )
    }
    addKey(this.#options.file)
    this.#keys = this.#read()
    return this.version
  }

  /** Another process may have added a key since the file was read. */
  #keyOf(version: string): MasterKey {
    const find = () => this.#keys.find(key => key.version === version)
    let key = find()
    if (!key && existsSync(this.#options.file)) {
      this.#keys = this.#read()
      key = find()
    }
    if (!key) throw new KeyringError(`the master key ${version} is missing`)
    return key
  }

  #read(): MasterKey[] {
    const { file } = this.#options
    const texts = [...given(this.#options), ...(existsSync(file) ? readLines(file) : [])]
    knowSecrets('master keys', texts)
    if (texts.length === 0) throw new KeyringError(`${file} holds no master key; restore it from a backup`)
    return texts.map(text => {
      if (text.length >= MIN_KEY_CHARACTERS) return masterKey(text)
      throw new KeyringError(
        `a master key needs at least ${MIN_KEY_CHARACTERS} characters; \`openssl rand -base64 32\` makes one`,
      )
    })
  }
}

function ringOfSeals(keys: () => readonly MasterKey[], reread: () => void): SealKeys {
  let lookedAt = Number.NEGATIVE_INFINITY
  const find = (version: string) => keys().find(key => key.version === version)
  const entryOf = ({ version, seals: key }: MasterKey) => ({ version, key })
  return {
    get newest() {
      return entryOf(keys()[0]!)
    },
    find(version) {
      if (!find(version) && performance.now() - lookedAt > LOOK_AGAIN_MS) {
        lookedAt = performance.now()
        try {
          reread()
        } catch (thrown) {
          // Provider keys report an unreadable file; here it costs only a reasoning block that is not replayed.
          if (!(thrown instanceof KeyringError)) throw thrown
        }
      }
      const key = find(version)
      return key && entryOf(key)
    },
  }
}

const given = ({ given: text = '' }: KeyringOptions): string[] =>
  text
    .split(',')
    .map(key => key.trim())
    .filter(Boolean)

function masterKey(text: string): MasterKey {
  const key = Buffer.from(hkdfSync('sha256', text, '', 'model-gateway provider keys', KEY_BYTES))
  const version = createHmac('sha256', key).update('version').digest('hex').slice(0, 8)
  const seals = createSecretKey(Buffer.from(hkdfSync('sha256', text, '', 'model-gateway seals', KEY_BYTES)))
  const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', text, '', purpose, KEY_BYTES))
  return { version, key, seals, derive }
}

function readLines(file: string): string[] {
  const mode = statSync(file).mode & 0o777
  if ((mode & 0o077) !== 0) {
    throw new KeyringError(`${file} may be read by others (mode ${mode.toString(8)}); run \`chmod 600 ${file}\``)
  }
  return readFileSync(file, 'utf8')
    .split('\n')
    .map(line => line.trim())
    .filter(Boolean)
}

/** Creates the file completely or not at all; of two processes at once, one succeeds. */
function makeFile(file: string): void {
  makeFolder(dirname(file))
  const made = `${file}.${randomBytes(4).toString('hex')}`
  writeDurably(made, () => [newKey()])
  try {
    linkSync(made, file)
  } catch (thrown) {
    if (!isThere(thrown)) throw thrown
  } finally {
    unlinkSync(made)
  }
}

/** Prepends a key to those of the file; of two processes at once, one is refused. */
function addKey(file: string): void {
  const next = `${file}.new`
  try {
    writeDurably(next, () => [newKey(), ...readLines(file)])
  } catch (thrown) {
    if (!isThere(thrown)) throw thrown
    throw new KeyringError(`another process is creating a master key; if none is, remove ${next}`)
  }
  renameSync(next, file)
}

const newKey = (): string => randomBytes(KEY_BYTES).toString('base64url')
const isThere = (thrown: unknown): boolean => (thrown as NodeJS.ErrnoException).code === 'EEXIST'

/** Calls `lines` once the new file exists, which excludes other processes. A failure leaves no file. */
function writeDurably(file: string, lines: () => readonly string[]): void {
  const descriptor = openSync(file, 'wx', 0o600)
  try {
    writeSync(descriptor, `${lines().join('\n')}\n`)
    fsyncSync(descriptor)
  } catch (thrown) {
    unlinkSync(file)
    throw thrown
  } finally {
    closeSync(descriptor)
  }
}
