/** Ways to the rows of one project or key, in place of reads of all rows. */
export const step = `
  -- The jobs that a project lists, in their order.
  CREATE INDEX jobs_listed ON jobs (project_id, kind, created_at, id) WHERE deleted_at IS NULL AND state <> 'creating';
  DROP INDEX jobs_of_project;
`
