/** Jobs that outlive their requests, and their callbacks. */

/** SQL; brings the schema from version 4 to 5. */
export const step = `
  CREATE TABLE jobs (
    id text COLLATE "C" PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    log_id text COLLATE "C" NOT NULL UNIQUE,
    request_id text COLLATE "C" NOT NULL,
    org_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    source text COLLATE "C",
    endpoint text COLLATE "C" NOT NULL,
    requested_model text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    provider text COLLATE "C" NOT NULL,
    mapping text COLLATE "C" NOT NULL,
    region text COLLATE "C",
    credential text COLLATE "C" NOT NULL,
    wire text COLLATE "C" NOT NULL,
    upstream_id text COLLATE "C",
    params text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL
      CHECK (state IN ('creating', 'queued', 'in_progress', 'completed', 'failed', 'canceled', 'expired')),
    progress bigint,
    error text COLLATE "C",
    idempotency text COLLATE "C",
    request_hash text COLLATE "C",
    price text COLLATE "C" NOT NULL,
    discount bigint NOT NULL,
    hold_id text COLLATE "C" NOT NULL,
    amount bigint NOT NULL CHECK (amount >= 0),
    funds text COLLATE "C" NOT NULL,
    budgets text COLLATE "C",
    cost bigint CHECK (cost >= 0),
    settled_at bigint,
    created_at bigint NOT NULL,
    started_at bigint,
    completed_at bigint,
    deadline_at bigint NOT NULL,
    next_at bigint NOT NULL,
    expires_at bigint,
    attempts bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    lease_owner text COLLATE "C",
    lease_until bigint,
    fence bigint NOT NULL DEFAULT 0,
    result_kind text COLLATE "C" CHECK (result_kind IN ('url', 'own', 'blob')),
    result_url text COLLATE "C",
    result_blob text COLLATE "C",
    result_type text COLLATE "C",
    result_bytes bigint,
    result_etag text COLLATE "C",
    callback_url text COLLATE "C",
    callback_secret text COLLATE "C",
    callback_state text COLLATE "C" NOT NULL CHECK (callback_state IN ('none', 'pending', 'delivered', 'failed')),
    callback_delivered_at bigint,
    deleted_at bigint,
    owner text COLLATE "C",
    session text COLLATE "C",
    rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE
  );
  CREATE UNIQUE INDEX jobs_by_idempotency ON jobs (project_id, idempotency) WHERE idempotency IS NOT NULL;
  CREATE INDEX jobs_running ON jobs (next_at) WHERE state IN ('creating', 'queued', 'in_progress');
  CREATE INDEX jobs_with_results ON jobs (expires_at) WHERE result_kind IS NOT NULL;
  CREATE INDEX jobs_ended ON jobs (completed_at) WHERE completed_at IS NOT NULL;
  CREATE INDEX jobs_by_blob ON jobs (result_blob) WHERE result_blob IS NOT NULL;

  CREATE TABLE job_events (
    event_id text COLLATE "C" NOT NULL,
    job_id text COLLATE "C" NOT NULL REFERENCES jobs (id),
    type text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN ('pending', 'retrying', 'delivered', 'failed')),
    next_at bigint NOT NULL,
    tried_at bigint,
    delivered_at bigint,
    request_headers text COLLATE "C",
    body_sha256 text COLLATE "C",
    status bigint,
    response_body text COLLATE "C",
    error text COLLATE "C",
    lease_owner text COLLATE "C",
    lease_until bigint,
    fence bigint NOT NULL DEFAULT 0,
    org_id text COLLATE "C" NOT NULL DEFAULT '',
    rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    PRIMARY KEY (event_id, attempt),
    UNIQUE (job_id, type, attempt)
  );
  CREATE INDEX job_events_due ON job_events (next_at) WHERE state = 'pending';
  CREATE INDEX jobs_leased ON jobs (lease_owner, lease_until) WHERE lease_owner IS NOT NULL;
  CREATE INDEX jobs_free ON jobs (next_at)
    WHERE state IN ('creating', 'queued', 'in_progress') AND lease_owner IS NULL;
  CREATE INDEX jobs_kept ON jobs (org_id, result_bytes) WHERE result_blob IS NOT NULL;
  CREATE INDEX jobs_unclaimed ON jobs (org_id, provider, next_at)
    WHERE state IN ('queued', 'in_progress') AND lease_owner IS NULL;
  CREATE INDEX job_events_unclaimed ON job_events (org_id, next_at) WHERE state = 'pending' AND lease_owner IS NULL;
  CREATE INDEX job_events_leased ON job_events (lease_owner, lease_until) WHERE lease_owner IS NOT NULL;
  CREATE INDEX jobs_listed ON jobs (project_id, kind, created_at, id)
    WHERE deleted_at IS NULL AND state <> 'creating';

`
