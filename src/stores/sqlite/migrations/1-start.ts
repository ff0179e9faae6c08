/** The first schema. */

/** Identifies the file, so that another program's database is never migrated. */
export const APPLICATION_ID = 0x4d475731

/** SQL; brings the schema from version 0 to 1. */
export const step = `
  PRAGMA application_id = ${APPLICATION_ID};

  CREATE TABLE organizations (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    account TEXT NOT NULL CHECK (account IN ('open', 'prepaid')),
    created_at INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE members (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id),
    email TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'developer')),
    UNIQUE (org_id, email)
  ) STRICT;

  -- cache_ttl_ms NULL: responses are not cached.
  CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    mode TEXT NOT NULL DEFAULT 'credits' CHECK (mode IN ('credits', 'api-keys', 'hybrid')),
    cache_ttl_ms INTEGER CHECK (cache_ttl_ms > 0),
    archived_at INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (org_id, name)
  ) STRICT;

  -- hash: SHA-256 of the secret, hex. The secret itself is nowhere.
  CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('key', 'publishable', 'session')),
    hash TEXT NOT NULL UNIQUE,
    preview TEXT NOT NULL,
    created_by TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
  ) STRICT;
  CREATE INDEX keys_of_project ON keys (project_id, created_at);

  -- balance and used follow from the ledger, held from the open holds; they are kept so that one UPDATE can decide.
  CREATE TABLE balances (
    org_id TEXT PRIMARY KEY REFERENCES organizations (id),
    balance INTEGER NOT NULL DEFAULT 0,
    held INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0),
    used INTEGER NOT NULL DEFAULT 0 CHECK (used >= 0)
  ) STRICT;
  CREATE TRIGGER organizations_have_a_balance AFTER INSERT ON organizations BEGIN
    INSERT INTO balances (org_id) VALUES (NEW.id);
  END;

  -- Money reserved by requests that run; one that ended leaves no row. request_id: the id of the request row.
  CREATE TABLE holds (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id),
    project_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount >= 0),
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'orphaned')),
    owner TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX holds_to_recover ON holds (expires_at) WHERE state = 'open';

  -- Amounts are signed, charges below zero, so that a balance is the sum of its entries.
  CREATE TABLE ledger (
    id INTEGER PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id),
    request_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount <> 0 AND (kind <> 'charge' OR amount < 0)),
    created_at INTEGER NOT NULL,
    UNIQUE (request_id, kind)
  ) STRICT;
  CREATE TRIGGER ledger_refuses_update BEFORE UPDATE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
  END;
  CREATE TRIGGER ledger_refuses_delete BEFORE DELETE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
  END;

  -- Token counts are NULL when they were not reported. other_usage: the remaining axes, a JSON object.
  CREATE TABLE requests (
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
  ) STRICT;

  -- hour: its start. A dimension that a request lacks is ''.
  CREATE TABLE usage_hourly (
    hour INTEGER NOT NULL,
    org_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    source TEXT NOT NULL,
    requests INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    PRIMARY KEY (hour, org_id, project_id, key_id, provider, model, source)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX usage_hourly_of_key ON usage_hourly (key_id);

  -- Processes that may have open holds. started tells two processes of one pid apart.
  CREATE TABLE owners (
    id TEXT PRIMARY KEY,
    pid INTEGER NOT NULL,
    started TEXT NOT NULL,
    host TEXT NOT NULL,
    seen_at INTEGER NOT NULL
  ) STRICT;
`
