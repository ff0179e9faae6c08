/** OAuth clients, grants, codes and tokens on SQLite. */
import type { OAuthStores } from '../../../core/ports.ts'
import type { AuditedTransaction } from '../audited-transaction.ts'
import type { Sqlite } from '../open.ts'
import { SqliteOAuthClients } from './clients.ts'
import { GrantCreation } from './creation.ts'
import { GrantEnds } from './ends.ts'
import { sqliteGrants } from './grants.ts'
import type { LiveKeys } from './live-keys.ts'
import { LoginCodes } from './login-codes.ts'
import { GrantRecords } from './records.ts'
import { TokenRequests } from './requests.ts'
import { OAuthSweep } from './sweep.ts'
import { Tokens } from './tokens.ts'

/** Both stores of OAuth; `keys` gives the keys that grants stand for. */
export function sqliteOAuth(db: Sqlite, changes: AuditedTransaction, keys: LiveKeys): OAuthStores {
  const records = new GrantRecords(db, changes.directory)
  const ends = new GrantEnds(db, changes, records)
  const tokens = new Tokens(db, changes.now)
  const logins = new LoginCodes(db, changes)
  return {
    clients: new SqliteOAuthClients(db, changes, keys, ends),
    grants: sqliteGrants(changes, {
      records,
      ends,
      tokens,
      logins,
      creation: new GrantCreation(db, changes, { keys, records, ends, tokens, logins }),
      requests: new TokenRequests(db, { keys, ends, tokens, now: changes.now }),
      sweep: new OAuthSweep(db, ends),
    }),
  }
}
