/** One tree for each of the three tables that every request writes to; a hold tells what an orphan was asked for. */
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
    expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  INSERT INTO new_holds
    SELECT id, org_id, project_id, key_id, request_id, request_id, '', '', NULL, NULL, amount, owner, created_at,
      expires_at
    FROM holds WHERE state = 'open';
  DROP TABLE holds;
  ALTER TABLE new_holds RENAME TO holds;

  CREATE TABLE new_ledger (
    request_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    org_id TEXT NOT NULL REFERENCES organizations (id),
    amount INTEGER NOT NULL CHECK (amount <> 0 AND (kind <> 'charge' OR amount < 0)),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (request_id, kind)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO new_ledger SELECT request_id, kind, org_id, amount, created_at FROM ledger;
  DROP TABLE ledger;
  ALTER TABLE new_ledger RENAME TO ledger;
  CREATE TRIGGER ledger_refuses_update BEFORE UPDATE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
  END;
  CREATE TRIGGER ledger_refuses_delete BEFORE DELETE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
  END;

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
    outcome TEXT NOT NULL CHECK (outcome IN ('ok', 'error', 'aborted', 'orphaned')),
    error_code TEXT,
    streamed INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    ttft_ms INTEGER,
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    reasoning_tokens INTEGER,
    other_usage TEXT,
    estimated INTEGER NOT NULL,
    cost INTEGER CHECK (cost >= 0)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO new_requests SELECT * FROM requests;
  DROP TABLE requests;
  ALTER TABLE new_requests RENAME TO requests;
`
