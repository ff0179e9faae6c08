/**
 * Counts a batch in its sums, all rows at once. One by one, sources and tags that callers make up took longer than a
 * statement may, and every request of that batch failed.
 */
import { MAX_KEYS_OF_DAY, MAX_VALUES_OF_DAY } from '../../rules/labels.ts'
import { MAX_BY_MODEL, MAX_BY_SOURCE } from '../../rules/usage.ts'

const measures = [
  ...['requests', 'errors', 'cached', 'input_tokens', 'output_tokens', 'cached_tokens', 'reasoning_tokens'],
  ...['cost', 'credits_cost', 'byok_cost', 'storage_cost', 'savings'],
]
const KEY = ['hour', 'org_id', 'project_id', 'key_id']
const PLACE = [...KEY, 'provider', 'model', 'source']
const namesOf = (names: readonly string[], table?: string): string =>
  names.map(name => (table ? `${table}.${name}` : name)).join(', ')

const LABELED = ['label', 'day', 'org_id']
const LABEL_PLACE = [...LABELED, 'value', 'project_id', 'key_id']
const labelMeasures = measures.slice(0, -1)
const DAY = 'x.at / 86400000 * 86400000'

/** SQL: adds labels, and sums of the first so many values of a day. */
const addLabels = `
  CREATE OR REPLACE FUNCTION add_labels_v1(p_rows settlement_v1[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO request_labels (label, id)
    SELECT l.label || '=' || l.value, l.id FROM labels_of_v1(p_rows) l ORDER BY 1, 2
    ON CONFLICT DO NOTHING;
    WITH asked AS MATERIALIZED (
      SELECT DISTINCT x.org_id, ${DAY} AS day, l.label FROM labels_of_v1(p_rows) l JOIN unnest(p_rows) x USING (id)
    ), full_days AS MATERIALIZED (
      SELECT d.org_id, d.day FROM (SELECT DISTINCT org_id, day FROM asked) d
      WHERE (SELECT count(*) FROM label_keys k WHERE (k.org_id, k.day) = (d.org_id, d.day)) >= ${MAX_KEYS_OF_DAY}
    )
    INSERT INTO label_keys (org_id, day, label)
    SELECT org_id, day, label FROM asked WHERE label = 'end_user' OR (org_id, day) NOT IN (SELECT * FROM full_days)
    ORDER BY 1, 2, 3
    ON CONFLICT DO NOTHING;
    WITH asked AS MATERIALIZED (
      SELECT l.label, ${DAY} AS day, x.org_id, l.value, x.project_id, x.key_id, count(*) AS requests,
        count(*) FILTER (WHERE x.outcome IN ('error', 'orphaned')) AS errors, count(*) FILTER (WHERE x.cached) AS cached,
        coalesce(sum(x.prompt_tokens), 0) AS input_tokens, coalesce(sum(x.completion_tokens), 0) AS output_tokens,
        coalesce(sum(x.cache_read_tokens), 0) AS cached_tokens, coalesce(sum(x.reasoning_tokens), 0) AS reasoning_tokens,
        coalesce(sum(x.cost), 0) AS cost, coalesce(sum(x.cost) FILTER (WHERE x.funds = 'credits'), 0) AS credits_cost,
        coalesce(sum(x.cost) FILTER (WHERE x.funds = 'byok'), 0) AS byok_cost, sum(x.storage) AS storage_cost
      FROM labels_of_v1(p_rows) l JOIN unnest(p_rows) x USING (id) GROUP BY 1, 2, 3, 4, 5, 6
    ), summed AS MATERIALIZED (
      SELECT d.*, (
        SELECT count(*) FROM (
          SELECT 1 FROM usage_labels u WHERE (${namesOf(LABELED, 'u')}) = (${namesOf(LABELED, 'd')})
          LIMIT ${MAX_VALUES_OF_DAY}
        ) AS few
      ) < ${MAX_VALUES_OF_DAY} AS has_room
      FROM (SELECT DISTINCT ${namesOf(LABELED)} FROM asked) d
      WHERE EXISTS (SELECT 1 FROM label_keys k WHERE (k.org_id, k.day, k.label) = (d.org_id, d.day, d.label))
    )
    INSERT INTO usage_labels AS u (${namesOf([...LABEL_PLACE, ...labelMeasures])})
    SELECT ${namesOf(LABELED, 'a')}, CASE WHEN d.has_room OR EXISTS (
        SELECT 1 FROM usage_labels k
        WHERE (${namesOf([...LABELED, 'value'], 'k')}) = (${namesOf([...LABELED, 'value'], 'a')})
      ) THEN a.value ELSE 'other' END AS value,
      a.project_id, a.key_id, ${labelMeasures.map(name => `sum(a.${name})`).join(', ')}
    FROM asked a JOIN summed d USING (${namesOf(LABELED)})
    GROUP BY 1, 2, 3, 4, 5, 6
    ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (${namesOf(LABEL_PLACE)}) DO UPDATE SET
      ${labelMeasures.map(name => `${name} = u.${name} + excluded.${name}`).join(',\n      ')};
  $$;
`

