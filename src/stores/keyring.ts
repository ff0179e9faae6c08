/** The master keys under which secrets are kept: AES-256-GCM, each secret bound to the place where it stands. */
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
  mkdirSync,
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

const ALGORITHM = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const MIN_LENGTH = 16

/** Where the master keys of a database stand when the environment gives none. */
export const keyFile = (database: string): string => join(dirname(database), 'master.key')

/** Where a provider key stands, so that no row can be passed off as another one. */
export const placeOf = ({ orgId, provider, id }: Pick<SealedKey, 'orgId' | 'provider' | 'id'>): string =>
  [orgId, provider, id].join('|')

/** A master key cannot be had, or a secret cannot be opened. Its message holds nothing of either. */
export class KeyringError extends Error {
  override readonly name = 'KeyringError'
}

interface MasterKey {
  /** What secrets say that they were sealed with: tells keys apart and nothing of them. */
  readonly version: string
  readonly key: Buffer
  /** Derived for the seals of what clients hold. */
  readonly seals: KeyObject
  derive(purpose: string): Buffer
}

/** A version that is not known may be of a key that another process has made; made-up ones must not cost much. */
const LOOK_AGAIN_MS = 10_000

export interface KeyringOptions {
  /** `GATEWAY_MASTER_KEY`: one key or several with commas between them, the newest first. */
  readonly given: string | undefined
  /** Holds the keys when none is given, one a line; made, with mode 0600, when it is missing. */
  readonly file: string
}

/** Seals with the newest key; opens with any. */
export class Keyring {
  readonly #options: KeyringOptions
  #keys: readonly MasterKey[]

  /** Throws a KeyringError that says what to do. */
  constructor(options: KeyringOptions) {
    this.#options = options
    if (given(options).length === 0 && !existsSync(options.file)) makeFile(options.file)
    this.#keys = this.#read()
  }

  /** Of the key that seals. */
  get version(): string {
    return this.#keys[0]!.version
  }

  /** Those that can be opened, the newest first. */
  get versions(): readonly string[] {
    return this.#keys.map(({ version }) => version)
  }

  /** Keys for a purpose of its own, of all master keys, the newest first. */
  derived(purpose: string): Buffer[] {
    return this.#keys.map(({ derive }) => derive(purpose))
  }

  /** `place` must be told again to open it: a sealed secret that was moved elsewhere stays closed. */
  seal(secret: string, place: string): Sealed {
    const { version, key } = this.#keys[0]!
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(`${version}|${place}`))
    const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return { version, nonce, ciphertext }
  }

  /** Seals of clients' own histories: what no key verifies is dropped, so that a missing key fails nothing. */
  readonly seals: SealKeys = ringOfSeals(
    () => this.#keys,
    () => {
      if (existsSync(this.#options.file)) this.#keys = this.#read()
    },
  )

  /** Throws a KeyringError: the key is not there, or what is kept was changed or moved. */
  open({ version, nonce, ciphertext }: Sealed, place: string): string {
    const { key } = this.#keyOf(version)
    try {
      const end = ciphertext.length - TAG_BYTES
      const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
        .setAAD(Buffer.from(`${version}|${place}`))
        .setAuthTag(ciphertext.subarray(end))
      return Buffer.concat([decipher.update(ciphertext.subarray(0, end)), decipher.final()]).toString('utf8')
    } catch {
      throw new KeyringError('the stored secret was changed, or belongs to another place')
    }
  }

  /**
   * Makes a new key, with which everything is sealed from now on; returns its version. Only for keys in the file.
   * The old keys stay in the file, because other processes and backups need them.
   */
  addKey(): string {
    if (given(this.#options).length > 0) {
      throw new KeyringError(
        'the master keys are given by GATEWAY_MASTER_KEY: put the new one before the old one, with a comma between ' +
          'them, and restart',
      )
    }
    addKey(this.#options.file)
    this.#keys = this.#read()
    return this.version
  }

  /** Another process may have made a key since the file was read. */
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
    if (texts.length === 0) throw new KeyringError(`${file} holds no master key; restore it from a backup`)
    return texts.map(text => {
      if (text.length >= MIN_LENGTH) return masterKey(text)
      throw new KeyringError(
        `a master key needs at least ${MIN_LENGTH} characters; \`openssl rand -base64 32\` makes one`,
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
          // Provider keys tell of a file that cannot be read; here it costs a thought that is not replayed.
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

/** The file is there whole or not at all, whenever the process ends; of two that make it at once, one does. */
function makeFile(file: string): void {
  mkdirSync(dirname(file), { recursive: true })
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

/** Puts a new key before those of the file; of two processes that do so at once, one is refused. */
function addKey(file: string): void {
  const next = `${file}.new`
  try {
    writeDurably(next, () => [newKey(), ...readLines(file)])
  } catch (thrown) {
    if (!isThere(thrown)) throw thrown
    throw new KeyringError(`another process makes a master key; if none does, remove ${next}`)
  }
  renameSync(next, file)
}

const newKey = (): string => randomBytes(KEY_BYTES).toString('base64url')
const isThere = (thrown: unknown): boolean => (thrown as NodeJS.ErrnoException).code === 'EEXIST'

/** `lines` is called once the new file is there, which nobody else makes then. What fails leaves no file behind. */
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
