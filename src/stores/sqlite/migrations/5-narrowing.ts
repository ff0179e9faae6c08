/** Rules of members, what provider keys are for and may spend, sessions that keys begin; progress of streams. */
export const step = `
  -- key_id and member_id NULL: for all keys of the organization.
  ALTER TABLE rules ADD COLUMN member_id TEXT REFERENCES members (id);

  -- models: a JSON array of names, NULL for all.
  ALTER TABLE provider_keys ADD COLUMN models TEXT;

  -- parent_id: the key that began the session, which pays for it. models: as above.
  ALTER TABLE keys ADD COLUMN parent_id TEXT REFERENCES keys (id);
  ALTER TABLE keys ADD COLUMN models TEXT;
  CREATE INDEX sessions_of_key ON keys (parent_id, expires_at) WHERE parent_id IS NOT NULL;

  -- What a stream has come to so far, a JSON object of usage and cost; NULL until that is noted.
  ALTER TABLE holds ADD COLUMN progress TEXT;

  -- As before, for two more kinds.
  CREATE TABLE budgets_of_all_kinds (
    id TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('key', 'member', 'provider-key', 'session')),
    period TEXT NOT NULL CHECK (period IN ('total', 'hour', 'day', 'week', 'month')),
    zone TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount >= 0),
    period_at INTEGER NOT NULL,
    spent INTEGER NOT NULL CHECK (spent >= 0),
    held INTEGER NOT NULL CHECK (held >= 0)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO budgets_of_all_kinds
    SELECT id, subject, kind, period, zone, amount, period_at, spent, held FROM budgets;
  DROP TABLE budgets;
  ALTER TABLE budgets_of_all_kinds RENAME TO budgets;
  CREATE UNIQUE INDEX budgets_of_subject ON budgets (subject, period = 'total');
`
