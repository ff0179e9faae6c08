/** All stores of one node, in one database file. */
import type { Money } from '../../core/money.ts'
import type { Stores } from '../../core/ports.ts'
import { warn as emitWarning } from '../../lib/warn.ts'
import { Keyring, keyFile } from '../keyring.ts'
import { SqlAudit, AuditedTransaction as SqlTransaction } from '../sql/audit.ts'
import { nameStore } from '../sql/names.ts'
import { SqliteSql } from '../sql/sqlite.ts'
import { SqliteAccounts } from './accounts.ts'
import { AuditedTransaction } from './audited-transaction.ts'
import { SqliteCredits } from './credits.ts'
import { sqliteJobs } from './jobs/index.ts'
import { SqliteKeys } from './keys.ts'
import { SqliteLedger } from './ledger.ts'
import { SqliteMasterKeys } from './master-keys.ts'
import { SqliteMembers } from './members.ts'
import { sqliteOAuth } from './oauth/index.ts'
import { openDatabase } from './open.ts'
import { SqliteOperatorSessions } from './operator-sessions.ts'
import { SqliteOrganizations } from './organizations.ts'
import { SqlitePlans } from './plans.ts'
import { PolicyReader } from './policy.ts'
import { SqliteCompliance, SqliteManifests } from './policy-demands.ts'
import { SqliteRules } from './policy-rules.ts'
import { SqliteProjects } from './projects.ts'
import { SqliteProviderKeys } from './provider-keys.ts'
import { SqliteRealtimeSecrets } from './realtime.ts'
import { SqliteReports } from './reports.ts'
import { SqliteResponses } from './responses.ts'
import { SqliteRetention } from './retention.ts'
import { SqliteSessions } from './sessions.ts'
import { SqliteUsage } from './usage.ts'
import { checkFile, fileOf, LogFile } from './wal-sync.ts'
import { Writer } from './writer.ts'

export { fileOf as sqliteIdentity } from './wal-sync.ts'

interface SqliteOptions {
  /** Wall clock, Unix milliseconds. */
  readonly now?: () => number
  /** Receives failures of background work, which is retried. */
  readonly warn?: (error: unknown) => void
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
    keyring = () => new Keyring({ given: undefined, file: keyFile(path) }),
  } = options
  const db = openDatabase(path)
  const file = fileOf(path)
  const writer = new Writer(db, path === ':memory:' ? undefined : new LogFile(path))
  const keys = new SqliteKeys(db, { now })
  const reader = new PolicyReader(db)
  const onKeyChange = () => {
    keys.clear()
    reader.changed()
  }
  const changes = new AuditedTransaction(db, writer, { now, onKeyChange })
  const admin = new SqlTransaction(new SqliteSql(db, writer), { now, onKeyChange })
  const ledger = new SqliteLedger(db, writer, { now, warn, spool: path === ':memory:' ? undefined : path })
  const read = db.prepare('SELECT count(*) FROM sqlite_schema')
  const overdraft = db.prepare<[], Money>(OVERDRAFT).pluck().safeIntegers()
  return {
    identity: file,
    keys,
    sessions: new SqliteSessions(db, writer, now, hash => keys.forget(hash)),
    oauth: sqliteOAuth(db, changes, keys),
    realtimeSecrets: new SqliteRealtimeSecrets(db, writer, keys, { keyring, now }),
    ledger,
    jobs: sqliteJobs(db, writer, { ledger, keys, keyring }),
    responses: new SqliteResponses(db, writer, { keyring, now }),
    accounts: new SqliteAccounts(db, changes),
    operatorSessions: new SqliteOperatorSessions(db, changes),
    organizations: new SqliteOrganizations(db, changes),
    projects: new SqliteProjects(db, changes),
    members: new SqliteMembers(db, changes),
    credits: new SqliteCredits(db, changes),
    plans: new SqlitePlans(db, changes),
    audit: new SqlAudit(admin),
    names: nameStore(admin.names),
    policies: {
      organizationId: async organization => (await admin.names.organization(organization)).id,
      facts: orgId => reader.of(orgId),
      providerKeys: new SqliteProviderKeys(db, changes, keyring),
      masterKeys: new SqliteMasterKeys(db, changes, keyring),
      rules: new SqliteRules(db, changes),
      compliance: new SqliteCompliance(db, changes),
      manifests: new SqliteManifests(db, changes),
    },
    usage: new SqliteUsage(db),
    reports: new SqliteReports(db),
    retention: new SqliteRetention(db, writer),
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