/** SQL: counts hourly sums. See `placeOf` of `src/stores/rules/usage.ts`. */
const countRequests = `
  CREATE OR REPLACE FUNCTION count_requests_v1(p_sums hourly_v1[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    sums hourly_v1[] := p_sums;
  BEGIN
    IF EXISTS (
      SELECT 1 FROM unnest(p_sums) x LEFT JOIN usage_hourly u USING (${namesOf(PLACE)}) WHERE u.requests IS NULL
    ) THEN
      WITH asked AS (
        SELECT x.*, u.requests IS NULL AS is_new,
          count(*) FILTER (WHERE u.requests IS NULL) OVER (PARTITION BY ${namesOf(KEY, 'x')} ORDER BY x.n) - 1 AS nth
        FROM unnest(p_sums) WITH ORDINALITY AS x (${namesOf([...PLACE, ...measures])}, n)
        LEFT JOIN usage_hourly u USING (${namesOf(PLACE)})
      ), known AS (
        SELECT k.*, (
          SELECT count(*) FROM (
            SELECT 1 FROM usage_hourly u WHERE (${namesOf(KEY, 'u')}) = (${namesOf(KEY, 'k')}) LIMIT ${MAX_BY_MODEL}
          ) AS few
        ) AS count
        FROM (SELECT DISTINCT ${namesOf(KEY)} FROM asked WHERE is_new) k
      ), placed AS (
        SELECT a.*, k.count, coalesce(a.is_new AND k.count + a.nth >= ${MAX_BY_SOURCE}, false) AS is_other
        FROM asked a LEFT JOIN known k USING (${namesOf(KEY)})
      ), others AS (
        SELECT o.*, greatest(o.count, ${MAX_BY_SOURCE}) + row_number() OVER (
          PARTITION BY ${namesOf(KEY, 'o')} ORDER BY o.provider, o.model
        ) > ${MAX_BY_MODEL} AS is_open
        FROM (SELECT DISTINCT ${namesOf([...KEY, 'provider', 'model', 'count'])} FROM placed WHERE is_other) o
        WHERE NOT EXISTS (
          SELECT 1 FROM usage_hourly u
          WHERE (${namesOf(PLACE, 'u')}) = (${namesOf([...KEY, 'provider', 'model'], 'o')}, 'other')
        )
      )
      SELECT array_agg(ROW(
        ${namesOf([...KEY, 'provider'], 'p')},
        CASE WHEN p.is_other AND coalesce(o.is_open, false) THEN '*' ELSE p.model END,
        CASE WHEN p.is_other THEN 'other' ELSE p.source END, ${namesOf(measures, 'p')}
      )::hourly_v1) INTO sums
      FROM placed p LEFT JOIN others o USING (${namesOf([...KEY, 'provider', 'model'])});
    END IF;
    INSERT INTO usage_hourly AS u (${namesOf([...PLACE, ...measures])}, updated_at)
    SELECT ${namesOf(PLACE, 'x')}, ${measures.map(name => `sum(x.${name})`).join(', ')}, p_now
    FROM unnest(sums) x
    GROUP BY 1, 2, 3, 4, 5, 6, 7
    ORDER BY 1, 2, 3, 4, 5, 6, 7
    ON CONFLICT (${namesOf(PLACE)}) DO UPDATE SET
      ${measures.map(name => `${name} = u.${name} + excluded.${name}`).join(',\n      ')},
      updated_at = greatest(u.updated_at, excluded.updated_at);
    PERFORM 1 FROM keys WHERE id IN (SELECT x.key_id FROM unnest(sums) x WHERE x.cost <> 0)
    ORDER BY id FOR NO KEY UPDATE;
    UPDATE keys SET spent_units = spent_units + div(spent.cost, 1000000000)::bigint,
      spent_rest = spent_rest + mod(spent.cost, 1000000000)::bigint
    FROM (SELECT x.key_id, sum(x.cost) AS cost FROM unnest(sums) x GROUP BY x.key_id) AS spent
    WHERE keys.id = spent.key_id AND spent.cost <> 0;
  END $$;
`

/** SQL of this step. */
export const step = addLabels + countRequests
