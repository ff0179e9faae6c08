/** Compares the master keys with the stored values at the start. */
import { type Log, type MasterKeyStore, type SealedKind, StoreError } from '../core/ports.ts'
import type { Keyring } from '../stores/keyring.ts'

const VALUES: Readonly<Record<SealedKind, string>> = {
  provider_keys: 'provider keys',
  responses: 'stored responses',
  contents: 'contents of requests',
  realtime_secrets: 'client secrets of realtime sessions',
  jobs: 'results and callbacks of jobs',
}

const REMEDY =
  'put the missing keys back behind the newest one, in GATEWAY_MASTER_KEY or in master.key beside the database, and restart'

/** One error per kind; `known` returns the versions of the master keys that there are, and is called when any is needed. */
export async function reportMissingKeys(
  masterKeys: Pick<MasterKeyStore, 'versions'>,
  known: () => readonly string[],
  log: Pick<Log, 'error'>,
): Promise<void> {
  for (const { kind, versions } of await masterKeys.versions()) {
    if (versions.length === 0) continue
    const missing = versions.filter(version => !known().includes(version))
    if (missing.length === 0) continue
    log.error({ unusable: VALUES[kind], missing, remedy: REMEDY }, 'master keys missing')
  }
}

/**
 * Rejects with a StoreError where this process lacks the master key that the stores are sealed under: other nodes could not open
 * what it seals. `givenUp` is the version of a key that is lost.
 */
export async function refuseForeignKeys(
  masterKeys: Pick<MasterKeyStore, 'foreign'>,
  keyring: Pick<Keyring, 'isNew' | 'versions' | 'discard'>,
  givenUp: string | undefined,
): Promise<void> {
  const missing = await masterKeys.foreign(givenUp)
  if (missing === undefined) return
  if (keyring.isNew) keyring.discard()
  const own = keyring.isNew ? 'none' : `${keyring.versions.join(',')} in its place`
  throw new StoreError(
    `The database is sealed under the master key ${missing}, and this process has ${own}. Set GATEWAY_MASTER_KEY ` +
      'as the other nodes have it, or put the master.key that belongs to the database into the folder of the data. ' +
      `Where keys are being replaced, put the missing one behind the new one. If it is lost, set GATEWAY_LOST_MASTER_KEY=${missing}: what it seals stays unreadable.`,
  )
}
