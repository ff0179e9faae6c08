/** What each key has spent, so that it is read without a sum over all hours. */
const UNIT = 1_000_000_000

export const step = `
  -- spent_units: whole dollars. spent_rest: nano-USD beside them. Apart, as their sum may be larger than an integer.
  ALTER TABLE keys ADD COLUMN spent_units INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE keys ADD COLUMN spent_rest INTEGER NOT NULL DEFAULT 0;
  UPDATE keys SET spent_units = units, spent_rest = rest FROM (
    SELECT key_id, sum(cost / ${UNIT}) AS units, sum(cost % ${UNIT}) AS rest FROM usage_hourly GROUP BY key_id
  ) WHERE id = key_id;

  CREATE TRIGGER spending_is_counted AFTER INSERT ON usage_hourly WHEN NEW.cost <> 0 BEGIN
    UPDATE keys SET spent_units = spent_units + NEW.cost / ${UNIT}, spent_rest = spent_rest + NEW.cost % ${UNIT}
    WHERE id = NEW.key_id;
  END;
  CREATE TRIGGER further_spending_is_counted AFTER UPDATE OF cost ON usage_hourly WHEN NEW.cost <> OLD.cost BEGIN
    UPDATE keys SET spent_units = spent_units + NEW.cost / ${UNIT} - OLD.cost / ${UNIT},
      spent_rest = spent_rest + NEW.cost % ${UNIT} - OLD.cost % ${UNIT}
    WHERE id = NEW.key_id;
  END;
`
