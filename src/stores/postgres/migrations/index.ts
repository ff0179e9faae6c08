/**
 * The schema on PostgreSQL, as the numbered steps that lead to it. A step that has shipped is never edited: add another
 * one. Money is bigint nano-USD, times are Unix milliseconds, texts are compared by their bytes. A step only adds, so that
 * the version before it goes on running beside it; what is not used any more goes a version later. Functions carry their
 * version in their names for the same reason.
 */
import { step as ledger } from './1-ledger.ts'
import { step as functions, names } from './2-functions.ts'
import { step as accounts } from './3-accounts.ts'
import { step as stored } from './4-stored.ts'
import { step as jobs } from './5-jobs.ts'
import { step as labels } from './7-labels.ts'
import { step as sums } from './16-sums.ts'
import { step as plans } from './21-plans.ts'

/** Columns of a request row from version 6 on. */
const columns = [...names, 'detail']

/** Keeps what only the request log shows of a request: the amount held, and its attempts. */
const requestDetail = `
  -- detail: a JSON object; NULL in rows of earlier versions, and of requests that no provider was asked for.
  ALTER TABLE requests ADD COLUMN detail text;
  ALTER TYPE settlement_v1 ADD ATTRIBUTE detail text;

  CREATE OR REPLACE FUNCTION add_requests_v1(p_rows settlement_v1[]) RETURNS settlement_v1[] LANGUAGE plpgsql AS $$
  DECLARE
    added text[];
  BEGIN
    WITH new AS (
      INSERT INTO requests (${columns.join(', ')})
      SELECT ${columns.map(name => `x.${name}`).join(', ')} FROM unnest(p_rows) x ORDER BY x.id
      ON CONFLICT (id) DO NOTHING RETURNING id
    )
    SELECT array_agg(id) INTO added FROM new;
    IF cardinality(added) = cardinality(p_rows) THEN RETURN p_rows; END IF;
    RETURN (SELECT array_agg(x) FROM unnest(p_rows) x WHERE x.id = ANY (added));
  END $$;
`

/** Adds limits of end users. */
const endUserLimits = `
  -- subject: of a limit of an end user, its id.
  ALTER TABLE budgets DROP CONSTRAINT budgets_kind_check;
  ALTER TABLE budgets ADD CONSTRAINT budgets_kind_check
    CHECK (kind IN ('key', 'member', 'provider-key', 'session', 'end-user'));
  CREATE INDEX budgets_to_drop ON budgets (period_at) WHERE kind = 'end-user' AND period <> 'total';
`

/** Adds the content of requests, where projects keep it. */
const contents = `
  ALTER TABLE projects ADD COLUMN content_ms bigint CHECK (content_ms > 0);
  -- nonce, ciphertext: sealed under a master key.
  CREATE TABLE contents (
    id text COLLATE "C" PRIMARY KEY,
    org_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    master_key text NOT NULL,
    nonce bytea NOT NULL,
    ciphertext bytea NOT NULL
  );
  CREATE INDEX contents_of_project ON contents (project_id, created_at);
`

/** Keeps rate limits of organizations, projects, members and keys. */
const rateLimits = `
  -- limits: a JSON object of limits by kind.
  CREATE TABLE rate_limits (
    subject text COLLATE "C" PRIMARY KEY,
    limits text COLLATE "C" NOT NULL
  );
`

/** Keeps what nodes say about themselves: an address once they serve, requests in flight, and that they drain. */
const nodeReports = `
  ALTER TABLE nodes ADD COLUMN address text;
  ALTER TABLE nodes ADD COLUMN in_flight bigint NOT NULL DEFAULT 0;
  ALTER TABLE nodes ADD COLUMN draining boolean NOT NULL DEFAULT false;
`

/** Keeps a value that is sealed under the master keys of the nodes. */
const masterKeyCheck = `
  CREATE TABLE master_key_check (
    id integer PRIMARY KEY CHECK (id = 1),
    sealed text NOT NULL
  );
`

/** Keeps alerts. Their callbacks are events as those of jobs are, so that an event may belong to either. */
const alerts = `
  -- unique_key: of what is told once; free again from ends_at on. rule: the entry of the configuration. body: JSON.
  CREATE TABLE alerts (
    id text COLLATE "C" PRIMARY KEY,
    unique_key text COLLATE "C" NOT NULL UNIQUE,
    rule text COLLATE "C" NOT NULL,
    org_id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    ends_at bigint,
    body text NOT NULL
  );
  CREATE INDEX alerts_over ON alerts (ends_at) WHERE ends_at IS NOT NULL;
  ALTER TABLE job_events DROP CONSTRAINT job_events_job_id_fkey;
`

/** Makes the day of a late sum stale. `unless`: many versions of its row in one transaction make each further one slower. */
const lateUsage = (unless = '') => `
  CREATE OR REPLACE FUNCTION late_usage_v1() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO usage_days (day, state) VALUES (NEW.hour - NEW.hour % 86400000, 'stale')
    ON CONFLICT (day) DO UPDATE SET state = 'stale' ${unless};
    RETURN NULL;
  END $$;`

/** Adds the days whose hourly sums are added up. What comes after a day has ended makes it stale: see `OVER_MS`. */
const usageDays = `
  -- day: its start, UTC. state: 'stale', 'summed', or where its sums go on, as a JSON array.
  CREATE TABLE usage_days (
    day bigint PRIMARY KEY,
    state text NOT NULL
  );
${lateUsage()}
  -- From an hour after the day on: an hour before it may be added up, so that no transaction of before still runs then.
  CREATE TRIGGER late_usage_makes_stale AFTER INSERT OR UPDATE ON usage_hourly FOR EACH ROW
  WHEN (NEW.hour - NEW.hour % 86400000 + 90000000 <= date_part('epoch', now()) * 1000)
  EXECUTE FUNCTION late_usage_v1();
`

/** Adds limits of projects. */
const projectLimits = `
  ALTER TABLE budgets DROP CONSTRAINT budgets_kind_check;
  ALTER TABLE budgets ADD CONSTRAINT budgets_kind_check
    CHECK (kind IN ('key', 'member', 'project', 'provider-key', 'session', 'end-user'));
`

/** SQL; the step at index n leads to version n + 1. */
export const migrations: readonly string[] = [
  ledger,
  functions,
  accounts,
  stored,
  jobs,
  requestDetail,
  labels(columns),
  endUserLimits,
  contents,
  rateLimits,
  // End user and tags of the request that a job is for: a JSON object.
  'ALTER TABLE jobs ADD COLUMN labels text',
  nodeReports,
  masterKeyCheck,
  // Weight and limits per minute of a provider key: a JSON object.
  'ALTER TABLE provider_keys ADD COLUMN load text COLLATE "C"',
  alerts,
  sums,
  // Adds the action at a limit on money: `refuse`, `notify` or `use:MODEL`. NULL refuses.
  'ALTER TABLE budgets ADD COLUMN on_limit text COLLATE "C"',
  usageDays,
  projectLimits,
  lateUsage("WHERE usage_days.state <> 'stale'"),
  plans,
]
