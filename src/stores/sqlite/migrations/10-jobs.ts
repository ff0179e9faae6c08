/** Work that outlives its request, and who is told of its end. */
export const step = `
  -- Sealed under a master key: result_url, callback_url, callback_secret. amount, funds, budgets: copies of the hold.
  CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    log_id TEXT NOT NULL UNIQUE,
    request_id TEXT NOT NULL,
    org_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    source TEXT,
    endpoint TEXT NOT NULL,
    requested_model TEXT NOT NULL,
    model TEXT NOT NULL,
    provider TEXT NOT NULL,
    mapping TEXT NOT NULL,
    region TEXT,
    credential TEXT NOT NULL,
    wire TEXT NOT NULL,
    upstream_id TEXT,
    params TEXT NOT NULL,
    state TEXT NOT NULL
      CHECK (state IN ('creating', 'queued', 'in_progress', 'completed', 'failed', 'canceled', 'expired')),
    progress INTEGER,
    error TEXT,
    idempotency TEXT,
    request_hash TEXT,
    price TEXT NOT NULL,
    discount INTEGER NOT NULL,
    hold_id TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount >= 0),
    funds TEXT NOT NULL,
    budgets TEXT,
    cost INTEGER CHECK (cost >= 0),
    settled_at INTEGER,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    completed_at INTEGER,
    deadline_at INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    expires_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    lease_owner TEXT,
    lease_until INTEGER,
    fence INTEGER NOT NULL DEFAULT 0,
    result_kind TEXT CHECK (result_kind IN ('url', 'own', 'blob')),
    result_url TEXT,
    result_blob TEXT,
    result_type TEXT,
    result_bytes INTEGER,
    result_etag TEXT,
    callback_url TEXT,
    callback_secret TEXT,
    callback_state TEXT NOT NULL CHECK (callback_state IN ('none', 'pending', 'delivered', 'failed')),
    callback_delivered_at INTEGER,
    deleted_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX jobs_by_idempotency ON jobs (project_id, idempotency) WHERE idempotency IS NOT NULL;
  CREATE INDEX jobs_running ON jobs (next_at) WHERE state IN ('creating', 'queued', 'in_progress');
  CREATE INDEX jobs_with_results ON jobs (expires_at) WHERE result_kind IS NOT NULL;
  CREATE INDEX jobs_of_project ON jobs (project_id, created_at DESC);
  CREATE INDEX jobs_ended ON jobs (completed_at) WHERE completed_at IS NOT NULL;
  CREATE INDEX jobs_by_blob ON jobs (result_blob) WHERE result_blob IS NOT NULL;

  -- Attempts to tell the end of a job; the body holds a signed address, so that it is made anew each time.
  CREATE TABLE job_events (
    event_id TEXT NOT NULL,
    job_id TEXT NOT NULL REFERENCES jobs (id),
    type TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'retrying', 'delivered', 'failed')),
    next_at INTEGER NOT NULL,
    tried_at INTEGER,
    delivered_at INTEGER,
    request_headers TEXT,
    body_sha256 TEXT,
    status INTEGER,
    response_body TEXT,
    error TEXT,
    lease_owner TEXT,
    lease_until INTEGER,
    fence INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (event_id, attempt),
    UNIQUE (job_id, type, attempt)
  ) STRICT;
  CREATE INDEX job_events_due ON job_events (next_at) WHERE state = 'pending';
`
