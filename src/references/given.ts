/** Secrets that another process of the gateway has read: a command may print another one each time. */
import type { SecretReader } from '../config/outside.ts'
import type { Resolved } from '../config/reference.ts'

/** Reads what `replace` was given. */
export class GivenSecrets implements SecretReader {
  #values: ReadonlyMap<string, string> = new Map()

  /** Replaces the secrets; their keys are references. */
  replace(values: Readonly<Record<string, string>>): void {
    this.#values = new Map(Object.entries(values))
  }

  configure(): void {
    // The primary process has the settings.
  }

  /** The primary process reads them again. */
  renew(): boolean {
    return true
  }

  read(name: string): Promise<Resolved> {
    const value = this.#values.get(name)
    if (value !== undefined) return Promise.resolve({ value })
    return Promise.resolve({ issue: () => `the primary process has not read "\${${name}}"`, unset: false })
  }
}
