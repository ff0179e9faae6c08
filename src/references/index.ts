/** Reads the secrets that references of the configuration name outside of the environment and of files. */
import { isDeepStrictEqual } from 'node:util'
import type { SecretReader } from '../config/outside.ts'
import type { Env, Resolved } from '../config/reference.ts'
import type { SecretSettings } from '../config/schemas/secrets.ts'
import type { Egress } from '../lib/egress.ts'
import { suggestion } from '../lib/nearest.ts'
import { knowSecrets } from '../secrets/known.ts'
import { callEndpoint } from '../upstream/auth/endpoint.ts'
import { type ManagerContext, type ReadSecret, textOf } from './manager.ts'

/** Least time between two readings of a source because of refusals. */
const RENEW_MS = 60_000
/**
 * Stands for a whole value that was not read: a text that is an address, a header and a token alike, so that the rest of a
 * file can be checked.
 */
const UNREAD = 'https://unread.invalid'

const EXAMPLES: Readonly<Record<string, string>> = {
  exec: 'exec:NAME',
  vault: 'vault:secret/acme#key',
  aws: 'aws:acme/key',
  gcp: 'gcp:projects/acme/secrets/key/versions/latest',
}

/** Environment of the process, and whether secrets are read at all. */
interface SecretsOptions {
  readonly env: Env
  readonly isRead?: boolean
  /** Whether a secret that cannot be read is left unread, with the reason. */
  readonly isTolerant?: boolean
}

/** Reads each secret once, until `renew` is called. */
export class Secrets implements SecretReader {
  readonly #context: ManagerContext
  readonly #isRead: boolean
  readonly #isTolerant: boolean
  #settings: SecretSettings = { exec: {}, vault: { auth_path: 'approle' }, aws: {}, gcp: {} }
  #folder = '.'
  #egress: Egress | undefined
  readonly #found = new Map<string, Promise<Resolved>>()
  /** Secrets by their source: several references may name fields of one. */
  readonly #secrets = new Map<string, ReturnType<ReadSecret>>()
  /** When a source was last read again because of a refusal, on the monotonic clock. */
  readonly #renewed = new Map<string, number>()
  readonly #readers = new Map<string, { readonly settings: object; readonly read: ReadSecret }>()
  /** Values of the last readings: those in force may be older than the latest. */
  #values: readonly [current: Set<string>, before: ReadonlySet<string>] = [new Set(), new Set()]

  constructor({ env, isRead = true, isTolerant = false }: SecretsOptions) {
    this.#isTolerant = isTolerant
    const egress = () => this.#egress
    const call: typeof callEndpoint = (url, request) => callEndpoint(url, { ...request, egress: egress() })
    this.#context = { env, home: env.HOME || '/', call, egress }
    this.#isRead = isRead
  }

  configure(settings: SecretSettings, folder: string, egress?: Egress): void {
    this.#settings = settings
    this.#egress = egress
    this.#folder = folder
  }

  renew(refused?: readonly string[]): boolean {
    this.#values = [new Set(this.#values[0]), this.#values[0]]
    if (!refused) {
      this.#values[0].clear()
      this.#found.clear()
      this.#secrets.clear()
      return true
    }
    const now = performance.now()
    const due = refused.filter(name => now - (this.#renewed.get(sourceOf(name)) ?? -RENEW_MS) >= RENEW_MS)
    for (const name of due) {
      this.#renewed.set(sourceOf(name), now)
      this.#secrets.delete(sourceOf(name))
      this.#found.delete(name)
    }
    return due.length > 0
  }

  read(name: string): Promise<Resolved> {
    let found = this.#found.get(name)
    if (!found) {
      found = this.#read(name).then(
        value => this.#know(value),
        // An error of credentials has its reason for operators in `detail`.
        ({ message, detail = message }: Error & { readonly detail?: string }) => {
          const why = `the reference "\${${name}}" cannot be read: ${detail}`
          return this.#isTolerant ? { value: UNREAD, isUnread: true, why } : { issue: () => why, unset: false }
        },
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
    const { kind, id, field } = parsed(name)
    const reader = await this.#readerOf(kind, id)
    if (!this.#isRead) return { value: UNREAD, isUnread: true }
    const source = sourceOf(name)
    let secret = this.#secrets.get(source)
    if (!secret) {
      secret = reader(id)
      this.#secrets.set(source, secret)
    }
    return { value: textOf(await secret, field) }
  }

  /** Loads only the code of kinds that are named. */
  async #readerOf(kind: string, id: string): Promise<ReadSecret> {
    const { exec, vault, aws, gcp } = this.#settings
    switch (kind) {
      case 'vault': {
        const { vaultReader } = await import('./vault.ts')
        return this.#kept(kind, vault, () => vaultReader(vault, this.#context))
      }
      case 'aws':
        return (await import('./clouds.ts')).awsReader(aws, this.#context)
      case 'gcp':
        return (await import('./clouds.ts')).gcpReader(gcp, this.#context)
    }
    const command = Object.hasOwn(exec, id) ? exec[id] : undefined
    if (!command) throw new Error(`"secrets.exec" has no command "${id}"${suggestion(id, Object.keys(exec))}`)
    const { outputOf } = await import('./command.ts')
    const place = { folder: this.#folder, env: this.#context.env }
    return () =>
      outputOf(command, place).catch((thrown: Error) => {
        throw new Error(`its command ${thrown.message}`)
      })
  }

  /** The reader of a kind while its settings stay: it may be signed in. */
  #kept(kind: string, settings: object, make: () => ReadSecret): ReadSecret {
    let kept = this.#readers.get(kind)
    if (!kept || !isDeepStrictEqual(kept.settings, settings)) {
      kept = { settings, read: make() }
      this.#readers.set(kind, kept)
    }
    return kept.read
  }
}

/** The name without its field: several may name fields of one secret. */
const sourceOf = (name: string): string => (name.startsWith('exec:') ? name : name.replace(/#[^#]*$/, ''))

/** Divides `kind:id#field`. Commands have no fields. */
function parsed(name: string): { readonly kind: string; readonly id: string; readonly field: string | undefined } {
  const kind = name.slice(0, name.indexOf(':'))
  const rest = name.slice(kind.length + 1).trim()
  const end = kind === 'exec' ? -1 : rest.lastIndexOf('#')
  const id = end < 0 ? rest : rest.slice(0, end)
  const field = end < 0 ? undefined : rest.slice(end + 1)
  if (id === '' || field === '') throw new Error(`expected a name such as "\${${EXAMPLES[kind]}}"`)
  if (kind === 'vault' && field === undefined) throw new Error(`it names no field; expected "\${vault:${id}#field}"`)
  return { kind, id, field }
}
