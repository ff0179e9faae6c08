/** What reports of a project read: what discounts took off, when a sum was last added to, and the way to both. */
export const step = `
  ALTER TABLE usage_hourly ADD COLUMN savings INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE usage_hourly ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
  UPDATE usage_hourly SET updated_at = hour + 3600000;
  CREATE INDEX usage_hourly_of_project ON usage_hourly (project_id, hour);
`
