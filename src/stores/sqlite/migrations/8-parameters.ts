/** Whether a project's parameters that the interface does not list go to its providers. */
export const step = `
  ALTER TABLE projects ADD COLUMN pass_parameters INTEGER NOT NULL DEFAULT 0 CHECK (pass_parameters IN (0, 1));
`
