/** Whether a project's prompts are marked for the caches of providers. */
export const step = `
  ALTER TABLE projects ADD COLUMN cache_prompts INTEGER NOT NULL DEFAULT 0 CHECK (cache_prompts IN (0, 1));
`
