/** What claims of jobs, and sums of what is kept, read without a scan of all that runs. */
export const step = `
  UPDATE jobs SET lease_owner = NULL, lease_until = NULL WHERE lease_until IS NULL OR completed_at IS NOT NULL;
  CREATE INDEX jobs_leased ON jobs (lease_owner, lease_until) WHERE lease_owner IS NOT NULL;
  CREATE INDEX jobs_free ON jobs (next_at) WHERE state IN ('creating', 'queued', 'in_progress') AND lease_owner IS NULL;
  CREATE INDEX jobs_kept ON jobs (org_id, result_bytes) WHERE result_blob IS NOT NULL;
`
