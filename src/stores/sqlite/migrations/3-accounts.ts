/** Limits, coding plans, discounts, members' access, the audit log; requests know who paid for them. */
export const step = `
  -- retains: pays for the storage of its data.
  ALTER TABLE organizations ADD COLUMN retains INTEGER NOT NULL DEFAULT 0;

  -- One who has left stays, because keys name it.
  ALTER TABLE members ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE members ADD COLUMN removed_at INTEGER;
  ALTER TABLE members ADD COLUMN all_projects INTEGER NOT NULL DEFAULT 1;
  CREATE TABLE member_projects (
    member_id TEXT NOT NULL REFERENCES members (id),
    project_id TEXT NOT NULL REFERENCES projects (id),
    PRIMARY KEY (member_id, project_id)
  ) STRICT, WITHOUT ROWID;

  -- A limit of a key or a member with what is spent of it in the period that began at period_at, and held now.
  -- Holds name limits by id, so one that is set anew gets a new id.
  CREATE TABLE budgets (
    id TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('key', 'member')),
    period TEXT NOT NULL CHECK (period IN ('total', 'hour', 'day', 'week', 'month')),
    zone TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount >= 0),
    period_at INTEGER NOT NULL,
    spent INTEGER NOT NULL CHECK (spent >= 0),
    held INTEGER NOT NULL CHECK (held >= 0)
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX budgets_of_subject ON budgets (subject, period = 'total');

  -- used: in the month that began at month_at; premium_used: in the week that began at week_at. plan NULL: it ended.
  CREATE TABLE subscriptions (
    org_id TEXT PRIMARY KEY REFERENCES organizations (id),
    plan TEXT CHECK (plan IN ('lite', 'pro', 'max')),
    since INTEGER NOT NULL,
    overflow INTEGER NOT NULL DEFAULT 0,
    month_at INTEGER NOT NULL,
    used INTEGER NOT NULL DEFAULT 0 CHECK (used >= 0),
    held INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0),
    week_at INTEGER,
    premium_used INTEGER NOT NULL DEFAULT 0 CHECK (premium_used >= 0),
    premium_held INTEGER NOT NULL DEFAULT 0 CHECK (premium_held >= 0)
  ) STRICT, WITHOUT ROWID;

  -- '' stands for any organization, provider or model.
  CREATE TABLE discounts (
    org_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    millionths INTEGER NOT NULL CHECK (millionths BETWEEN 1 AND 1000000),
    PRIMARY KEY (org_id, provider, model)
  ) STRICT, WITHOUT ROWID;

  -- budgets: a JSON array of ids, NULL for none.
  ALTER TABLE holds ADD COLUMN funds TEXT NOT NULL DEFAULT 'credits'
    CHECK (funds IN ('credits', 'plan', 'premium', 'byok'));
  ALTER TABLE holds ADD COLUMN budgets TEXT;

  -- Double entry: a row is one transfer of amount from counter to account, so that the sum over all accounts is zero.
  ALTER TABLE ledger ADD COLUMN account TEXT NOT NULL
    GENERATED ALWAYS AS (CASE kind WHEN 'plan' THEN 'plan' ELSE 'credits' END) VIRTUAL;
  ALTER TABLE ledger ADD COLUMN counter TEXT NOT NULL
    GENERATED ALWAYS AS (CASE WHEN kind IN ('charge', 'plan') THEN 'usage' ELSE 'payments' END) VIRTUAL;
  ALTER TABLE ledger ADD COLUMN note TEXT;
  CREATE INDEX payments_of_organization ON ledger (org_id, created_at) WHERE kind NOT IN ('charge', 'plan');

  -- cost is what the provider's work is worth, charged what funds were debited for it, storage included.
  ALTER TABLE requests ADD COLUMN funds TEXT NOT NULL DEFAULT 'credits';
  ALTER TABLE requests ADD COLUMN charged INTEGER NOT NULL DEFAULT 0 CHECK (charged >= 0);
  ALTER TABLE requests ADD COLUMN storage INTEGER NOT NULL DEFAULT 0 CHECK (storage >= 0);
  ALTER TABLE requests ADD COLUMN discount INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE requests ADD COLUMN tier TEXT;
  UPDATE requests SET charged = cost WHERE cost > 0;

  ALTER TABLE usage_hourly ADD COLUMN credits_cost INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE usage_hourly ADD COLUMN byok_cost INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE usage_hourly ADD COLUMN storage_cost INTEGER NOT NULL DEFAULT 0;
  UPDATE usage_hourly SET credits_cost = cost;

  -- What the request rows that were dropped for their age added up to.
  CREATE TABLE pruned (
    org_id TEXT PRIMARY KEY,
    requests INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    charged INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    org_id TEXT,
    subject TEXT NOT NULL,
    was TEXT,
    became TEXT
  ) STRICT;
  CREATE INDEX audit_of_organization ON audit (org_id, id);
  CREATE TRIGGER audit_refuses_update BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
  END;
  CREATE TRIGGER audit_refuses_delete BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
  END;
`
