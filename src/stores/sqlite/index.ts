/** All stores of one node, in one database file. */
import type { Money } from '../../core/money.ts'
import type { Stores } from '../../core/ports.ts'
import { warn as emitWarning } from '../../lib/warn.ts'
import { Keyring, keyFile } from '../keyring.ts'
import { SqlAccounts } from '../sql/accounts.ts'
import { SqlAudit, AuditedTransaction as SqlTransaction } from '../sql/audit.ts'
import { SqlCredits } from '../sql/credits.ts'
import { SqlCompliance, SqlManifests } from '../sql/demands.ts'
import { SqlKeys } from '../sql/keys.ts'
import { SqlMembers } from '../sql/members.ts'
import { nameStore } from '../sql/names.ts'
import { sqlOAuth } from '../sql/oauth/index.ts'
import { SqlOperatorSessions } from '../sql/operator-sessions.ts'
import { SqlOrganizations } from '../sql/organizations.ts'
import { SqlPlans } from '../sql/plans.ts'
import { PolicyFactsReader } from '../sql/policy-facts.ts'
import { SqlProjects } from '../sql/projects.ts'
import { SqlProviderKeys } from '../sql/provider-keys.ts'
import { SqlRealtimeSecrets } from '../sql/realtime.ts'
import { SqlRules } from '../sql/rules.ts'
import { SqlSessions } from '../sql/sessions.ts'
import { SqliteSql } from '../sql/sqlite.ts'
import { AuditedTransaction } from './audited-transaction.ts'
import { ChangeDetector } from './change-detector.ts'
import { sqliteJobs } from './jobs/index.ts'
import { SqliteLedger } from './ledger.ts'
import { SqliteMasterKeys } from './master-keys.ts'
import { openDatabase } from './open.ts'
import { SqliteReports } from './reports.ts'
import { SqliteResponses } from './responses.ts'
import { SqliteRetention } from './retention.ts'
import { SqliteUsage } from './usage.ts'
import { checkFile, fileOf, LogFile } from './wal-sync.ts'
import { Writer } from './writer.ts'

export { fileOf as sqliteIdentity } from './wal-sync.ts'

interface SqliteOptions {
  /** Wall clock, Unix milliseconds. */
  readonly now?: () => number
  /** Receives failures of background work, which is retried. */
  readonly warn?: (error: unknown) => void
  /** Called after a change of keys or policies by this process. */
  readonly changed?: () => void
  /** Master keys; by default those of `master.key` beside the database, opened when needed. */
  readonly keyring?: () => Keyring
}

const OVERDRAFT = `
  SELECT coalesce(-sum(balance), 0) FROM balances JOIN organizations ON organizations.id = org_id
  WHERE balance < 0 AND account = 'prepaid'`

/** Throws a StoreError that says what to do when the file cannot be used. */
export function openSqlite(path: string, options: SqliteOptions = {}): Stores {
  const {
    now = Date.now,
    warn = emitWarning,
    changed = () => undefined,
    keyring = () => new Keyring({ given: undefined, file: keyFile(path) }),
  } = options
  const db = openDatabase(path)
  const file = fileOf(path)
  const writer = new Writer(db, path === ':memory:' ? undefined : new LogFile(path))
  const sql = new SqliteSql(db, writer)
  const keys = new SqlKeys(sql, new ChangeDetector(db), now)
  const reader = new PolicyFactsReader(sql, new ChangeDetector(db))
  const refresh = () => {
    keys.clear()
    reader.changed()
  }
  const onKeyChange = () => {
    refresh()
    changed()
  }
  const changes = new AuditedTransaction(db, writer, { now, onKeyChange })
  const admin = new SqlTransaction(sql, { now, onKeyChange })
  const ledger = new SqliteLedger(db, writer, { now, warn, spool: path === ':memory:' ? undefined : path })
  const read = db.prepare('SELECT count(*) FROM sqlite_schema')
  const overdraft = db.prepare<[], Money>(OVERDRAFT).pluck().safeIntegers()
  return {
    identity: file,
    keys,
    sessions: new SqlSessions(sql, now, hash => keys.forget(hash)),
    oauth: sqlOAuth(admin, keys),
    realtimeSecrets: new SqlRealtimeSecrets(sql, keys, { keyring, now }),
    ledger,
    jobs: sqliteJobs(db, writer, { ledger, keys, keyring }),
    responses: new SqliteResponses(db, writer, { keyring, now }),
    accounts: new SqlAccounts(admin),
    operatorSessions: new SqlOperatorSessions(admin),
    organizations: new SqlOrganizations(admin),
    projects: new SqlProjects(admin),
    members: new SqlMembers(admin),
    credits: new SqlCredits(admin),
    plans: new SqlPlans(admin),
    audit: new SqlAudit(admin),
    names: nameStore(admin.names),
    policies: {
      organizationId: async organization => (await admin.names.organization(organization)).id,
      facts: orgId => reader.of(orgId),
      providerKeys: new SqlProviderKeys(admin, keyring),
      masterKeys: new SqliteMasterKeys(db, changes, keyring),
      rules: new SqlRules(admin),
      compliance: new SqlCompliance(admin),
      manifests: new SqlManifests(admin),
    },
    usage: new SqliteUsage(db),
    reports: new SqliteReports(db),
    retention: new SqliteRetention(db, writer),
    refresh,
    overdraft: async () => overdraft.get()!,
    async ping() {
      read.get()
      checkFile(path, file)
      if (writer.fault !== undefined) throw writer.fault
    },
    async close() {
      await ledger.close().catch(warn)
      await writer.flush()
      writer.close()
      db.close()
    },
  }
}
