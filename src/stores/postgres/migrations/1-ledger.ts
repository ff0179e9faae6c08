/** Money and usage: what the ledger's functions lock, in the order of `2-functions.ts`. */

/** SQL; brings the schema from version 0 to 1. */
export const step = `
  -- Read by the store's clock, Unix milliseconds.
  CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE
    AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

  -- Processes that hold money and write rows.
  CREATE TABLE nodes (
    id text COLLATE "C" PRIMARY KEY,
    host text NOT NULL,
    pid integer NOT NULL,
    version text NOT NULL,
    started_at bigint NOT NULL,
    seen_at bigint NOT NULL
  );

  -- version rises with every change of what nodes keep in memory.
  CREATE TABLE changes (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    version bigint NOT NULL
  );
  INSERT INTO changes (version) VALUES (1);

  -- balance and used follow from the ledger, held from the open holds.
  CREATE TABLE balances (
    org_id text COLLATE "C" PRIMARY KEY,
    balance bigint NOT NULL DEFAULT 0,
    held bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
    used bigint NOT NULL DEFAULT 0 CHECK (used >= 0)
  ) WITH (fillfactor = 50);

  -- A limit with what is spent of it in the period that began at period_at, and held now. ends_at: when that period
  -- ends; 0 while nobody has computed it, which the ledger does before it counts anything.
  CREATE TABLE budgets (
    id text COLLATE "C" PRIMARY KEY,
    subject text COLLATE "C" NOT NULL,
    kind text NOT NULL CHECK (kind IN ('key', 'member', 'provider-key', 'session')),
    period text NOT NULL CHECK (period IN ('total', 'hour', 'day', 'week', 'month')),
    zone text NOT NULL,
    amount bigint NOT NULL CHECK (amount >= 0),
    period_at bigint NOT NULL,
    ends_at bigint NOT NULL DEFAULT 0,
    spent bigint NOT NULL CHECK (spent >= 0),
    held bigint NOT NULL CHECK (held >= 0)
  ) WITH (fillfactor = 50);
  CREATE UNIQUE INDEX budgets_of_subject ON budgets (subject, (period = 'total'));

  -- used: in the month that began at month_at; premium_used: in the week that began at week_at. plan NULL: it ended.
  CREATE TABLE subscriptions (
    org_id text COLLATE "C" PRIMARY KEY,
    plan text CHECK (plan IN ('lite', 'pro', 'max')),
    since bigint NOT NULL,
    overflow boolean NOT NULL DEFAULT false,
    month_at bigint NOT NULL,
    used bigint NOT NULL DEFAULT 0 CHECK (used >= 0),
    held bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
    week_at bigint,
    premium_used bigint NOT NULL DEFAULT 0 CHECK (premium_used >= 0),
    premium_held bigint NOT NULL DEFAULT 0 CHECK (premium_held >= 0)
  ) WITH (fillfactor = 50);

  -- Money reserved by requests that run; one that ended leaves no row. request_id: the id of the request row.
  -- budgets: a JSON array of ids, NULL for none. progress: a JSON object of usage and cost.
  CREATE TABLE holds (
    id text COLLATE "C" PRIMARY KEY,
    org_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    request_id text COLLATE "C" NOT NULL,
    caller_id text NOT NULL,
    endpoint text NOT NULL,
    requested_model text NOT NULL,
    model text,
    provider text,
    amount bigint NOT NULL CHECK (amount >= 0),
    owner text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    funds text NOT NULL CHECK (funds IN ('credits', 'plan', 'premium', 'byok')),
    budgets text,
    progress text
  );
  CREATE INDEX holds_of_request ON holds (request_id);
  CREATE INDEX holds_of_owner ON holds (owner);
  CREATE INDEX holds_of_key ON holds (key_id);
  CREATE INDEX holds_to_recover ON holds (expires_at);

  -- Amounts are signed, charges below zero, so that a balance is the sum of its entries. A row is one transfer of amount
  -- from counter to account, so that the sum over all accounts is zero.
  CREATE TABLE ledger (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id text COLLATE "C" NOT NULL,
    request_id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    amount bigint NOT NULL CHECK (amount <> 0 AND (kind <> 'charge' OR amount < 0)),
    note text,
    created_at bigint NOT NULL,
    account text NOT NULL GENERATED ALWAYS AS (CASE kind WHEN 'plan' THEN 'plan' ELSE 'credits' END) STORED,
    counter text NOT NULL GENERATED ALWAYS AS (CASE WHEN kind IN ('charge', 'plan') THEN 'usage' ELSE 'payments' END) STORED,
    UNIQUE (request_id, kind)
  );
  CREATE INDEX payments_of_organization ON ledger (org_id, created_at) WHERE kind NOT IN ('charge', 'plan');
  CREATE FUNCTION ledger_is_append_only() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$;
  CREATE TRIGGER ledger_refuses_changes BEFORE UPDATE OR DELETE ON ledger
    FOR EACH ROW EXECUTE FUNCTION ledger_is_append_only();

  -- A partition for each day: ids begin with their time. Rows of other days are in the default one. Token counts are NULL
  -- when they were not reported. other_usage: the remaining axes, a JSON object. cost is what the provider's work is
  -- worth, charged what funds were debited for it, storage included.
  CREATE TABLE requests (
    id text COLLATE "C" PRIMARY KEY,
    request_id text NOT NULL,
    at bigint NOT NULL,
    org_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    endpoint text NOT NULL,
    requested_model text NOT NULL,
    model text,
    provider text,
    source text,
    status integer NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('ok', 'error', 'aborted', 'orphaned')),
    error_code text,
    streamed boolean NOT NULL,
    cached boolean NOT NULL,
    attempts integer NOT NULL,
    duration_ms bigint NOT NULL,
    ttft_ms bigint,
    prompt_tokens bigint,
    completion_tokens bigint,
    cache_read_tokens bigint,
    cache_write_tokens bigint,
    reasoning_tokens bigint,
    other_usage text,
    estimated boolean NOT NULL,
    cost bigint CHECK (cost >= 0),
    funds text NOT NULL,
    charged bigint NOT NULL CHECK (charged >= 0),
    storage bigint NOT NULL CHECK (storage >= 0),
    discount bigint NOT NULL,
    tier text
  ) PARTITION BY RANGE (id);
  CREATE TABLE requests_of_other_days PARTITION OF requests DEFAULT;

  -- hour: its start. A dimension that a request lacks is ''. What a key has spent, in its row of keys, is counted by
  -- count_requests_v1 and no trigger, so that rows are locked in one order everywhere.
  CREATE TABLE usage_hourly (
    hour bigint NOT NULL,
    org_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    provider text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    requests bigint NOT NULL,
    errors bigint NOT NULL,
    cached bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    cost bigint NOT NULL,
    credits_cost bigint NOT NULL,
    byok_cost bigint NOT NULL,
    storage_cost bigint NOT NULL,
    savings bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (hour, org_id, project_id, key_id, provider, model, source)
  ) WITH (fillfactor = 70);
  CREATE INDEX usage_hourly_of_key ON usage_hourly (key_id, hour);
  CREATE INDEX usage_hourly_of_project ON usage_hourly (project_id, hour);

  -- What the request rows that were dropped for their age added up to.
  CREATE TABLE pruned (
    org_id text COLLATE "C" PRIMARY KEY,
    requests bigint NOT NULL,
    cost bigint NOT NULL,
    charged bigint NOT NULL
  );
`
