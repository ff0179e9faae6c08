/**
 * The schema, as the numbered steps that lead to it: step n brings `PRAGMA user_version` from n - 1 to n. A step that
 * has shipped is never edited: add another one. Money is integer nano-USD, times are Unix milliseconds. Request rows
 * and hourly sums outlive what they name, so they reference nothing. Steps of 40 lines and more have files of their own.
 */
import { step as start } from './migrations/1-start.ts'
import { step as trees } from './migrations/2-trees.ts'
import { step as accounts } from './migrations/3-accounts.ts'
import { step as policy } from './migrations/4-policy.ts'
import { step as checks } from './migrations/6-checks.ts'
import { step as jobs } from './migrations/10-jobs.ts'
import { step as oauth } from './migrations/12-oauth.ts'
import { step as labels } from './migrations/24-labels.ts'
import { step as alerts } from './migrations/31-alerts.ts'

/** In nano-USD. */
const DOLLAR = 1_000_000_000

/** SQL; the step at index n leads to version n + 1. */
export const migrations: readonly string[] = [
  start,
  trees,
  accounts,
  policy,
  // Rules of members, what provider keys are for and may spend, sessions that keys begin; progress of streams.
  `
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
`,
  checks,
  // Which key a key has succeeded: what the one has spent counts against the limits of the other.
  `
  -- succeeds: the key that was rolled.
  ALTER TABLE keys ADD COLUMN succeeds TEXT REFERENCES keys (id);
  UPDATE keys SET succeeds = rolled.old FROM (
    SELECT subject AS old, json_extract(became, '$.id') AS new FROM audit WHERE action = 'keys.roll'
  ) AS rolled WHERE keys.id = rolled.new;
`,
  // Whether a project's parameters that the interface does not list go to its providers.
  `
  ALTER TABLE projects ADD COLUMN pass_parameters INTEGER NOT NULL DEFAULT 0 CHECK (pass_parameters IN (0, 1));
`,
  // Whether a project's prompts are marked for the caches of providers.
  `
  ALTER TABLE projects ADD COLUMN cache_prompts INTEGER NOT NULL DEFAULT 0 CHECK (cache_prompts IN (0, 1));
`,
  jobs,
  // Columns for reports of a project: discounts, the time of the last addition, and an index for both.
  `
  ALTER TABLE usage_hourly ADD COLUMN savings INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE usage_hourly ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
  UPDATE usage_hourly SET updated_at = hour + 3600000;
  CREATE INDEX usage_hourly_of_project ON usage_hourly (project_id, hour);
`,
  oauth,
  // Responses that projects keep, sealed under a master key, and the bytes of each organization's.
  `
  ALTER TABLE projects ADD COLUMN responses_ms INTEGER CHECK (responses_ms > 0);

  -- session_id: of the end user whose own it is. bytes: of the texts, and of the row. turn, answer: sealed.
  CREATE TABLE responses (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    session_id TEXT,
    previous_id TEXT,
    created_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL CHECK (bytes > 0),
    master_key TEXT NOT NULL,
    answer_nonce BLOB NOT NULL,
    answer BLOB NOT NULL,
    turn_nonce BLOB NOT NULL,
    turn BLOB NOT NULL
  ) STRICT;
  CREATE INDEX responses_of_organization ON responses (org_id, created_at, id);
  CREATE INDEX responses_of_project ON responses (project_id, created_at);

  CREATE TABLE response_bytes (
    org_id TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TRIGGER responses_are_counted AFTER INSERT ON responses BEGIN
    INSERT INTO response_bytes (org_id, bytes) VALUES (NEW.org_id, NEW.bytes)
    ON CONFLICT (org_id) DO UPDATE SET bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER dropped_responses_are_counted AFTER DELETE ON responses BEGIN
    UPDATE response_bytes SET bytes = bytes - OLD.bytes WHERE org_id = OLD.org_id;
  END;
`,
  // Indexes for claims of jobs and for sums of kept results, which would scan all running jobs.
  `
  UPDATE jobs SET lease_owner = NULL, lease_until = NULL WHERE lease_until IS NULL OR completed_at IS NOT NULL;
  CREATE INDEX jobs_leased ON jobs (lease_owner, lease_until) WHERE lease_owner IS NOT NULL;
  CREATE INDEX jobs_free ON jobs (next_at) WHERE state IN ('creating', 'queued', 'in_progress') AND lease_owner IS NULL;
  CREATE INDEX jobs_kept ON jobs (org_id, result_bytes) WHERE result_blob IS NOT NULL;
`,
  // Client secrets of realtime sessions.
  `
  -- hash: SHA-256, hex. session: JSON of its settings, sealed under a master key.
  CREATE TABLE realtime_secrets (
    hash TEXT PRIMARY KEY,
    id TEXT NOT NULL,
    key_id TEXT NOT NULL REFERENCES keys (id),
    session TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX realtime_secrets_of_key ON realtime_secrets (key_id, expires_at);
  CREATE INDEX realtime_secrets_over ON realtime_secrets (expires_at);
`,
  // The bytes of each end user's stored responses, and the way to the oldest of them.
  `
  CREATE INDEX responses_of_session ON responses (session_id, created_at, id) WHERE session_id IS NOT NULL;
  CREATE TABLE response_session_bytes (
    session_id TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  INSERT INTO response_session_bytes (session_id, bytes)
    SELECT session_id, sum(bytes) FROM responses WHERE session_id IS NOT NULL GROUP BY session_id;
  CREATE TRIGGER session_responses_are_counted AFTER INSERT ON responses WHEN NEW.session_id IS NOT NULL BEGIN
    INSERT INTO response_session_bytes (session_id, bytes) VALUES (NEW.session_id, NEW.bytes)
    ON CONFLICT (session_id) DO UPDATE SET bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER dropped_session_responses_are_counted AFTER DELETE ON responses WHEN OLD.session_id IS NOT NULL BEGIN
    UPDATE response_session_bytes SET bytes = bytes - OLD.bytes WHERE session_id = OLD.session_id;
    DELETE FROM response_session_bytes WHERE session_id = OLD.session_id AND bytes <= 0;
  END;
`,
  // The jobs that wait of each organization at each provider, in the order in which they are due.
  `
  CREATE INDEX jobs_unclaimed ON jobs (org_id, provider, next_at)
    WHERE state IN ('queued', 'in_progress') AND lease_owner IS NULL;
`,
  // Spending of each key, which is read without a sum over all hours.
  `
  -- spent_units: whole dollars. spent_rest: nano-USD beside them. Apart, as their sum may be larger than an integer.
  ALTER TABLE keys ADD COLUMN spent_units INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE keys ADD COLUMN spent_rest INTEGER NOT NULL DEFAULT 0;
  UPDATE keys SET spent_units = units, spent_rest = rest FROM (
    SELECT key_id, sum(cost / ${DOLLAR}) AS units, sum(cost % ${DOLLAR}) AS rest FROM usage_hourly GROUP BY key_id
  ) WHERE id = key_id;

  CREATE TRIGGER spending_is_counted AFTER INSERT ON usage_hourly WHEN NEW.cost <> 0 BEGIN
    UPDATE keys SET spent_units = spent_units + NEW.cost / ${DOLLAR}, spent_rest = spent_rest + NEW.cost % ${DOLLAR}
    WHERE id = NEW.key_id;
  END;
  CREATE TRIGGER further_spending_is_counted AFTER UPDATE OF cost ON usage_hourly WHEN NEW.cost <> OLD.cost BEGIN
    UPDATE keys SET spent_units = spent_units + NEW.cost / ${DOLLAR} - OLD.cost / ${DOLLAR},
      spent_rest = spent_rest + NEW.cost % ${DOLLAR} - OLD.cost % ${DOLLAR}
    WHERE id = NEW.key_id;
  END;
`,
  // The organization of each callback, so that claims read the first ones of each and not all that wait.
  `
  ALTER TABLE job_events ADD COLUMN org_id TEXT NOT NULL DEFAULT '';
  UPDATE job_events SET org_id = jobs.org_id FROM jobs WHERE jobs.id = job_id;
  UPDATE job_events SET lease_owner = NULL, lease_until = NULL
    WHERE lease_owner IS NOT NULL AND (state <> 'pending' OR lease_until IS NULL);
  CREATE INDEX job_events_unclaimed ON job_events (org_id, next_at) WHERE state = 'pending' AND lease_owner IS NULL;
  CREATE INDEX job_events_leased ON job_events (lease_owner, lease_until) WHERE lease_owner IS NOT NULL;
`,
  // Ways to the rows of one project or key, in place of reads of all rows.
  `
  -- Rows that reference a key, which SQLite looks for when one is deleted; and the keys of a member.
  CREATE INDEX keys_by_predecessor ON keys (succeeds) WHERE succeeds IS NOT NULL;
  CREATE INDEX oauth_grants_by_key ON oauth_grants (key_id);
  CREATE INDEX keys_of_member ON keys (created_by) WHERE created_by IS NOT NULL;

  -- The jobs that a project lists, in their order.
  CREATE INDEX jobs_listed ON jobs (project_id, kind, created_at, id) WHERE deleted_at IS NULL AND state <> 'creating';
  DROP INDEX jobs_of_project;
`,
  // Owner of the job's provider: two organizations may have own providers with the same id.
  'ALTER TABLE jobs ADD COLUMN owner TEXT',
  // The end user whose job it is. Earlier jobs are their project's: no end user reads them.
  'ALTER TABLE jobs ADD COLUMN session TEXT',
  // Adds a JSON object for the request log: the amount held, and the attempts.
  'ALTER TABLE requests ADD COLUMN detail TEXT',
  // End users and tags of requests.
  labels,
  // Limits as before, and those of end users. subject: of these, the id.
  `
  CREATE TABLE budgets_of_all_kinds (
    id TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('key', 'member', 'provider-key', 'session', 'end-user')),
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
  CREATE INDEX budgets_to_drop ON budgets (period_at) WHERE kind = 'end-user' AND period <> 'total';
`,
  // Content of requests, where projects keep it.
  `
  ALTER TABLE projects ADD COLUMN content_ms INTEGER CHECK (content_ms > 0);
  -- nonce, ciphertext: sealed under a master key.
  CREATE TABLE contents (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    master_key TEXT NOT NULL,
    nonce BLOB NOT NULL,
    ciphertext BLOB NOT NULL
  ) STRICT;
  CREATE INDEX contents_of_project ON contents (project_id, created_at);
`,
  // Rate limits of organizations, projects, members and keys.
  `
  -- limits: a JSON object of limits by kind.
  CREATE TABLE rate_limits (
    subject TEXT PRIMARY KEY,
    limits TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
`,
  // End user and tags of the request that a job is for: a JSON object.
  'ALTER TABLE jobs ADD COLUMN labels TEXT',
  // Keeps a value that is sealed under the master keys.
  `
  CREATE TABLE master_key_check (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    sealed TEXT NOT NULL
  ) STRICT;
`,
  // Weight and limits per minute of a provider key: a JSON object.
  'ALTER TABLE provider_keys ADD COLUMN load TEXT',
  alerts,
  // Adds the action at a limit on money: `refuse`, `notify` or `use:MODEL`. NULL refuses.
  'ALTER TABLE budgets ADD COLUMN on_limit TEXT',
  // Days whose hourly sums are added up: see `src/stores/sql/days.ts`.
  `
  -- day: its start, UTC. state: 'stale', 'summed', or where its sums go on, as a JSON array.
  CREATE TABLE usage_days (
    day INTEGER PRIMARY KEY,
    state TEXT NOT NULL
  ) STRICT;
  CREATE TRIGGER late_usage_makes_stale AFTER INSERT ON usage_hourly BEGIN
    UPDATE usage_days SET state = 'stale' WHERE day = NEW.hour - NEW.hour % 86400000;
  END;
  CREATE TRIGGER further_late_usage_makes_stale AFTER UPDATE ON usage_hourly BEGIN
    UPDATE usage_days SET state = 'stale' WHERE day = NEW.hour - NEW.hour % 86400000;
  END;
`,
  // Limits as before, and those of projects.
  `
  CREATE TABLE budgets_of_all_kinds (
    id TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('key', 'member', 'project', 'provider-key', 'session', 'end-user')),
    period TEXT NOT NULL CHECK (period IN ('total', 'hour', 'day', 'week', 'month')),
    zone TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount >= 0),
    period_at INTEGER NOT NULL,
    spent INTEGER NOT NULL CHECK (spent >= 0),
    held INTEGER NOT NULL CHECK (held >= 0),
    on_limit TEXT
  ) STRICT, WITHOUT ROWID;
  INSERT INTO budgets_of_all_kinds
    SELECT id, subject, kind, period, zone, amount, period_at, spent, held, on_limit FROM budgets;
  DROP TABLE budgets;
  ALTER TABLE budgets_of_all_kinds RENAME TO budgets;
  CREATE UNIQUE INDEX budgets_of_subject ON budgets (subject, period = 'total');
  CREATE INDEX budgets_to_drop ON budgets (period_at) WHERE kind = 'end-user' AND period <> 'total';
`,
]
