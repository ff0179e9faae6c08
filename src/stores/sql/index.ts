/** The stores that are written once for all databases, over one `Sql`. */
import type { Money } from '../../core/money.ts'
import type { Stores } from '../../core/ports.ts'
import type { Keyring } from '../keyring.ts'
import { SqlAccounts } from './accounts.ts'
import { sqlAlerts } from './alerts.ts'
import { AuditedTransaction, sqlAudit } from './audit.ts'
import type { ChangeSource } from './change-source.ts'
import { sqlContents } from './contents.ts'
import { SqlCredits } from './credits.ts'
import { sqlCompliance, sqlManifests } from './demands.ts'
import { sqlIssuerKeys } from './issuer-keys.ts'
import { SqlKeys } from './keys.ts'
import { SqlMasterKeys } from './master-keys.ts'
import { sqlMembers } from './members.ts'
import { nameStore } from './names.ts'
import { sqlOAuth } from './oauth/index.ts'
import { sqlOperatorSessions } from './operator-sessions.ts'
import { sqlOrganizations } from './organizations.ts'
import { SqlPlans } from './plans.ts'
import { PolicyFactsReader } from './policy-facts.ts'
import { sqlProjects } from './projects.ts'
import { sqlProviderKeys } from './provider-keys.ts'
import { sqlRealtimeSecrets } from './realtime.ts'
import { SqlReports } from './reports.ts'
import { SqlRequests } from './requests.ts'
import { sqlResponses } from './responses.ts'
import { sqlRules } from './rules.ts'
import { sqlSessions } from './sessions.ts'
import { first, type Sql } from './sql.ts'

interface SqlStoresOptions {
  /** Wall clock, Unix milliseconds. */
  readonly now: () => number
  /** Opens the keyring when it is first needed. */
  readonly keyring: () => Keyring
  /** Called after a change of keys or policies by this process. */
  readonly changed?: (() => void) | undefined
  /** Runs operators' changes; where there are other nodes, one at a time. */
  readonly changes?: Sql | undefined
  /** Tells other nodes, within a transaction, that what keys may do has changed. */
  readonly mark?: ((sql: Sql) => Promise<unknown>) | undefined
  /** Makes what tells one cache of changes by other processes. */
  readonly changeSource: () => ChangeSource
}

/** The stores beside the ledger and what depends on it. */
interface SqlStores
  extends Omit<
    Stores,
    'identity' | 'keys' | 'ledger' | 'jobs' | 'usage' | 'retention' | 'nodes' | 'living' | 'ping' | 'close'
  > {
  readonly keys: SqlKeys
}

const OVERDRAFT = `
  SELECT CAST(coalesce(-sum(balance), 0) AS bigint) AS overdraft
  FROM balances JOIN organizations ON organizations.id = org_id
  WHERE balance < 0 AND account = 'prepaid'`

/** Makes the stores; opens nothing. */
export function sqlStores(sql: Sql, options: SqlStoresOptions): SqlStores {
  const { now, keyring, changed, mark, changeSource } = options
  const keys = new SqlKeys(sql, changeSource(), now)
  const policies = new PolicyFactsReader(sql, changeSource())
  const refresh = () => {
    keys.clear()
    policies.changed()
  }
  const onKeyChange = () => {
    refresh()
    changed?.()
  }
  const changes = new AuditedTransaction(options.changes ?? sql, { now, onKeyChange, mark })
  const accounts = new SqlAccounts(changes)
  return {
    keys,
    issuerKeys: sqlIssuerKeys(changes, accounts),
    sessions: sqlSessions(sql, now, hash => keys.forget(hash)),
    oauth: sqlOAuth(changes, keys),
    realtimeSecrets: sqlRealtimeSecrets(sql, keys, { keyring, now }),
    alerts: sqlAlerts(sql),
    responses: sqlResponses(sql, { keyring, now }),
    contents: sqlContents(sql, { keyring, now }),
    accounts,
    operatorSessions: sqlOperatorSessions(changes),
    organizations: sqlOrganizations(changes),
    projects: sqlProjects(changes),
    members: sqlMembers(changes),
    credits: new SqlCredits(changes),
    plans: new SqlPlans(changes),
    audit: sqlAudit(changes),
    names: nameStore(changes.names),
    policies: {
      organizationId: async organization => (await changes.names.organization(organization)).id,
      facts: orgId => policies.of(orgId),
      providerKeys: sqlProviderKeys(changes, keyring),
      masterKeys: new SqlMasterKeys(changes, keyring),
      rules: sqlRules(changes),
      compliance: sqlCompliance(changes),
      manifests: sqlManifests(changes),
    },
    reports: new SqlReports(sql),
    requests: new SqlRequests(sql),
    refresh,
    async overdraft() {
      return (await first<{ overdraft: Money }>(sql, OVERDRAFT))!.overdraft
    },
  }
}
