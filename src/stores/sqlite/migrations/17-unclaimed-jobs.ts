/** The jobs that wait of each organization at each provider, in the order in which they are due. */
export const step = `
  CREATE INDEX jobs_unclaimed ON jobs (org_id, provider, next_at)
    WHERE state IN ('queued', 'in_progress') AND lease_owner IS NULL;
`
