/** Says at the start which stored values cannot be opened, since their master keys are missing. */
import type { Log, MasterKeyStore, SealedKind } from '../core/ports.ts'

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
