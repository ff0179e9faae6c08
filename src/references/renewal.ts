/** Reads secrets again after a provider has refused one: it may have been rotated (docs/secrets.md#rotation). */
import type { ConfigManager } from '../config/manager.ts'
import type { Log } from '../core/ports.ts'
import type { RenewCredential } from '../upstream/provider-call.ts'

/** Configuration in force, and how a provider's secrets are read again. */
interface RenewalOptions {
  readonly manager: () => Pick<ConfigManager, 'current' | 'refersOutside'>
  /** Resolves once the configuration in force has the secrets of this provider as they are now, or may not be read again. */
  readonly renew: (provider: string) => Promise<unknown>
  readonly log: Log
}

/** Only credentials of manifests that refer to files, commands or secret managers are renewed. */
export function credentialRenewal({ manager, renew, log }: RenewalOptions): RenewCredential {
  return async ({ provider, credential }) => {
    const { id, owner, credentials } = provider
    const at = credential && owner === undefined ? credentials.indexOf(credential) : -1
    if (at < 0 || !manager().refersOutside(id)) return undefined
    const other = () => {
      const now = manager().current.catalog.providers.get(id)?.credentials ?? []
      const { label } = credential!
      const next = label === undefined ? now[at] : now.find(one => one.label === label)
      return next?.id === credential!.id ? undefined : next
    }
    // Another request may have brought it.
    const known = other()
    if (known) return known
    try {
      await renew(id)
    } catch (err) {
      log.warn({ provider: id, err }, 'secrets of a refused credential not read')
    }
    return other()
  }
}
