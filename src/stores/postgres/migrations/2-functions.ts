/**
 * The ledger's functions: what most requests need, in one call for many of them. What needs the rules of periods, plans
 * or partial holds they leave to the node, which locks the same rows and computes with `src/stores/rules`.
 *
 * Rows are locked in one order everywhere, or processes would wait for each other in a circle: holds, request rows, hourly
 * sums, keys, limits, plans, balances; within each by id.
 */

/** Columns of a request row, as JSON gives them. */
const REQUEST = `
    id text, request_id text, at bigint, org_id text, project_id text, key_id text, endpoint text, requested_model text,
    model text, provider text, source text, status integer, outcome text, error_code text, streamed boolean,
    cached boolean, attempts integer, duration_ms bigint, ttft_ms bigint, prompt_tokens bigint, completion_tokens bigint,
    cache_read_tokens bigint, cache_write_tokens bigint, reasoning_tokens bigint, other_usage text, estimated boolean,
    cost bigint, funds text, charged bigint, storage bigint, discount bigint, tier text`

/** Their names. */
export const names = REQUEST.split(',').map(column => column.trim().split(' ')[0]!)
const NAMES = names.join(', ')

/** Begins a function whose commit does not wait for the disk. */
const COMMITTED = `PERFORM set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '500ms', true);`

