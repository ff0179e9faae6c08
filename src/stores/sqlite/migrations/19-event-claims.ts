/** The organization of each callback, so that claims read the first ones of each and not all that wait. */
export const step = `
  ALTER TABLE job_events ADD COLUMN org_id TEXT NOT NULL DEFAULT '';
  UPDATE job_events SET org_id = jobs.org_id FROM jobs WHERE jobs.id = job_id;
  UPDATE job_events SET lease_owner = NULL, lease_until = NULL
    WHERE lease_owner IS NOT NULL AND (state <> 'pending' OR lease_until IS NULL);
  CREATE INDEX job_events_unclaimed ON job_events (org_id, next_at) WHERE state = 'pending' AND lease_owner IS NULL;
  CREATE INDEX job_events_leased ON job_events (lease_owner, lease_until) WHERE lease_owner IS NOT NULL;
`
