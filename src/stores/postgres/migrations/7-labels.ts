/** End users and tags of requests: ways to their rows, and their sums by the day. */
import { MAX_KEYS_OF_DAY, MAX_VALUES_OF_DAY } from '../../rules/labels.ts'

const sums = [
  ...['requests', 'errors', 'cached', 'input_tokens', 'output_tokens', 'cached_tokens', 'reasoning_tokens'],
  ...['cost', 'credits_cost', 'byok_cost', 'storage_cost'],
]
const place = ['label', 'day', 'org_id', 'value', 'project_id', 'key_id']
const DAY = 'x.at / 86400000 * 86400000'

/** SQL; `columns` are those of a request row before this step. */
export function step(columns: readonly string[]): string {
  const all = [...columns, 'end_user', 'tags']
  return `
  -- tags: a JSON object; NULL for none.
  ALTER TABLE requests ADD COLUMN end_user text, ADD COLUMN tags text;
  ALTER TYPE settlement_v1 ADD ATTRIBUTE end_user text, ADD ATTRIBUTE tags text;

  -- label: end_user=NAME or tag:KEY=VALUE.
  CREATE TABLE request_labels (
    label text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    PRIMARY KEY (label, id)
  );
  CREATE INDEX request_labels_to_drop ON request_labels (id);

  -- The keys of tags that are summed on a day.
  CREATE TABLE label_keys (
    org_id text COLLATE "C" NOT NULL,
    day bigint NOT NULL,
    label text COLLATE "C" NOT NULL,
    PRIMARY KEY (org_id, day, label)
  );

  -- label: end_user or tag:KEY. day: its start, UTC. An orphan has no labels, so that no sum is ever taken back.
  CREATE TABLE usage_labels (
    label text COLLATE "C" NOT NULL,
    day bigint NOT NULL,
    org_id text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    ${sums.map(name => `${name} bigint NOT NULL`).join(',\n    ')},
    PRIMARY KEY (${place.join(', ')})
  ) WITH (fillfactor = 70);

  CREATE FUNCTION labels_of_v1(p_rows settlement_v1[]) RETURNS TABLE (label text, value text, id text)
  LANGUAGE sql IMMUTABLE AS $$
    SELECT 'end_user', x.end_user, x.id FROM unnest(p_rows) x WHERE x.end_user IS NOT NULL
    UNION ALL
    SELECT 'tag:' || t.key, t.value, x.id FROM unnest(p_rows) x, json_each_text(x.tags::json) t WHERE x.tags IS NOT NULL
  $$;

  -- The labels of new rows. Their sums are locked in one order, behind request rows and before hourly sums.
  CREATE FUNCTION add_labels_v1(p_rows settlement_v1[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO request_labels (label, id)
    SELECT l.label || '=' || l.value, l.id FROM labels_of_v1(p_rows) l ORDER BY 1, 2
    ON CONFLICT DO NOTHING;
    INSERT INTO label_keys (org_id, day, label)
    SELECT DISTINCT x.org_id, ${DAY}, l.label FROM labels_of_v1(p_rows) l JOIN unnest(p_rows) x USING (id)
    WHERE l.label = 'end_user'
      OR (SELECT count(*) FROM label_keys k WHERE k.org_id = x.org_id AND k.day = ${DAY}) < ${MAX_KEYS_OF_DAY}
    ORDER BY 1, 2, 3
    ON CONFLICT DO NOTHING;
    INSERT INTO usage_labels AS u (${place.join(', ')}, ${sums.join(', ')})
    SELECT l.label, ${DAY} AS day, x.org_id,
      CASE WHEN EXISTS (
        SELECT 1 FROM usage_labels k
        WHERE k.label = l.label AND k.day = ${DAY} AND k.org_id = x.org_id AND k.value = l.value
      ) OR (
        SELECT count(*) FROM (
          SELECT 1 FROM usage_labels k
          WHERE k.label = l.label AND k.day = ${DAY} AND k.org_id = x.org_id LIMIT ${MAX_VALUES_OF_DAY}
        ) AS few
      ) < ${MAX_VALUES_OF_DAY} THEN l.value ELSE 'other' END AS value,
      x.project_id, x.key_id, count(*), count(*) FILTER (WHERE x.outcome IN ('error', 'orphaned')),
      count(*) FILTER (WHERE x.cached), coalesce(sum(x.prompt_tokens), 0), coalesce(sum(x.completion_tokens), 0),
      coalesce(sum(x.cache_read_tokens), 0), coalesce(sum(x.reasoning_tokens), 0), coalesce(sum(x.cost), 0),
      coalesce(sum(x.cost) FILTER (WHERE x.funds = 'credits'), 0),
      coalesce(sum(x.cost) FILTER (WHERE x.funds = 'byok'), 0), sum(x.storage)
    FROM labels_of_v1(p_rows) l JOIN unnest(p_rows) x USING (id)
    WHERE EXISTS (SELECT 1 FROM label_keys k WHERE k.org_id = x.org_id AND k.day = ${DAY} AND k.label = l.label)
    GROUP BY 1, 2, 3, 4, 5, 6
    ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (${place.join(', ')}) DO UPDATE SET ${sums.map(name => `${name} = u.${name} + excluded.${name}`).join(', ')};
  $$;

  CREATE OR REPLACE FUNCTION add_requests_v1(p_rows settlement_v1[]) RETURNS settlement_v1[] LANGUAGE plpgsql AS $$
  DECLARE
    added text[];
    rows settlement_v1[] := p_rows;
  BEGIN
    WITH new AS (
      INSERT INTO requests (${all.join(', ')})
      SELECT ${all.map(name => `x.${name}`).join(', ')} FROM unnest(p_rows) x ORDER BY x.id
      ON CONFLICT (id) DO NOTHING RETURNING id
    )
    SELECT array_agg(id) INTO added FROM new;
    IF cardinality(added) IS DISTINCT FROM cardinality(p_rows) THEN
      SELECT array_agg(x) INTO rows FROM unnest(p_rows) x WHERE x.id = ANY (added);
    END IF;
    IF EXISTS (SELECT 1 FROM unnest(rows) x WHERE x.end_user IS NOT NULL OR x.tags IS NOT NULL) THEN
      PERFORM add_labels_v1(rows);
    END IF;
    RETURN rows;
  END $$;
`
}