/** SQL; brings the schema from version 1 to 2. */
export const step = `
  -- amount: what is held. wanted: what must have room. is_open: the balance may fall below zero.
  CREATE TYPE wanted_hold_v1 AS (
    n integer, id text, org_id text, project_id text, key_id text, request_id text, caller_id text, endpoint text,
    requested_model text, model text, provider text, amount bigint, wanted bigint, expires_at bigint, funds text,
    is_open boolean, limits text[]
  );
  -- hold_id: the hold that it ends. savings: of the discount.
  CREATE TYPE settlement_v1 AS (n integer, hold_id text, savings bigint,${REQUEST});
  -- What the end of a hold changes: held is given back, charge taken from credits, cost counted against limits.
  CREATE TYPE release_v1 AS (org_id text, funds text, held bigint, charge bigint, cost bigint, limits text[]);
  -- An addition to an hourly sum.
  CREATE TYPE hourly_v1 AS (
    hour bigint, org_id text, project_id text, key_id text, provider text, model text, source text, requests bigint,
    errors bigint, cached bigint, input_tokens bigint, output_tokens bigint, cached_tokens bigint,
    reasoning_tokens bigint, cost bigint, credits_cost bigint, byok_cost bigint, storage_cost bigint, savings bigint
  );

  -- Holds of credits, or of a caller's own key, that have room for all of them together. Returns their numbers; the node
  -- decides on the others one by one.
  CREATE FUNCTION hold_v1(p_rows json, p_owner text, p_now bigint) RETURNS integer[] LANGUAGE plpgsql AS $$
  DECLARE
    rows wanted_hold_v1[];
    ids text[];
    v_now bigint := coalesce(p_now, now_ms());
  BEGIN
    ${COMMITTED}
    SELECT array_agg(x) INTO rows FROM json_populate_recordset(NULL::wanted_hold_v1, p_rows) x;
    SELECT array_agg(DISTINCT l) INTO ids FROM unnest(rows) x, unnest(x.limits) l;
    IF ids IS NOT NULL THEN
      PERFORM 1 FROM budgets WHERE id = ANY (ids) ORDER BY id FOR NO KEY UPDATE;
      SELECT array_agg(b.id) INTO ids
      FROM (SELECT l AS id, sum(x.wanted) AS wanted FROM unnest(rows) x, unnest(x.limits) l GROUP BY l) AS asked
      JOIN budgets b USING (id)
      WHERE NOT (v_now < b.ends_at AND b.spent < b.amount AND b.spent + b.held + asked.wanted <= b.amount);
      IF ids IS NOT NULL THEN
        SELECT array_agg(x) INTO rows FROM unnest(rows) x WHERE NOT coalesce(x.limits && ids, false);
      END IF;
    END IF;
    SELECT array_agg(DISTINCT x.org_id) INTO ids FROM unnest(rows) x WHERE x.funds = 'credits' AND x.wanted > 0;
    IF ids IS NOT NULL THEN
      PERFORM 1 FROM balances WHERE org_id = ANY (ids) ORDER BY org_id FOR NO KEY UPDATE;
      SELECT array_agg(asked.org_id) INTO ids
      FROM (
        SELECT x.org_id, sum(x.wanted) AS wanted, bool_and(x.is_open) AS is_open FROM unnest(rows) x
        WHERE x.funds = 'credits' AND x.wanted > 0 GROUP BY x.org_id
      ) AS asked
      LEFT JOIN balances b USING (org_id)
      WHERE NOT asked.is_open AND coalesce(b.balance - b.held, 0) < asked.wanted;
      IF ids IS NOT NULL THEN
        SELECT array_agg(x) INTO rows FROM unnest(rows) x
        WHERE NOT (x.funds = 'credits' AND x.wanted > 0 AND x.org_id = ANY (ids));
      END IF;
    END IF;
    IF rows IS NULL THEN RETURN '{}'; END IF;
    UPDATE budgets b SET held = b.held + taken.amount
    FROM (SELECT l AS id, sum(x.amount)::bigint AS amount FROM unnest(rows) x, unnest(x.limits) l GROUP BY l) AS taken
    WHERE b.id = taken.id;
    UPDATE balances b SET held = b.held + taken.amount
    FROM (
      SELECT x.org_id, sum(x.amount)::bigint AS amount FROM unnest(rows) x WHERE x.funds = 'credits' GROUP BY x.org_id
    ) AS taken
    WHERE b.org_id = taken.org_id AND taken.amount > 0;
    INSERT INTO holds (id, org_id, project_id, key_id, request_id, caller_id, endpoint, requested_model, model, provider,
      amount, owner, created_at, expires_at, funds, budgets)
    SELECT x.id, x.org_id, x.project_id, x.key_id, x.request_id, x.caller_id, x.endpoint, x.requested_model, x.model,
      x.provider, x.amount, p_owner, v_now, x.expires_at, x.funds, array_to_json(x.limits)::text
    FROM unnest(rows) x;
    RETURN (SELECT array_agg(x.n) FROM unnest(rows) x);
  END $$;

  -- Adds rows of requests, and returns those that are new.
  CREATE FUNCTION add_requests_v1(p_rows settlement_v1[]) RETURNS settlement_v1[] LANGUAGE plpgsql AS $$
  DECLARE
    added text[];
  BEGIN
    WITH new AS (
      INSERT INTO requests (${NAMES})
      SELECT ${names.map(name => `x.${name}`).join(', ')} FROM unnest(p_rows) x ORDER BY x.id
      ON CONFLICT (id) DO NOTHING RETURNING id
    )
    SELECT array_agg(id) INTO added FROM new;
    IF cardinality(added) = cardinality(p_rows) THEN RETURN p_rows; END IF;
    RETURN (SELECT array_agg(x) FROM unnest(p_rows) x WHERE x.id = ANY (added));
  END $$;

  -- Counts requests in their hourly sums and in what their keys have spent.
  CREATE FUNCTION count_requests_v1(p_sums hourly_v1[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    sums hourly_v1[];
    one hourly_v1;
    known bigint;
  BEGIN
    IF EXISTS (
      SELECT 1 FROM unnest(p_sums) x LEFT JOIN usage_hourly u
        USING (hour, org_id, project_id, key_id, provider, model, source)
      WHERE u.hour IS NULL
    ) THEN
      -- Callers can make up sources, and own providers models: see placeOf of src/stores/rules/usage.ts.
      FOREACH one IN ARRAY p_sums LOOP
        IF NOT EXISTS (
          SELECT 1 FROM usage_hourly u WHERE (u.hour, u.org_id, u.project_id, u.key_id, u.provider, u.model, u.source)
            = (one.hour, one.org_id, one.project_id, one.key_id, one.provider, one.model, one.source)
        ) THEN
          SELECT count(*) INTO known FROM (
            SELECT 1 FROM usage_hourly u WHERE (u.hour, u.org_id, u.project_id, u.key_id)
              = (one.hour, one.org_id, one.project_id, one.key_id) LIMIT 512
          ) AS few;
          known := known + (
            SELECT count(DISTINCT (x.provider, x.model, x.source)) FROM unnest(sums) x
            WHERE (x.hour, x.org_id, x.project_id, x.key_id) = (one.hour, one.org_id, one.project_id, one.key_id)
              AND NOT EXISTS (
                SELECT 1 FROM usage_hourly u
                WHERE (u.hour, u.org_id, u.project_id, u.key_id, u.provider, u.model, u.source)
                  = (x.hour, x.org_id, x.project_id, x.key_id, x.provider, x.model, x.source)
              )
          );
          IF known >= 256 THEN
            one.source := 'other';
            IF known >= 512 AND NOT EXISTS (
              SELECT 1 FROM usage_hourly u WHERE (u.hour, u.org_id, u.project_id, u.key_id, u.provider, u.model, u.source)
                = (one.hour, one.org_id, one.project_id, one.key_id, one.provider, one.model, one.source)
            ) THEN one.model := '*'; END IF;
          END IF;
        END IF;
        sums := array_append(sums, one);
      END LOOP;
    ELSE
      sums := p_sums;
    END IF;
    INSERT INTO usage_hourly AS u
    SELECT x.hour, x.org_id, x.project_id, x.key_id, x.provider, x.model, x.source, sum(x.requests), sum(x.errors),
      sum(x.cached), sum(x.input_tokens), sum(x.output_tokens), sum(x.cached_tokens), sum(x.reasoning_tokens),
      sum(x.cost), sum(x.credits_cost), sum(x.byok_cost), sum(x.storage_cost), sum(x.savings), p_now
    FROM unnest(sums) x
    GROUP BY 1, 2, 3, 4, 5, 6, 7
    ORDER BY 1, 2, 3, 4, 5, 6, 7
    ON CONFLICT (hour, org_id, project_id, key_id, provider, model, source) DO UPDATE SET
      requests = u.requests + excluded.requests,
      errors = u.errors + excluded.errors,
      cached = u.cached + excluded.cached,
      input_tokens = u.input_tokens + excluded.input_tokens,
      output_tokens = u.output_tokens + excluded.output_tokens,
      cached_tokens = u.cached_tokens + excluded.cached_tokens,
      reasoning_tokens = u.reasoning_tokens + excluded.reasoning_tokens,
      cost = u.cost + excluded.cost,
      credits_cost = u.credits_cost + excluded.credits_cost,
      byok_cost = u.byok_cost + excluded.byok_cost,
      storage_cost = u.storage_cost + excluded.storage_cost,
      savings = u.savings + excluded.savings,
      updated_at = greatest(u.updated_at, excluded.updated_at);
    PERFORM 1 FROM keys WHERE id IN (SELECT x.key_id FROM unnest(sums) x WHERE x.cost <> 0)
    ORDER BY id FOR NO KEY UPDATE;
    UPDATE keys SET spent_units = spent_units + div(spent.cost, 1000000000)::bigint,
      spent_rest = spent_rest + mod(spent.cost, 1000000000)::bigint
    FROM (SELECT x.key_id, sum(x.cost) AS cost FROM unnest(sums) x GROUP BY x.key_id) AS spent
    WHERE keys.id = spent.key_id AND spent.cost <> 0;
  END $$;

  -- The additions of rows to the hourly sums.
  CREATE FUNCTION hourly_of_v1(p_rows settlement_v1[]) RETURNS hourly_v1[] LANGUAGE sql IMMUTABLE AS $$
    SELECT array_agg(s::hourly_v1) FROM (
      SELECT x.at / 3600000 * 3600000, x.org_id, x.project_id, x.key_id, coalesce(x.provider, ''), coalesce(x.model, ''),
        coalesce(x.source, ''), count(*), count(*) FILTER (WHERE x.outcome IN ('error', 'orphaned')),
        count(*) FILTER (WHERE x.cached), coalesce(sum(x.prompt_tokens), 0)::bigint,
        coalesce(sum(x.completion_tokens), 0)::bigint, coalesce(sum(x.cache_read_tokens), 0)::bigint,
        coalesce(sum(x.reasoning_tokens), 0)::bigint, coalesce(sum(x.cost), 0)::bigint,
        coalesce(sum(x.cost) FILTER (WHERE x.funds = 'credits'), 0)::bigint,
        coalesce(sum(x.cost) FILTER (WHERE x.funds = 'byok'), 0)::bigint, sum(x.storage)::bigint, sum(x.savings)::bigint
      FROM unnest(p_rows) x GROUP BY 1, 2, 3, 4, 5, 6, 7
    ) s
  $$;

  -- Gives holds back and takes what they cost; limits that are not there any more count nothing.
  CREATE FUNCTION release_v1(p_ends release_v1[]) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    ids text[];
  BEGIN
    SELECT array_agg(DISTINCT l) INTO ids FROM unnest(p_ends) x, unnest(x.limits) l;
    IF ids IS NOT NULL THEN
      PERFORM 1 FROM budgets WHERE id = ANY (ids) ORDER BY id FOR NO KEY UPDATE;
      UPDATE budgets b SET held = b.held - ended.held, spent = b.spent + ended.cost
      FROM (
        SELECT l AS id, sum(x.held)::bigint AS held, sum(x.cost)::bigint AS cost
        FROM unnest(p_ends) x, unnest(x.limits) l GROUP BY l
      ) AS ended
      WHERE b.id = ended.id;
    END IF;
    SELECT array_agg(DISTINCT x.org_id) INTO ids FROM unnest(p_ends) x
    WHERE x.charge > 0 OR (x.funds = 'credits' AND x.held > 0);
    IF ids IS NULL THEN RETURN; END IF;
    PERFORM 1 FROM balances WHERE org_id = ANY (ids) ORDER BY org_id FOR NO KEY UPDATE;
    UPDATE balances b SET held = b.held - ended.held, balance = b.balance - ended.charge, used = b.used + ended.charge
    FROM (
      SELECT x.org_id, coalesce(sum(x.held) FILTER (WHERE x.funds = 'credits'), 0)::bigint AS held,
        sum(x.charge)::bigint AS charge
      FROM unnest(p_ends) x GROUP BY x.org_id
    ) AS ended
    WHERE b.org_id = ended.org_id AND b.org_id = ANY (ids);
  END $$;

  -- Locks these holds in order and returns those that need no rule of the node: no plan pays, and every limit is in the
  -- period that it was last counted in.
  CREATE FUNCTION plain_holds_v1(p_ids text[], p_now bigint) RETURNS holds[] LANGUAGE plpgsql AS $$
  DECLARE
    found holds[];
    late text[];
  BEGIN
    SELECT array_agg(h) INTO found FROM (SELECT h FROM holds h WHERE id = ANY (p_ids) ORDER BY id FOR UPDATE) AS locked;
    SELECT array_agg(DISTINCT l) INTO late
    FROM unnest(found) h, json_array_elements_text(h.budgets::json) l JOIN budgets b ON b.id = l WHERE p_now >= b.ends_at;
    RETURN (
      SELECT array_agg(h) FROM unnest(found) h
      WHERE h.funds IN ('credits', 'byok')
        AND (late IS NULL OR h.budgets IS NULL
          OR NOT ARRAY(SELECT json_array_elements_text(h.budgets::json)) && late)
    );
  END $$;

  -- Ends open holds by their rows. Returns the numbers of those that it has settled.
  CREATE FUNCTION settle_v1(p_rows json, p_now bigint) RETURNS integer[] LANGUAGE plpgsql AS $$
  DECLARE
    rows settlement_v1[];
    ended holds[];
    v_now bigint := coalesce(p_now, now_ms());
  BEGIN
    ${COMMITTED}
    SELECT array_agg(x) INTO rows FROM json_populate_recordset(NULL::settlement_v1, p_rows) x;
    ended := plain_holds_v1(ARRAY(SELECT x.hold_id FROM unnest(rows) x), v_now);
    IF ended IS NULL THEN RETURN '{}'; END IF;
    SELECT array_agg(x) INTO rows FROM unnest(rows) x JOIN unnest(ended) h ON h.id = x.hold_id;
    rows := add_requests_v1(rows);
    IF rows IS NULL THEN RETURN '{}'; END IF;
    PERFORM count_requests_v1(hourly_of_v1(rows), v_now);
    INSERT INTO ledger (org_id, request_id, kind, amount, created_at)
    SELECT x.org_id, x.id, 'charge', -x.charged, v_now FROM unnest(rows) x WHERE x.charged > 0;
    DELETE FROM holds WHERE id IN (SELECT x.hold_id FROM unnest(rows) x);
    PERFORM release_v1(ARRAY(
      SELECT (h.org_id, h.funds, h.amount, x.charged, coalesce(x.cost, 0),
        ARRAY(SELECT json_array_elements_text(h.budgets::json)))::release_v1
      FROM unnest(rows) x JOIN unnest(ended) h ON h.id = x.hold_id
    ));
    RETURN (SELECT array_agg(x.n) FROM unnest(rows) x);
  END $$;

  -- Gives open holds back. Returns the ids of those that it has ended.
  CREATE FUNCTION void_v1(p_ids text[], p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
  DECLARE
    ended holds[];
  BEGIN
    ${COMMITTED}
    ended := plain_holds_v1(p_ids, coalesce(p_now, now_ms()));
    IF ended IS NULL THEN RETURN '{}'; END IF;
    DELETE FROM holds WHERE id IN (SELECT h.id FROM unnest(ended) h);
    PERFORM release_v1(ARRAY(
      SELECT (h.org_id, h.funds, h.amount, 0, 0, ARRAY(SELECT json_array_elements_text(h.budgets::json)))::release_v1
      FROM unnest(ended) h
    ));
    RETURN ARRAY(SELECT h.id FROM unnest(ended) h);
  END $$;

  -- Keeps rows that cost nothing.
  CREATE FUNCTION record_v1(p_rows json, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    rows settlement_v1[];
  BEGIN
    ${COMMITTED}
    SELECT array_agg(x) INTO rows FROM json_populate_recordset(NULL::settlement_v1, p_rows) x;
    rows := add_requests_v1(rows);
    IF rows IS NOT NULL THEN PERFORM count_requests_v1(hourly_of_v1(rows), coalesce(p_now, now_ms())); END IF;
  END $$;

  -- Notes what streams have come to: an object of texts by the ids of their holds.
  CREATE FUNCTION checkpoint_v1(p_progress json) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    ${COMMITTED}
    PERFORM 1 FROM holds WHERE id IN (SELECT key FROM json_each_text(p_progress)) ORDER BY id FOR UPDATE;
    UPDATE holds SET progress = x.value FROM json_each_text(p_progress) x WHERE holds.id = x.key;
  END $$;

  -- For the node's own arithmetic: locks limits, plans and balances in order. Amounts are texts.
  CREATE FUNCTION lock_accounts_v1(p_limits json, p_plans json, p_orgs json) RETURNS json LANGUAGE plpgsql AS $$
  DECLARE
    limits json;
    plans json;
    credits json;
  BEGIN
    SELECT json_agg(b) INTO limits FROM (
      SELECT id, kind, period, zone, amount::text, period_at::text, spent::text, held::text FROM budgets
      WHERE id = ANY (ARRAY(SELECT json_array_elements_text(p_limits))) ORDER BY id FOR NO KEY UPDATE
    ) b;
    SELECT json_agg(s) INTO plans FROM (
      SELECT org_id, plan, since, overflow, month_at, used::text, held::text, week_at, premium_used::text,
        premium_held::text
      FROM subscriptions
      WHERE org_id = ANY (ARRAY(SELECT json_array_elements_text(p_plans))) ORDER BY org_id FOR NO KEY UPDATE
    ) s;
    SELECT json_agg(b) INTO credits FROM (
      SELECT org_id, balance::text, held::text FROM balances
      WHERE org_id = ANY (ARRAY(SELECT json_array_elements_text(p_orgs))) ORDER BY org_id FOR NO KEY UPDATE
    ) b;
    RETURN json_build_object('limits', limits, 'plans', plans, 'credits', credits);
  END $$;

  -- Writes what the node has computed of locked accounts, and the entries and holds that belong to it.
  CREATE FUNCTION write_accounts_v1(p_limits json, p_plans json, p_credits json, p_entries json) RETURNS void
  LANGUAGE sql AS $$
    UPDATE budgets b SET period_at = x.period_at, ends_at = x.ends_at, spent = x.spent, held = x.held
    FROM json_to_recordset(p_limits) AS x (id text, period_at bigint, ends_at bigint, spent bigint, held bigint)
    WHERE b.id = x.id;
    UPDATE subscriptions s SET month_at = x.month_at, used = x.used, held = x.held, week_at = x.week_at,
      premium_used = x.premium_used, premium_held = x.premium_held
    FROM json_to_recordset(p_plans) AS x (org_id text, month_at bigint, used bigint, held bigint, week_at bigint,
      premium_used bigint, premium_held bigint)
    WHERE s.org_id = x.org_id;
    UPDATE balances b SET held = b.held + x.held, balance = b.balance - x.used, used = b.used + x.used
    FROM json_to_recordset(p_credits) AS x (org_id text, held bigint, used bigint) WHERE b.org_id = x.org_id;
    INSERT INTO ledger (org_id, request_id, kind, amount, created_at)
    SELECT x.org_id, x.request_id, x.kind, x.amount, x.created_at
    FROM json_to_recordset(p_entries) AS x (org_id text, request_id text, kind text, amount bigint, created_at bigint);
  $$;

  -- Opens holds whose money the node has taken.
  CREATE FUNCTION add_holds_v1(p_rows json, p_owner text, p_now bigint) RETURNS void LANGUAGE sql AS $$
    INSERT INTO holds (id, org_id, project_id, key_id, request_id, caller_id, endpoint, requested_model, model, provider,
      amount, owner, created_at, expires_at, funds, budgets)
    SELECT x.id, x.org_id, x.project_id, x.key_id, x.request_id, x.caller_id, x.endpoint, x.requested_model, x.model,
      x.provider, x.amount, p_owner, p_now, x.expires_at, x.funds, array_to_json(x.limits)::text
    FROM json_populate_recordset(NULL::wanted_hold_v1, p_rows) x;
  $$;
`
