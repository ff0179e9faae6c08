/**
 * All stores in the memory of one process: for tests, and as the simplest implementation of the ports. Any look-up may
 * scan all rows.
 */
import { randomBytes } from 'node:crypto'
import type { Stores } from '../../../core/ports.ts'
import { warn as emitWarning } from '../../../lib/warn.ts'
import { Keyring } from '../../keyring.ts'
import { accountStore } from './accounts.ts'
import { auditStore, creditStore, planStore } from './credits.ts'
import { jobStore } from './jobs/index.ts'
import { admitsKey, keyStore, liveKey, operatorSessionStore, sessionStore } from './keys.ts'
import { MemoryLedger } from './ledger.ts'
import { Limits } from './limits.ts'
import { masterKeyStore } from './master-keys.ts'
import { memberStore } from './members.ts'
import { Names } from './names.ts'
import { oauthStores } from './oauth/index.ts'
import { organizationStore, projectStore } from './organizations.ts'
import { complianceStore, manifestStore, policyFacts, ruleStore } from './policies.ts'
import { providerKeyStore } from './provider-keys.ts'
import { realtimeSecretStore } from './realtime.ts'
import { reportStore } from './reports.ts'
import { retentionStore } from './requests.ts'
import { responseStore } from './responses.ts'
import { Tables } from './tables.ts'
import { usageStore } from './usage.ts'

interface MemoryOptions {
  /** Wall clock, Unix milliseconds. */
  readonly now?: () => number
  /** Receives the errors of spooled rows that cannot be entered. */
  readonly warn?: (error: unknown) => void
  /** Master keys; by default new ones of this process. */
  readonly keyring?: () => Keyring
}

/** Empty stores, which end with the process. */
export function openMemory({ now = Date.now, warn = emitWarning, keyring }: MemoryOptions = {}): Stores {
  let own: Keyring | undefined
  const ownKeyring = (): Keyring => {
    own ??= new Keyring({ given: randomBytes(32).toString('base64url'), file: '' })
    return own
  }
  const tables = new Tables(now)
  const names = new Names(tables)
  const limits = new Limits(tables)
  const rules = ruleStore(tables, names)
  const ledger = new MemoryLedger(tables, warn)
  return {
    identity: undefined,
    keys: keyStore(tables, limits),
    sessions: sessionStore(tables, limits),
    oauth: oauthStores(tables, names, id => liveKey(tables, limits, id)),
    realtimeSecrets: realtimeSecretStore(tables, id => liveKey(tables, limits, id), keyring ?? ownKeyring),
    ledger,
    jobs: jobStore(tables, ledger, id => admitsKey(tables, limits, id)),
    responses: responseStore(tables),
    accounts: accountStore(tables, names, limits, rules.move),
    operatorSessions: operatorSessionStore(tables, names),
    organizations: organizationStore(tables, names),
    projects: projectStore(tables, names),
    members: memberStore(tables, names, limits),
    credits: creditStore(tables, names),
    plans: planStore(tables, names),
    audit: auditStore(tables, names),
    names,
    policies: {
      organizationId: organization => names.organization(organization),
      facts: policyFacts(tables, limits),
      providerKeys: providerKeyStore(tables, names, limits, keyring ?? ownKeyring),
      masterKeys: masterKeyStore(tables, keyring ?? ownKeyring),
      rules,
      compliance: complianceStore(tables, names),
      manifests: manifestStore(tables, names),
    },
    usage: usageStore(tables),
    reports: reportStore(tables),
    retention: retentionStore(tables),
    async overdraft() {
      let sum = 0n
      for (const { orgId, balance } of tables.balances.rows()) {
        if (balance < 0n && tables.organizations.get(orgId)?.account === 'prepaid') sum -= balance
      }
      return sum
    },
    async ping() {},
    async close() {},
  }
}
