/** Ways to the rows of one project or key, in place of reads of all rows. */
export const step = `
  -- Rows that reference a key, which SQLite looks for when one is deleted; and the keys of a member.
  CREATE INDEX keys_by_predecessor ON keys (succeeds) WHERE succeeds IS NOT NULL;
  CREATE INDEX oauth_grants_by_key ON oauth_grants (key_id);
  CREATE INDEX keys_of_member ON keys (created_by) WHERE created_by IS NOT NULL;

  -- The jobs that a project lists, in their order.
  CREATE INDEX jobs_listed ON jobs (project_id, kind, created_at, id) WHERE deleted_at IS NULL AND state <> 'creating';
  DROP INDEX jobs_of_project;
`
