/** Reads the secrets that references of the configuration name outside of the environment and of files. */
import type { SecretReader } from '../config/outside.ts'
import type { Env, Resolved } from '../config/reference.ts'
import type { SecretSettings } from '../config/schemas/secrets.ts'
import { suggestion } from '../lib/nearest.ts'
import { knowSecrets } from '../secrets/known.ts'
import { outputOf } from './command.ts'

/**
 * Stands for a whole value that was not read: a text that is an address, a header and a token alike, so that the rest of a
 * file can be checked.
 */
const UNREAD = 'https://unread.invalid'

/** Environment of the process, and whether secrets are read at all. */
interface SecretsOptions {
  readonly env: Env
  readonly isRead?: boolean
}

/** Reads each secret once, until `renew` is called. */
export class Secrets implements SecretReader {
  readonly #env: Env
  readonly #isRead: boolean
  #settings: SecretSettings = { exec: {} }
  #folder = '.'
  #found = new Map<string, Promise<Resolved>>()
  /** Values of the last readings: those in force may be older than the latest. */
  #values: readonly [current: Set<string>, before: ReadonlySet<string>] = [new Set(), new Set()]

  constructor({ env, isRead = true }: SecretsOptions) {
    this.#env = env
    this.#isRead = isRead
  }

  configure(settings: SecretSettings, folder: string): void {
    this.#settings = settings
    this.#folder = folder
  }

  renew(): void {
    this.#found = new Map()
    this.#values = [new Set(), this.#values[0]]
  }

  read(name: string): Promise<Resolved> {
    let found = this.#found.get(name)
    if (!found) {
      found = this.#read(name).then(
        value => this.#know(value),
        (thrown: Error) => ({
          issue: () => `the reference "\${${name}}" cannot be read: ${thrown.message}`,
          unset: false,
        }),
      )
      this.#found.set(name, found)
    }
    return found
  }

  #know(found: Resolved): Resolved {
    if ('value' in found && !found.isUnread) {
      this.#values[0].add(found.value)
      knowSecrets('references', [...this.#values[0], ...this.#values[1]])
    }
    return found
  }

  /** Rejects with an Error that shows nothing of a secret. */
  async #read(name: string): Promise<Resolved> {
    const id = name.slice(name.indexOf(':') + 1).trim()
    const { exec } = this.#settings
    const command = Object.hasOwn(exec, id) ? exec[id] : undefined
    if (!command) throw new Error(`"secrets.exec" has no command "${id}"${suggestion(id, Object.keys(exec))}`)
    if (!this.#isRead) return { value: UNREAD, isUnread: true }
    try {
      return { value: await outputOf(command, { folder: this.#folder, env: this.#env }) }
    } catch (thrown) {
      throw new Error(`its command ${(thrown as Error).message}`)
    }
  }
}
