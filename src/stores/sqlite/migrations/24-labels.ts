/** End users and tags of requests: ways to their rows, and their sums by the day. */
import { MAX_KEYS_OF_DAY, MAX_VALUES_OF_DAY } from '../../rules/labels.ts'

const sums = [
  ...['requests', 'errors', 'cached', 'input_tokens', 'output_tokens', 'cached_tokens', 'reasoning_tokens'],
  ...['cost', 'credits_cost', 'byok_cost', 'storage_cost'],
]
const DAY = 'NEW.at / 86400000 * 86400000'
const LABELS = `
    SELECT 'end_user' AS label, NEW.end_user AS value WHERE NEW.end_user IS NOT NULL
    UNION ALL SELECT 'tag:' || key, value FROM json_each(coalesce(NEW.tags, '{}'))`

/** SQL. */
export const step = `
  -- tags: a JSON object; NULL for none.
  ALTER TABLE requests ADD COLUMN end_user TEXT;
  ALTER TABLE requests ADD COLUMN tags TEXT;

  -- label: end_user=NAME or tag:KEY=VALUE.
  CREATE TABLE request_labels (
    label TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (label, id)
  ) STRICT, WITHOUT ROWID;

  -- The keys of tags that are summed on a day.
  CREATE TABLE label_keys (
    org_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    label TEXT NOT NULL,
    PRIMARY KEY (org_id, day, label)
  ) STRICT, WITHOUT ROWID;

  -- label: end_user or tag:KEY. day: its start, UTC. An orphan has no labels, so that no sum is ever taken back.
  CREATE TABLE usage_labels (
    label TEXT NOT NULL,
    day INTEGER NOT NULL,
    org_id TEXT NOT NULL,
    value TEXT NOT NULL,
    project_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    ${sums.map(name => `${name} INTEGER NOT NULL`).join(',\n    ')},
    PRIMARY KEY (label, day, org_id, value, project_id, key_id)
  ) STRICT, WITHOUT ROWID;

  CREATE TRIGGER labels_are_counted AFTER INSERT ON requests WHEN NEW.end_user IS NOT NULL OR NEW.tags IS NOT NULL BEGIN
    INSERT INTO request_labels (label, id) SELECT label || '=' || value, NEW.id FROM (${LABELS}) WHERE true
    ON CONFLICT DO NOTHING;
    INSERT INTO label_keys (org_id, day, label)
    SELECT NEW.org_id, ${DAY}, label FROM (${LABELS})
    WHERE label = 'end_user'
      OR (SELECT count(*) FROM label_keys WHERE org_id = NEW.org_id AND day = ${DAY}) < ${MAX_KEYS_OF_DAY}
    ON CONFLICT DO NOTHING;
    INSERT INTO usage_labels (label, day, org_id, value, project_id, key_id, ${sums.join(', ')})
    SELECT label, ${DAY}, NEW.org_id,
      CASE WHEN EXISTS (
        SELECT 1 FROM usage_labels AS known WHERE known.label = given.label AND known.day = ${DAY}
          AND known.org_id = NEW.org_id AND known.value = given.value
      ) OR (
        SELECT count(*) FROM (
          SELECT 1 FROM usage_labels AS known WHERE known.label = given.label AND known.day = ${DAY}
            AND known.org_id = NEW.org_id LIMIT ${MAX_VALUES_OF_DAY}
        )
      ) < ${MAX_VALUES_OF_DAY} THEN value ELSE 'other' END,
      NEW.project_id, NEW.key_id, 1, NEW.outcome IN ('error', 'orphaned'), NEW.cached, coalesce(NEW.prompt_tokens, 0),
      coalesce(NEW.completion_tokens, 0), coalesce(NEW.cache_read_tokens, 0), coalesce(NEW.reasoning_tokens, 0),
      coalesce(NEW.cost, 0), iif(NEW.funds = 'credits', coalesce(NEW.cost, 0), 0),
      iif(NEW.funds = 'byok', coalesce(NEW.cost, 0), 0), NEW.storage
    FROM (${LABELS}) AS given
    WHERE EXISTS (SELECT 1 FROM label_keys WHERE org_id = NEW.org_id AND day = ${DAY} AND label_keys.label = given.label)
    ON CONFLICT DO UPDATE SET ${sums.map(name => `${name} = ${name} + excluded.${name}`).join(', ')};
  END;
  CREATE TRIGGER dropped_labels_are_dropped AFTER DELETE ON requests
  WHEN OLD.end_user IS NOT NULL OR OLD.tags IS NOT NULL BEGIN
    DELETE FROM request_labels WHERE id = OLD.id
      AND label IN (SELECT label || '=' || value FROM (${LABELS.replaceAll('NEW.', 'OLD.')}));
  END;
`
