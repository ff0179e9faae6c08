/** Keeps alerts. Their callbacks are events as those of jobs are, so that an event may belong to either. */

/** SQL. */
export const step = `
  -- unique_key: of what is told once; free again from ends_at on. rule: the entry of the configuration. body: JSON.
  CREATE TABLE alerts (
    id TEXT PRIMARY KEY,
    unique_key TEXT NOT NULL UNIQUE,
    rule TEXT NOT NULL,
    org_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    ends_at INTEGER,
    body TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX alerts_over ON alerts (ends_at) WHERE ends_at IS NOT NULL;

  -- job_id: of a job, or of an alert.
  CREATE TABLE events_of_all (
    event_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
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
    org_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (event_id, attempt),
    UNIQUE (job_id, type, attempt)
  ) STRICT;
  INSERT INTO events_of_all
    SELECT event_id, job_id, type, attempt, state, next_at, tried_at, delivered_at, request_headers, body_sha256, status,
      response_body, error, lease_owner, lease_until, fence, org_id
    FROM job_events;
  DROP TABLE job_events;
  ALTER TABLE events_of_all RENAME TO job_events;
  CREATE INDEX job_events_due ON job_events (next_at) WHERE state = 'pending';
  CREATE INDEX job_events_unclaimed ON job_events (org_id, next_at) WHERE state = 'pending' AND lease_owner IS NULL;
  CREATE INDEX job_events_leased ON job_events (lease_owner, lease_until) WHERE lease_owner IS NOT NULL;
`
