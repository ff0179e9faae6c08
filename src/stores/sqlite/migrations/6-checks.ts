/**
 * The two tables that every request adds a row to, as before; but SQLite builds a table for a list of more than two
 * each time that it checks a row against it.
 */
export const step = `
  CREATE TABLE new_holds (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    -- Of the row that will settle it.
    request_id TEXT NOT NULL,
    caller_id TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    requested_model TEXT NOT NULL,
    model TEXT,
    provider TEXT,
    amount INTEGER NOT NULL CHECK (amount >= 0),
    owner TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    funds TEXT NOT NULL DEFAULT 'credits'
      CHECK (funds = 'credits' OR funds = 'byok' OR funds = 'plan' OR funds = 'premium'),
    -- A JSON array of ids, NULL for none.
    budgets TEXT,
    -- What a stream has come to so far, a JSON object of usage and cost; NULL until that is noted.
    progress TEXT
  ) STRICT, WITHOUT ROWID;
  INSERT INTO new_holds SELECT * FROM holds;
  DROP TABLE holds;
  ALTER TABLE new_holds RENAME TO holds;

  CREATE TABLE new_requests (
    id TEXT PRIMARY KEY,
    request_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    org_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    requested_model TEXT NOT NULL,
    model TEXT,
    provider TEXT,
    source TEXT,
    status INTEGER NOT NULL,
    outcome TEXT NOT NULL
      CHECK (outcome = 'ok' OR outcome = 'error' OR outcome = 'aborted' OR outcome = 'orphaned'),
    error_code TEXT,
    streamed INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    ttft_ms INTEGER,
    -- Token counts are NULL when they were not reported. other_usage: the remaining axes, a JSON object.
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    reasoning_tokens INTEGER,
    other_usage TEXT,
    estimated INTEGER NOT NULL,
    -- cost is what the provider's work is worth, charged what funds were debited for it, storage included.
    cost INTEGER CHECK (cost >= 0),
    funds TEXT NOT NULL DEFAULT 'credits',
    charged INTEGER NOT NULL DEFAULT 0 CHECK (charged >= 0),
    storage INTEGER NOT NULL DEFAULT 0 CHECK (storage >= 0),
    discount INTEGER NOT NULL DEFAULT 0,
    tier TEXT
  ) STRICT, WITHOUT ROWID;
  INSERT INTO new_requests SELECT * FROM requests;
  DROP TABLE requests;
  ALTER TABLE new_requests RENAME TO requests;
`
